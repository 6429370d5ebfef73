"""Apply what a page says about a known memory: another one replaces it, or it has ended.

It takes effect if the memory is about the speaker, if the speaker said it, or if the speaker is the
orchestrator's user. Otherwise, and against what is protected, a contradiction is opened. What was
said later holds, whenever it happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from memgraph.model.conversation import PERSONS, SpeakerRole, voice_of
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus
from memgraph.model.values import MAX_REASON_CHARS, EdgeInput, Memory
from memgraph.operations.write.changes import is_protected
from memgraph.operations.write.comparisons import BELOW_FORCE
from memgraph.operations.write.edges import EdgeWriter, StoredBatch
from memgraph.operations.write.entity_links import speaker_named
from memgraph.rules.lifecycle import StatusAction, ended_by, next_status
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import (
    comparisons,
    entities,
    entity_records,
    journal,
    memories,
    sessions,
    supports,
)
from memgraph.store.sessions import TurnRow
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot

_USER: Final = "user"


class ChangeOutcome(StrEnum):
    """The effect of a change. GONE: the memory is not active any more."""

    REPLACED = "replaced"
    CONTRADICTED = "contradicted"
    EARLIER = "said_before"
    GONE = "gone"


class KnownChange(NamedTuple):
    """What a page says about a stored memory.

    Attributes:
        old_id: the memory that does not hold any more.
        new_id: the memory that replaces it; None: it has ended.
        cited: the turns that say so.
        quoted: the turn with the words that say it most clearly.
        quote: these words.
    """

    old_id: str
    new_id: str | None
    cited: tuple[TurnRow, ...]
    quoted: TurnRow
    quote: str

    @property
    def said_at(self) -> int:
        """When it was said, milliseconds; never after it was stored."""
        return max(min(turn.at, turn.stored_at) for turn in self.cited)


@dataclass(frozen=True, slots=True)
class Replacer:
    """Applies changes within one transaction.

    Attributes:
        model: the name of the model that found them.
    """

    opened: OpenOrchestrator
    transaction: JournalledTransaction
    model: str

    def apply(self, change: KnownChange) -> tuple[ChangeOutcome, list[EdgeInput]]:
        """Apply one change; return its outcome and the edges that were written for it."""
        transaction = self.transaction
        if not memories.active_ids(transaction, [change.old_id]):
            return ChangeOutcome.GONE, []
        old = memories.get(transaction, change.old_id)
        is_free = not is_protected(transaction, old.memory_id)
        by_same = speaks_for(transaction, change.quoted, old)
        is_later = change.said_at >= comparisons.said_at(transaction, change.old_id)
        reason = self._reason(change)
        newer = change.new_id or change.quoted.memory_id
        outcome, links = ChangeOutcome.CONTRADICTED, []
        if not is_later:
            if change.new_id is None:
                return ChangeOutcome.EARLIER, []
            outcome = ChangeOutcome.EARLIER
            kind = EdgeType.UPDATES if by_same else EdgeType.CONTRADICTS
            links.append(_edge(change.old_id, newer, kind, reason))
        elif not (is_free and by_same):
            links.append(_edge(newer, change.old_id, EdgeType.CONTRADICTS, reason))
        elif change.new_id is not None:
            outcome = ChangeOutcome.REPLACED
            links.append(_edge(newer, change.old_id, EdgeType.UPDATES, reason))
        else:
            outcome = ChangeOutcome.REPLACED
            self._end(change)
        if is_later:
            links += self._marks_behind(change, by_same, reason)
        stored = self._write(links)
        if (
            outcome is ChangeOutcome.REPLACED
            and change.new_id is not None
            and links[0] not in stored
        ):
            outcome = ChangeOutcome.GONE
        return outcome, stored

    def _reason(self, change: KnownChange) -> str:
        said = f"by {self.model}: {change.quoted.source_role or 'someone'} said: “{change.quote}”"
        return said if len(said) <= MAX_REASON_CHARS else f"{said[: MAX_REASON_CHARS - 1]}…"

    def _end(self, change: KnownChange) -> None:
        """Supersede a memory that ended without a successor."""
        status = next_status(MemoryStatus.ACTIVE, StatusAction.SUPERSEDE)
        by = change.quoted.memory_id
        memories.set_status(self.transaction, change.old_id, status, reason=ended_by(by))
        details = {"by": by, "ended": True}
        self.transaction.record([NewEntry("supersede", change.old_id, details)])

    def _marks_behind(self, change: KnownChange, by_same: bool, reason: str) -> Iterable[EdgeInput]:
        cited = {turn.memory_id for turn in change.cited}
        kind = EdgeType.UPDATES if by_same else EdgeType.CONTRADICTS
        behind = sessions.derived_from(self.transaction, change.old_id) - cited
        for turn in memories.get_many(self.transaction, sorted(behind)):
            if turn.kind is MemoryKind.EPISODE and turn.status is MemoryStatus.ACTIVE:
                yield _edge(change.quoted.memory_id, turn.memory_id, kind, reason, BELOW_FORCE)

    def _write(self, links: Sequence[EdgeInput]) -> list[EdgeInput]:
        written = StoredBatch()
        outcomes = EdgeWriter(self.opened.ids).join_all(self.transaction, links, written)
        self.transaction.record(written.entries)
        return [
            link
            for link, outcome in zip(links, outcomes, strict=True)
            if outcome.outcome == "stored"
        ]


def speaks_for(snapshot: Snapshot, turn: TurnRow, old: Memory) -> bool:
    """Return True if the speaker of a turn may replace a memory.

    A speaker that an ingested file names counts as that file, and an agent only for what agents
    said. Turns of another writer than those behind the memory have another user.
    """
    if turn.source_path is not None or turn.content_sha256 is not None:
        path = turn.source_path
        return path is not None and supports.paths(snapshot, old.memory_id) == {path}
    voice = voice_of(turn.source_role, turn.told_as)
    turns = sessions.speakers(snapshot, [old.memory_id]).get(old.memory_id, [])
    if old.source_role is not None:
        turns = [*turns, (old.source_role, None)]
    before = journal.authors_of_turns(snapshot, old.memory_id)
    if before and journal.author_of(snapshot, turn.memory_id) not in before:
        return False
    if voice is SpeakerRole.AGENT:
        voices = {voice_of(*each) for each in turns}
        return voices == {SpeakerRole.AGENT} and _names(turns) == {_name(turn.source_role)}
    own = _name(turn.source_role)
    is_of_file = supports.paths(snapshot, old.memory_id) != {None}
    if own == _USER or (own in _names(turns) and not is_of_file):
        return True
    named = speaker_named(turn.source_role or "", turn.told_as)
    if named is None:
        return False
    meant = entities.meant_by(snapshot, {named.key}).values()
    return bool(set(meant) & set(entity_records.of_memory(snapshot, old.memory_id)))


def _names(turns: Iterable[tuple[str | None, str | None]]) -> set[str]:
    return {_name(role) for role, _ in turns}


def _name(role: str | None) -> str:
    folded = " ".join((role or "").split()).casefold()
    return _USER if folded in PERSONS else folded


def _edge(from_id: str, to_id: str, kind: EdgeType, reason: str, weight: float = 1.0) -> EdgeInput:
    return EdgeInput(from_id=from_id, to_id=to_id, edge_type=kind, weight=weight, reason=reason)
