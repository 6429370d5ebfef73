"""Match an extractor's drafts with the stored facts that they repeat, and check its resolutions.

A resolution is accepted only between facts of one place that contain the words which the model
cites, and only in favour of what this page says. It is never accepted against a fact that a person
confirmed, or whose speaker outweighs the winner's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

from memgraph.consolidation.comparison import NewStatement, find_candidates
from memgraph.consolidation.drafts import FactDraft
from memgraph.consolidation.ports import KnownFact, ResolutionProposal
from memgraph.model.conversation import SpeakerRole, voice_of
from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.model.jobs import RejectedItem
from memgraph.model.values import MAX_REASON_CHARS
from memgraph.rules.similarity import Similarity, compare, content_hash
from memgraph.store import edges, memories
from memgraph.store import sessions as queries
from memgraph.store.comparisons import ComparedMemory
from memgraph.store.sessions import ComparisonPlace, FactRow
from memgraph.store.snapshot import Snapshot

Read = Callable[[], AbstractContextManager[Snapshot]]


@dataclass(slots=True)
class MatchedDrafts:
    """The result of matching a group of drafts.

    Attributes:
        fresh: the drafts to store, with the evidence of those that repeat them.
        repeats: what a draft repeats, by its number: a stored memory's id, or ``#number``.
        since: the highest memory key when the store was read.
    """

    fresh: list[FactDraft] = field(default_factory=list)
    repeats: dict[int, str] = field(default_factory=dict)
    since: int = 0

    def target(self, number: int) -> str:
        """Return what a draft finally resolves to: a memory's id or ``#number``."""
        reference = f"#{number}"
        while reference.startswith("#") and int(reference[1:]) in self.repeats:
            reference = self.repeats[int(reference[1:])]
        return reference


def match(read: Read, drafts: Sequence[FactDraft], *, at: int) -> MatchedDrafts:
    """Find what drafts, all of one place, repeat: one another, or stored facts."""
    matched = MatchedDrafts()
    if not drafts:
        return matched
    new: list[FactDraft] = []
    for draft in drafts:
        same = (each.number for each in new if repeats(each.given.content, draft.given.content))
        number = next(same, None)
        if number is None:
            new.append(draft)
        else:
            matched.repeats[draft.number] = f"#{number}"
    place = drafts[0].place
    with read() as snapshot:
        matched.since = memories.last_pk(snapshot)
        hashes = {content_hash(item.given.content): item for item in new}
        for content, memory_id in queries.same_facts(snapshot, hashes, place, at=at).items():
            matched.repeats[hashes[content].number] = memory_id
        for draft in new:
            if draft.number not in matched.repeats:
                statement = NewStatement(draft.given.content, place)
                found = find_candidates(snapshot, statement, at=at)
                ids = [fact.memory_id for fact in found if fact.kind == MemoryKind.FACT]
                rows = queries.facts_by_id(snapshot, ids, place, at=at)
                twins = (
                    memory_id
                    for memory_id in ids
                    if memory_id in rows
                    and rows[memory_id].twin
                    and repeats(rows[memory_id].content, draft.given.content)
                )
                if (twin := next(twins, None)) is not None:
                    matched.repeats[draft.number] = twin
    matched.fresh = _with_all_evidence(drafts, new, matched)
    return matched


def repeats(stored: str, new: str) -> bool:
    """Return True if a fact that an extractor drew from turns repeats another.

    They share three quarters of their words, and all names, numbers and negations.
    """
    return compare(stored, new) is not Similarity.DIFFERENT


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


class StoredFacts:
    """``KnownFacts`` of one place: only facts of its scope and agent, up to its sensitivity."""

    def __init__(self, read: Read, place: ComparisonPlace, at: int) -> None:
        self._read = read
        self._place = place
        self._at = at

    def conflicting(self, text: str) -> Sequence[KnownFact]:
        """Return facts that may be about the subject of a statement."""
        with self._read() as snapshot:
            found = find_candidates(snapshot, NewStatement(text, self._place), at=self._at)
            facts = [each for each in found if each.kind == MemoryKind.FACT]
            return [_known(snapshot, fact) for fact in facts if fact.content != text]


def _known(snapshot: Snapshot, fact: ComparedMemory) -> KnownFact:
    return KnownFact(
        memory_id=fact.memory_id,
        content=fact.content,
        type=MemoryType(fact.type),
        confidence=fact.confidence,
        time_ms=fact.said_at,
        protected=edges.was_confirmed(snapshot, fact.memory_id, until=None),
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
    at: int,
    where: str,
) -> tuple[list[ResolutionDecision], list[RejectedItem]]:
    """Split proposals into decisions to apply and rejected ones with their codes."""
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
        confirmed = {one for one in facts if edges.was_confirmed(snapshot, one, until=None)}
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
        if code is None and loser in confirmed:
            code = "resolution.protected"
        if code is None:
            new = contents.get(winner) or facts[winner].content
            if not proposal.is_grounded_in(new, facts[loser].content):
                code = "resolution.unrelated"
        if code is not None:
            refused.append(_rejected(code, where, number))
            continue
        reason = " ".join(proposal.reason.split())[: MAX_REASON_CHARS // 2]
        decisions.append(ResolutionDecision(winner, loser, reason, f"{where}, resolution {number}"))
    return decisions, refused


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
    return "resolution.speaker" if voices.outweighed(winner, loser) else None


def _rejected(code: str, where: str, number: int) -> RejectedItem:
    return RejectedItem(code=code, where=f"{where}, resolution {number}")
