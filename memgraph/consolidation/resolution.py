"""Check an extractor's resolutions against the rules.

A proposal is accepted only between facts of one place that are about the same thing, and only in
favour of what this page says. It is never accepted against a fact that a person stated or
confirmed, or whose speaker outweighs the winner's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from memgraph.consolidation.comparison import (
    FactMatch,
    NewStatement,
    StatementAuthor,
    find_candidates,
    find_matches,
)
from memgraph.consolidation.drafts import FactDraft
from memgraph.consolidation.ports import KnownFact, ResolutionProposal
from memgraph.model.conversation import SpeakerRole, voice_of
from memgraph.model.enums import CapturedBy, EdgeType, MemoryType, Relation, SourceType
from memgraph.model.jobs import RejectedItem
from memgraph.model.values import MAX_REASON_CHARS, EdgeInput
from memgraph.relations.compare import compare
from memgraph.relations.statement import RelationFinding, Statement
from memgraph.rules.similarity import content_hash
from memgraph.store import entities, memories
from memgraph.store import sessions as queries
from memgraph.store.comparisons import ComparedFact
from memgraph.store.sessions import ComparisonPlace, FactRow
from memgraph.store.snapshot import Snapshot

Read = Callable[[], AbstractContextManager[Snapshot]]


@dataclass(slots=True)
class MatchedDrafts:
    """The result of matching a group of drafts.

    Attributes:
        fresh: the drafts to store, with the evidence of those that repeat them.
        repeats: what a draft repeats, by its number: a stored memory's id, or ``#number``.
        links: the edges to write, with ``#number`` for drafts.
        texts: the contents of the stored memories in ``links``.
        doubtful: the ends of links where no statement mentions a change; a second opinion may help.
        compared: the number of drafts that were compared with the store.
        since: the highest memory key when the store was read.
    """

    fresh: list[FactDraft] = field(default_factory=list)
    repeats: dict[int, str] = field(default_factory=dict)
    links: list[EdgeInput] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    doubtful: set[frozenset[str]] = field(default_factory=set)
    compared: int = 0
    since: int = 0

    def target(self, number: int) -> str:
        """Return what a draft finally resolves to: a memory's id or ``#number``."""
        reference = f"#{number}"
        while reference.startswith("#") and int(reference[1:]) in self.repeats:
            reference = self.repeats[int(reference[1:])]
        return reference


def match(read: Read, drafts: Sequence[FactDraft], *, at: int) -> MatchedDrafts:
    """Compare drafts, all of one place, with one another and with stored facts."""
    matched = MatchedDrafts()
    if not drafts:
        return matched
    new: list[FactDraft] = []
    for draft in drafts:
        _compare_with_page(new, draft, matched)
        if draft.number not in matched.repeats:
            new.append(draft)
    with read() as snapshot:
        matched.since = memories.last_pk(snapshot)
        hashes = {content_hash(item.given.content): item for item in new}
        stored_ids = queries.same_facts(snapshot, hashes, drafts[0].place, at=at)
        for content, memory_id in stored_ids.items():
            matched.repeats[hashes[content].number] = memory_id
        new = [item for item in new if item.number not in matched.repeats]
        results = find_matches(snapshot, _statements(snapshot, new), at=at)
    matched.compared = len(new)
    for draft, matches in zip(new, results, strict=True):
        _join_stored(draft, matches.found, matched)
    matched.links = [link for link in matched.links if not _repeats(link.from_id, matched)]
    matched.links = [link for link in matched.links if not _repeats(link.to_id, matched)]
    matched.fresh = _with_all_evidence(drafts, new, matched)
    return matched


def relation_of(new: str, old: str) -> Relation | None:
    """Return how the content of a new fact relates to that of an older one."""
    finding = compare(Statement.of(old), Statement.of(new))
    return None if finding is None else finding.relation


def _compare_with_page(
    earlier: Sequence[FactDraft], draft: FactDraft, matched: MatchedDrafts
) -> None:
    """Record which earlier drafts of the page a draft repeats, updates or contradicts."""
    for other in earlier:
        first, second = (draft, other) if draft.time < other.time else (other, draft)
        finding = compare(
            Statement.of(first.given.content, first.time),
            Statement.of(second.given.content, second.time),
        )
        if finding is None:
            continue
        if finding.relation is Relation.DUPLICATE:
            matched.repeats[draft.number] = f"#{other.number}"
            return
        same_author = first.author.is_same(second.author)
        _link(f"#{second.number}", f"#{first.number}", finding, matched, same_author=same_author)


