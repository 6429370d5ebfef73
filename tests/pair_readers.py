"""Readers of pairs for tests: they answer by a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from memgraph import MemoryService
from memgraph.clock import Clock, FixedClock
from memgraph.ids import CountingIds
from memgraph.providers.pair_reader import PairVerdict, StatementPair

CHANGES = PairVerdict(0.92, 0.03, 0.05)
REPEATS = PairVerdict(0.02, 0.9, 0.08)
NONE = PairVerdict(0.1, 0.1, 0.8)


class ScriptedReader:
    """Answers ``verdicts`` by the two texts, as (earlier, later); others are ``otherwise``.

    A text is meant that ends with the given one: the speaker may stand before it.
    """

    def __init__(
        self,
        verdicts: Mapping[tuple[str, str], PairVerdict] | None = None,
        otherwise: PairVerdict = NONE,
    ) -> None:
        self.verdicts = dict(verdicts or {})
        self.otherwise = otherwise
        self.asked: list[StatementPair] = []

    def read(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        self.asked += pairs
        return [self._verdict(pair) for pair in pairs]

    def _verdict(self, pair: StatementPair) -> PairVerdict:
        for (earlier, later), verdict in self.verdicts.items():
            if pair.earlier.endswith(earlier) and pair.later.endswith(later):
                return verdict
        return self.otherwise


def reading(
    root: Path,
    reader: ScriptedReader | None = None,
    *,
    url: str = "",
    clock: Clock | None = None,
    config: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> MemoryService:
    """A repeatable service that compares by a reader, when it is told to ``settle``."""
    return MemoryService(
        root,
        config={"memory.storage.url": url, **(config or {})},
        clock=clock or FixedClock(),
        ids=CountingIds(),
        environ=environ or {},
        background=False,
        pair_reader=reader,
    )
