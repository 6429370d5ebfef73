"""How long the nightly decay takes over many facts: on an ordinary night, and when much expires."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.synthetic import corpus
from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import CapturedBy
from memgraph.model.values import MemoryInput, Source
from memgraph.operations.life.decay import decay
from memgraph.rules.decay import DEFAULT_THRESHOLD
from memgraph.service.memory_service import MemoryService

# One fact in so many is held for less sure: it expires on a night on which nothing else does.
ONE_IN = 100
SURE, LESS_SURE = 0.9, 0.3
INFERRED = Source(captured_by=CapturedBy.EXTRACTOR)
_NAME = "bench"


def run(
    facts: int, seed: int, progress: Callable[[str, int, int], None] = lambda _p, _d, _t: None
) -> dict[str, Any]:
    """Store facts with their vectors, then let three nights come.

    Returns:
        ``seconds`` and ``retired`` of a night when nothing has expired, one when a fact in a
        hundred has, and one when all others have.
    """
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as root,
        MemoryService(root, environ={}, background=False) as service,
    ):
        progress("storing facts", 0, facts)
        service.orchestrator(_NAME, create=True).remember_many(_facts(facts, seed))
        stored_at = service.clock.now_ms()
        rate = service.settings(_NAME).memory.decay.rate
        first, last = (
            stored_at + round(math.log(confidence / DEFAULT_THRESHOLD) / rate * MS_PER_DAY)
            for confidence in (LESS_SURE, SURE)
        )
        nights = {
            "nothing expired": stored_at,
            "one in a hundred": first + MS_PER_DAY,
            "all others": last + MS_PER_DAY,
        }
        with service.opened(_NAME) as opened:
            found = {}
            for number, (name, night) in enumerate(nights.items()):
                progress("nights", number, len(nights))
                begun = time.perf_counter()
                report = decay(opened, now_ms=night, actor=_NAME)
                seconds = round(time.perf_counter() - begun, 2)
                found[name] = {"seconds": seconds, "retired": report.counts["retired"]}
    return found


def _facts(count: int, seed: int) -> Iterator[MemoryInput]:
    talk = corpus(seed)
    for number in range(count):
        confidence = LESS_SURE if number % ONE_IN == 0 else SURE
        yield MemoryInput(
            content=f"{number}: {talk.text(number)}", confidence=confidence, source=INFERRED
        )