def _join_stored(draft: FactDraft, matches: Sequence[FactMatch], matched: MatchedDrafts) -> None:
    """Record which stored fact a draft repeats, or else which it updates or contradicts."""
    for fact_match in matches:
        if fact_match.finding.relation is Relation.DUPLICATE and fact_match.fact.twin:
            matched.repeats[draft.number] = fact_match.memory_id
            return
    for fact_match in matches:
        if fact_match.finding.relation is not Relation.DUPLICATE:
            ends = (f"#{draft.number}", fact_match.memory_id)
            later, earlier = ends if fact_match.new_is_later else ends[::-1]
            _link(later, earlier, fact_match.finding, matched, same_author=fact_match.replaces)
            matched.texts[fact_match.memory_id] = fact_match.content


def _link(
    later: str, earlier: str, finding: RelationFinding, matched: MatchedDrafts, *, same_author: bool
) -> None:
    """Record an update between statements of one author, or else an open contradiction."""
    edge_type = EdgeType.UPDATES if same_author else EdgeType.CONTRADICTS
    link = EdgeInput(from_id=later, to_id=earlier, edge_type=edge_type, reason=finding.reason)
    matched.links.append(link)
    if not finding.changed:
        matched.doubtful.add(frozenset((later, earlier)))


def _statements(snapshot: Snapshot, drafts: Sequence[FactDraft]) -> list[NewStatement]:
    """Return the drafts for comparison, each with the entity of its speaker.

    "I moved to Bergen" has no word in common with "I live in Oslo", only the speaker.
    """
    keys = {draft.author.speaker for draft in drafts if draft.author.speaker is not None}
    speakers = entities.meant_by(snapshot, keys)
    return [
        NewStatement(
            draft.given.content,
            draft.time,
            draft.place,
            draft.author,
            entity_pks=tuple(speakers[key] for key in (draft.author.speaker,) if key in speakers),
        )
        for draft in drafts
    ]


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


def _repeats(reference: str, matched: MatchedDrafts) -> bool:
    return reference.startswith("#") and int(reference[1:]) in matched.repeats


class StoredFacts:
    """``KnownFacts`` of one place: only facts of its scope and agent, up to its sensitivity."""

    def __init__(self, read: Read, place: ComparisonPlace, at: int) -> None:
        self._read = read
        self._place = place
        self._at = at

    def conflicting(self, text: str, time_ms: int | None = None) -> Sequence[KnownFact]:
        """Return facts that may be about the subject of a statement made then (None: now)."""
        author = StatementAuthor.of(
            text,
            captured_by=CapturedBy.EXTRACTOR.value,
            source_type=SourceType.CHANNEL_TRANSCRIPT.value,
        )
        time = self._at if time_ms is None else time_ms
        new = NewStatement(text, time, self._place, author)
        with self._read() as snapshot:
            [candidates] = find_candidates(snapshot, [new], at=self._at)
        return [_known(fact) for fact in candidates.facts if fact.content != text]


class ProtectionFacts(Protocol):
    """The fields that decide whether a fact is protected."""

    @property
    def captured_by(self) -> str: ...

    @property
    def source_type(self) -> str: ...

    @property
    def confidence(self) -> float: ...


def is_protected(row: ProtectionFacts) -> bool:
    """Return True for a fact that a person stated or confirmed: no model may decide against it."""
    stated_by_user = row.captured_by == CapturedBy.USER and row.source_type == SourceType.MANUAL
    return stated_by_user or row.confidence >= 1.0


def _known(fact: ComparedFact) -> KnownFact:
    return KnownFact(
        memory_id=fact.memory_id,
        content=fact.content,
        type=MemoryType(fact.type),
        confidence=fact.confidence,
        time_ms=fact.time,
        protected=is_protected(fact),
    )


MAX_RESOLUTIONS = 20


@dataclass(frozen=True, slots=True)
class ResolutionDecision:
    """A contradiction to decide. ``winner``: an id, or ``#number`` of a draft to be stored."""

    winner: str
    loser: str
    reason: str
    where: str


