"""How healthy what is stored is: rates, each with examples, against limits."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from memgraph.model.values import Millis, Value

Rate = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0)]


class Measure(StrEnum):
    """What is measured, in the order in which it is told."""

    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    CONTRADICTION = "contradiction"
    STALE = "stale"
    UNSOURCED = "unsourced"
    ORPHAN = "orphan"
    UNEMBEDDED = "unembedded"
    ECHO = "echo"


class HealthExample(Value):
    """A memory that counts, and the other one where it takes two.

    Attributes:
        text: the beginning of what the first one says, on one line.
    """

    memory_ids: tuple[str, ...]
    text: str


class HealthMeasure(Value):
    """One rate.

    Attributes:
        count, of: how many memories count, of how many that were looked at.
        sampled: only a part was looked at, chosen by key and so the same every time.
        limit: the highest rate that passes; None: any does.
        failed: the rate is above the limit.
    """

    measure: Measure
    count: Count
    of: Count
    rate: Rate
    sampled: bool
    examples: tuple[HealthExample, ...]
    limit: Rate | None = None
    failed: bool = False


class StoreHealth(Value):
    """All rates of what one reader sees.

    Attributes:
        memories: active ones that are no raw turns; most rates are shares of them.
        ok: no rate is above its limit.
    """

    orchestrator: str
    at: Millis
    memories: Count
    measures: tuple[HealthMeasure, ...]
    ok: bool
