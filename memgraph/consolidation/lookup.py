"""The store as an extractor may look into it: facts of the page's place, in short reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memgraph.consolidation.comparing import Author, NewStatement, find_candidates
from memgraph.consolidation.matching import Read
from memgraph.consolidation.ports import KnownFact
from memgraph.model.enums import CapturedBy, MemoryType, SourceType
from memgraph.store.comparisons import ComparedFact
from memgraph.store.sessions import Place


class StoredFacts:
    """``KnownFacts`` of one place. Nothing of another scope or agent, or above its sensitivity."""

    def __init__(self, read: Read, place: Place, at: int) -> None:
        self._read = read
        self._place = place
        self._at = at

    def conflicting(self, text: str, time_ms: int | None = None) -> Sequence[KnownFact]:
        """Return facts that may speak of the subject of a statement of that time (None: now)."""
        author = Author.of(
            text,
            captured_by=CapturedBy.EXTRACTOR.value,
            source_type=SourceType.CHANNEL_TRANSCRIPT.value,
        )
        time = self._at if time_ms is None else time_ms
        new = NewStatement(text, time, self._place, author)
        with self._read() as snapshot:
            [found] = find_candidates(snapshot, [new], at=self._at)
        return [_known(fact) for fact in found.facts if fact.content != text]


class Standing(Protocol):
    """What protection is decided on."""

    @property
    def captured_by(self) -> str: ...

    @property
    def source_type(self) -> str: ...

    @property
    def confidence(self) -> float: ...


def is_protected(row: Standing) -> bool:
    """Return True for what a person confirmed or told: no model decides against it."""
    told = row.captured_by == CapturedBy.USER and row.source_type == SourceType.MANUAL
    return told or row.confidence >= 1.0


def _known(fact: ComparedFact) -> KnownFact:
    return KnownFact(
        memory_id=fact.memory_id,
        content=fact.content,
        type=MemoryType(fact.type),
        confidence=fact.confidence,
        time_ms=fact.time,
        protected=is_protected(fact),
    )
