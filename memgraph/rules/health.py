"""Limits for the health of a store: how they are written, and what is above one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from memgraph.errors import InvalidInput
from memgraph.model.health import Measure

ALL: Final = "all"
_LIMIT = re.compile(r"(?P<name>[a-z_]+)(?:=(?P<rate>\d{1,3}(?:\.\d{1,9})?)(?P<percent>%)?)?")


def limits_of(given: Iterable[str]) -> dict[Measure, float]:
    """The highest rates that pass, 0..1, from texts such as ``stale=0.1``, ``stale=10%``, ``echo``.

    A name alone lets nothing pass; ``all`` stands for every measure that no other text names.

    Raises:
        InvalidInput: an unknown measure, one that is named twice, or a rate above 1.
    """
    found: dict[str, float] = {}
    for text in given:
        match = _LIMIT.fullmatch(text)
        name = match["name"] if match else ""
        if match is None or (name != ALL and name not in set(Measure)):
            known = ", ".join([*Measure, ALL])
            raise InvalidInput(
                f"a limit is NAME or NAME=RATE, such as stale=0.05 or stale=5%; names: {known}",
                field="fail_on",
            )
        if name in found:
            raise InvalidInput(f"{name} has two limits", field="fail_on")
        rate = float(match["rate"] or 0.0) / (100.0 if match["percent"] else 1.0)
        if rate > 1.0:
            raise InvalidInput(f"{name}: a rate lies between 0 and 1, or 0% and 100%", field=name)
        found[name] = rate
    others = found.pop(ALL, None)
    rest = {} if others is None else dict.fromkeys(Measure, others)
    return rest | {Measure(name): rate for name, rate in found.items()}


def rate_of(count: int, of: int) -> float:
    """The share, 0..1; of nothing 0."""
    return count / of if of else 0.0


def fails(measure: Measure, rate: float, limits: Mapping[Measure, float]) -> bool:
    """Whether a rate is above the limit of its measure."""
    return measure in limits and rate > limits[measure]
