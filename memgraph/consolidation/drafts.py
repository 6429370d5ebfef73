"""Turn candidates into drafts, and match these with the stored facts that they repeat.

A turn is untrusted text: it determines a fact's content and place, but it cannot define an
identity, make a fact certain, or give it a scope other than its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from memgraph.consolidation.comparison import NewStatement, find_candidates
from memgraph.consolidation.ports import FactCandidate, NamedEntity, PageTurn
from memgraph.errors import InvalidInput
from memgraph.model.conversation import SpeakerRole, voice_of
from memgraph.model.enums import CapturedBy, MemoryKind, MemoryType, SourceType
from memgraph.model.jobs import RejectedItem
from memgraph.model.values import MemoryInput, Source, validated
from memgraph.rules.proposals import MAX_CONFIDENCE, MAX_CONTENT_CHARS, MAX_IMPORTANCE, is_quoted
from memgraph.rules.similarity import content_hash, is_near, same_order
from memgraph.store import memories
from memgraph.store.sessions import ComparisonPlace, TurnRow, same_facts
from memgraph.store.snapshot import Snapshot

# The maximum confidence in what an agent says, whichever extractor read it.
MAX_AGENT_CONFIDENCE = 0.5


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact that may be stored.

    Attributes:
        number: its position in the page's proposal.
        given: the memory to be written; its ``key`` is ``number`` as text.
        place: the scope, agent and sensitivity of its turns.
        voice: the role that said the quoted words; of several, the one with the most weight.
        changes: the id of the stored memory that it replaces, if any.
        entities: what it names, as a model says.
    """

    number: int
    given: MemoryInput
    place: ComparisonPlace
    voice: SpeakerRole
    changes: str | None = None
    entities: tuple[NamedEntity, ...] = ()

    @property
    def evidence(self) -> tuple[str, ...]:
        """The ids of the turns that it is based on."""
        return self.given.derived_from

    def with_evidence(self, further: Sequence[str]) -> FactDraft:
        """Return the same fact with further turns as evidence."""
        merged = tuple(dict.fromkeys((*self.evidence, *further)))
        return replace(self, given=self.given.model_copy(update={"derived_from": merged}))


def turn_of(row: TurnRow) -> PageTurn:
    return PageTurn(
        row.memory_id,
        row.content,
        row.source_role or "",
        row.at,
        row.told_as,
        dated=bool(row.dated),
    )


def place_of(row: TurnRow) -> ComparisonPlace:
    return ComparisonPlace(row.scope, row.scope_id, row.agent_id, row.sensitivity)


def groups_of(rows: Sequence[TurnRow]) -> dict[ComparisonPlace, list[TurnRow]]:
    """Group turns by place, in the order of their first turns, so that places are never mixed."""
    groups: dict[ComparisonPlace, list[TurnRow]] = {}
    for row in rows:
        groups.setdefault(place_of(row), []).append(row)
    return groups


def draft(
    candidate: FactCandidate, number: int, turns: Mapping[str, TurnRow], session_id: str
) -> FactDraft | RejectedItem:
    """Check a candidate against the rules; return a draft of the fact, or its rejection.

    Args:
        turns: the page's turns by id, all of one place; they must include the evidence.
    """
    where = f"session {session_id}, fact {number}"
    code = _fault(candidate, turns)
    if code is not None:
        return RejectedItem(code=code, where=where)
    voice = _voice(candidate, turns)
    if voice is SpeakerRole.SILENT:
        return RejectedItem(code="fact.silent", where=where)
    max_confidence = MAX_AGENT_CONFIDENCE if voice is SpeakerRole.AGENT else MAX_CONFIDENCE
    rows = [turns[turn_id] for turn_id in dict.fromkeys(candidate.evidence)]
    place, event_time = place_of(rows[0]), candidate.event_time
    if event_time is None:
        event_time = max((row.at for row in rows if row.dated), default=None)
    fields = {
        "key": str(number),
        "content": " ".join(candidate.content.split()),
        "kind": MemoryKind.FACT,
        "type": candidate.type,
        "importance": candidate.importance,
        "confidence": min(candidate.confidence, max_confidence),
        "sensitivity": place.sensitivity,
        "scope": place.scope,
        "scope_id": place.scope_id,
        "agent_id": place.agent_id,
        "session_id": session_id,
        "event_time": event_time,
        # What a person said does not decay, whoever wrote it down.
        "decay_rate": None if voice is SpeakerRole.AGENT else 0.0,
        "attributes": candidate.attributes,
        "source": source_of(rows, session_id),
        "derived_from": tuple(row.memory_id for row in rows),
    }
    try:
        given = validated(MemoryInput, fields)
    except InvalidInput as error:
        return RejectedItem(code=error.code, where=where)
    return FactDraft(number, given, place, voice, candidate.changes, candidate.entities)


