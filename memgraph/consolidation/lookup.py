"""The store as an extractor may look into it: facts of the page's place, in short reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memgraph.classification.relations import RelationGuess, Statement
from memgraph.consolidation.comparing import Comparer, is_one_claim
from memgraph.consolidation.gating import of_one_thing
from memgraph.consolidation.matching import Read, beside
from memgraph.consolidation.ports import KnownFact
from memgraph.model.enums import CapturedBy, MemoryType, Relation, SourceType
from memgraph.storage.consolidation_queries import FactRow, Place

MAX_FOUND = 50
# Below the classifier's own threshold: an extractor that asks looks for itself.
LIKELY = 0.25


class StoredFacts:
    """``KnownFacts`` of one place. Nothing of another scope or agent, or above its sensitivity."""

    def __init__(self, read: Read, place: Place, comparer: Comparer, at: int) -> None:
        self._read = read
        self._place = place
        self._comparer = comparer
        self._at = at

    def conflicting(self, text: str, time_ms: int | None = None) -> Sequence[KnownFact]:
        """Facts that may contradict a statement of that time (None: now)."""
        new = Statement(text, self._at if time_ms is None else time_ms)
        with self._read() as connection:
            [found] = beside(connection, [text], self._place, at=self._at, limit=MAX_FOUND)
        rows = [
            row for row in found if is_one_claim(row.content) and of_one_thing(text, row.content)
        ]
        said = self._comparer.relations([(Statement(row.content, row.time), new) for row in rows])
        return [
            _known(row)
            for row, guess in zip(rows, said, strict=True)
            if guess is not None and stands_against(guess)
        ]


def stands_against(guess: RelationGuess) -> bool:
    """Whether the classifier finds it likely that one of two statements replaces the other."""
    if guess.relation in (Relation.CONTRADICTS, Relation.UPDATES):
        return True
    odds = guess.probabilities
    return odds[Relation.CONTRADICTS] + odds[Relation.UPDATES] >= LIKELY


class Standing(Protocol):
    """What protection is decided on."""

    @property
    def captured_by(self) -> str: ...

    @property
    def source_type(self) -> str: ...

    @property
    def confidence(self) -> float: ...


def is_protected(row: Standing) -> bool:
    """Return whether a person stated or confirmed it: no model decides against it."""
    told = row.captured_by == CapturedBy.USER and row.source_type == SourceType.MANUAL
    return told or row.confidence >= 1.0


def _known(row: FactRow) -> KnownFact:
    return KnownFact(
        memory_id=row.memory_id,
        content=row.content,
        type=MemoryType(row.type),
        confidence=row.confidence,
        time_ms=row.time,
        protected=is_protected(row),
    )
