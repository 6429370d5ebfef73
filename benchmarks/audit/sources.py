"""Taking a source back: 10,000 memories of a folder, and 5,000 that were derived from those.

500 of the folder had replaced others, which have their place back.

Run as ``python -m benchmarks.audit.sources``. Prints milliseconds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final, TypeVar

from memgraph.model.values import MemoryInput, Source
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service.memory_service import MemoryService

GIVEN: Final = 10_000
DERIVED: Final = 5_000
OTHERS: Final = 5_000
REPLACED: Final = 500

T = TypeVar("T")


def items(ids: list[str]) -> Iterator[MemoryInput]:
    """What was derived, each from two memories of the folder."""
    for n in range(DERIVED):
        grounds = (ids[2 * n], ids[2 * n + 1])
        yield MemoryInput(content=f"Conclusion {n} of what was read.", derived_from=grounds)


def fill(orc: Orchestrator) -> None:
    """Store what is to be measured."""
    folder = orc.paths.processed / "mail"
    given = (
        MemoryInput(
            content=f"Line {n} of a letter.",
            source=Source(source_path=str(folder / f"{n // 10}.md"), locator=f"L{n}-L{n}"),
        )
        for n in range(GIVEN)
    )
    ids = [str(each.memory_id) for each in orc.remember_many(given)]
    orc.remember_many(items(ids))
    others = (MemoryInput(content=f"Another thing {n}.") for n in range(OTHERS))
    olds = [str(each.memory_id) for each in orc.remember_many(others)]
    for new, old in zip(ids[:REPLACED], olds[:REPLACED], strict=True):
        orc.relate(new, "Updates", old)


def timed(what: str, work: Callable[[], T], rounds: int = 1) -> T:
    """Do it, and print the median of the rounds."""
    spent = []
    for _ in range(rounds):
        begun = time.perf_counter()
        found = work()
        spent.append((time.perf_counter() - begun) * 1_000)
    print(f"{what:40} {median(spent):10.2f} ms")
    return found


def main() -> None:
    """Measure once."""
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-") as folder,
        MemoryService(Path(folder), environ={}, background=False) as service,
    ):
        orc = service.orchestrator("bench", create=True)
        fill(orc)
        timed("a page of 50 sources", lambda: orc.sources.list(limit=50), 5)
        plan = timed("the rehearsal", lambda: orc.sources.retract(path="mail", reason="bench"))
        timed(
            "taking it back",
            lambda: orc.sources.retract(path="mail", reason="bench", dry_run=False),
        )
        print(f"{plan.given:,} given, {plan.derived:,} derived, {plan.reinstated:,} had replaced")


if __name__ == "__main__":
    main()