def decide(
    read: Read,
    proposals: Sequence[ResolutionProposal],
    drafts: Sequence[FactDraft],
    matched: MatchedDrafts,
    *,
    dismissed: Collection[frozenset[str]] = (),
    at: int,
    where: str,
) -> tuple[list[ResolutionDecision], list[RejectedItem]]:
    """Split proposals into decisions to apply and rejected ones with their codes.

    Args:
        dismissed: pairs that are not contradictions according to a second opinion.
    """
    if not proposals or not drafts:
        faults = [_rejected("resolution.winner", where, n) for n in range(len(proposals))]
        return [], faults
    place = drafts[0].place
    targets = {f"#{proposal.number}": matched.target(proposal.number) for proposal in drafts}
    considered = proposals[:MAX_RESOLUTIONS]
    ids = {end for proposal in considered for end in (proposal.winner, proposal.loser)} | set(
        targets.values()
    )
    with read() as snapshot:
        facts = queries.facts_by_id(snapshot, sorted(ids), place, at=at)
        spoken = queries.speakers(snapshot, facts)
    voices = _Voices(_winners(drafts, matched), spoken)
    contents = {f"#{proposal.number}": proposal.given.content for proposal in drafts}
    decisions: list[ResolutionDecision] = []
    refused: list[RejectedItem] = []
    for number, proposal in enumerate(proposals):
        if number >= MAX_RESOLUTIONS:
            refused.append(_rejected("resolution.too_many", where, number))
            break
        winner = targets.get(proposal.winner, proposal.winner)
        loser = targets.get(proposal.loser, proposal.loser)
        code = _fault(winner, loser, voices, facts, {decision.loser for decision in decisions})
        if code is None and frozenset((winner, loser)) in dismissed:
            code = "resolution.dismissed"
        if code is None:
            new = contents.get(winner) or facts[winner].content
            if not _stands_against(proposal, new, facts[loser].content):
                code = "resolution.unrelated"
        if code is not None:
            refused.append(_rejected(code, where, number))
            continue
        reason = " ".join(proposal.reason.split())[: MAX_REASON_CHARS // 2]
        decisions.append(ResolutionDecision(winner, loser, reason, f"{where}, resolution {number}"))
    return decisions, refused


def _stands_against(proposal: ResolutionProposal, winner: str, loser: str) -> bool:
    """Return True if two statements are opposed by the rules, or contain what the model cites."""
    relation = relation_of(winner, loser)
    if relation is not None:
        return relation is not Relation.DUPLICATE
    return proposal.is_grounded_in(winner, loser)


class _Voices(NamedTuple):
    """The speakers of both sides.

    ``winners`` has the role for each fact that may win, ``spoken`` the roles for stored facts.
    """

    winners: dict[str, SpeakerRole]
    spoken: dict[str, list[tuple[str | None, str | None]]]

    def outweighed(self, winner: str, loser: str) -> bool:
        """Return True when the loser's speaker outweighs the winner's."""
        against = (voice_of(*turn).weight for turn in self.spoken.get(loser, ()))
        return self.winners[winner].weight < max(against, default=0)


def _winners(drafts: Sequence[FactDraft], matched: MatchedDrafts) -> dict[str, SpeakerRole]:
    """Return the facts that may win, each with the weightiest role that states it in the page.

    A stored fact that the page only repeats counts if a person repeats it: others may repeat what
    they were told.
    """
    winners: dict[str, SpeakerRole] = {}
    for draft in drafts:
        target = matched.target(draft.number)
        if target.startswith("#") or draft.voice is SpeakerRole.PERSON:
            winners[target] = max(
                winners.get(target, draft.voice), draft.voice, key=lambda v: v.weight
            )
    return winners


def _fault(
    winner: str,
    loser: str,
    voices: _Voices,
    facts: dict[str, FactRow],
    lost: set[str],
) -> str | None:
    if winner not in voices.winners:
        return "resolution.winner"
    if loser not in facts or not facts[loser].twin:
        return "resolution.loser"
    if winner == loser or winner in lost or loser in lost:
        return "resolution.twice"
    if is_protected(facts[loser]):
        return "resolution.protected"
    return "resolution.speaker" if voices.outweighed(winner, loser) else None


def _rejected(code: str, where: str, number: int) -> RejectedItem:
    return RejectedItem(code=code, where=f"{where}, resolution {number}")