def source_of(rows: Sequence[TurnRow], session_id: str) -> Source:
    """Return the conversation as a source, with the file or run that all turns share, if any.

    It has no locator: the fact is derived from the turns, which have their own.
    """

    def common(values: set[str | None]) -> str | None:
        return values.pop() if len(values) == 1 else None

    return Source(
        source_type=SourceType.CHANNEL_TRANSCRIPT,
        source_path=common({row.source_path for row in rows}),
        conversation_id=session_id,
        workflow_run_id=common({row.workflow_run_id for row in rows}),
        step_id=common({row.step_id for row in rows}),
        captured_by=CapturedBy.EXTRACTOR,
        content_sha256=common({row.content_sha256 for row in rows}),
    )


def _fault(candidate: FactCandidate, turns: Mapping[str, TurnRow]) -> str | None:
    if not candidate.evidence:
        return "fact.no_evidence"
    if not all(turn_id in turns for turn_id in candidate.evidence):
        return "fact.foreign_evidence"
    if candidate.type is MemoryType.IDENTITY:
        return "fact.identity"
    if not 0 < len(candidate.content.strip()) <= MAX_CONTENT_CHARS:
        return "fact.content"
    if not 0 <= candidate.importance <= MAX_IMPORTANCE:
        return "fact.importance"
    if not 0.0 <= candidate.confidence <= MAX_CONFIDENCE:
        return "fact.confidence"
    return None if _quoted(candidate, turns) else "fact.quote"


def _quoted(candidate: FactCandidate, turns: Mapping[str, TurnRow]) -> list[TurnRow]:
    rows = [turns[turn_id] for turn_id in candidate.evidence]
    return [row for row in rows if is_quoted(candidate.quote, row.content)]


def _voice(candidate: FactCandidate, turns: Mapping[str, TurnRow]) -> SpeakerRole:
    voices = [voice_of(row.source_role, row.told_as) for row in _quoted(candidate, turns)]
    return max(voices, key=lambda voice: (voice.weight, voice is SpeakerRole.AGENT))


# What drafts repeat.


@dataclass(slots=True)
class MatchedDrafts:
    """The result of matching a group of drafts.

    Attributes:
        fresh: the drafts to store, with the evidence of those that repeat them.
        repeats: what a draft repeats, by its number: a stored memory's id, or ``#number``.
        last_pk: the key of the last memory when they were matched.
    """

    fresh: list[FactDraft] = field(default_factory=list)
    repeats: dict[int, str] = field(default_factory=dict)
    last_pk: int = 0

    def target(self, number: int) -> str:
        """Return what a draft finally resolves to: a memory's id or ``#number``."""
        reference = f"#{number}"
        while reference.startswith("#") and int(reference[1:]) in self.repeats:
            reference = self.repeats[int(reference[1:])]
        return reference


def match(snapshot: Snapshot, drafts: Sequence[FactDraft], *, at: int) -> MatchedDrafts:
    """Find what drafts, all of one place, repeat: one another, or stored facts."""
    matched = MatchedDrafts()
    if not drafts:
        return matched
    new: list[FactDraft] = []
    for draft in drafts:
        # A change is stored as it is: it may differ from what it changes by the order of words.
        same = (
            each.number
            for each in new
            if draft.changes is None and repeats(each.given.content, draft.given.content)
        )
        number = next(same, None)
        if number is None:
            new.append(draft)
        else:
            matched.repeats[draft.number] = f"#{number}"
    place = drafts[0].place
    matched.last_pk = memories.last_pk(snapshot)
    hashes = {content_hash(item.given.content): item for item in new}
    for content, memory_id in same_facts(snapshot, hashes, place, at=at).items():
        matched.repeats[hashes[content].number] = memory_id
    for draft in new:
        if draft.number not in matched.repeats and draft.changes is None:
            statement = NewStatement(draft.given.content, place)
            found = find_candidates(snapshot, statement, at=at)
            twins = (
                fact.memory_id
                for fact in found
                if fact.kind == MemoryKind.FACT
                and fact.agent_id == place.agent_id
                and fact.sensitivity == place.sensitivity
                and repeats(fact.content, draft.given.content)
            )
            if (twin := next(twins, None)) is not None:
                matched.repeats[draft.number] = twin
    matched.fresh = _with_all_evidence(drafts, new, matched)
    return matched


def repeats(stored: str, new: str) -> bool:
    """Return True if a fact that an extractor drew from turns repeats another.

    They share three quarters of their words, in one order, and all names, numbers and negations.
    """
    return is_near(stored, new) and same_order(stored, new)


def _with_all_evidence(
    drafts: Sequence[FactDraft], new: Sequence[FactDraft], matched: MatchedDrafts
) -> list[FactDraft]:
    """Return the drafts to be stored, each with the evidence of those that repeat it."""
    fresh = {f"#{draft.number}": draft for draft in new if draft.number not in matched.repeats}
    for draft in drafts:
        target = matched.target(draft.number)
        if draft.number in matched.repeats and target in fresh:
            fresh[target] = fresh[target].with_evidence(draft.evidence)
    return list(fresh.values())
