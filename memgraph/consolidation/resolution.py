"""Check an extractor's resolutions against the rules.

A proposal is taken only between facts of one place that speak of one thing, in favour of what was
said in this page, and never against what a person told or confirmed, or said while the other side
was said by none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memgraph.consolidation.drafts import FactDraft
from memgraph.consolidation.matches import MatchedDrafts, Read, is_protected, relation_of
from memgraph.consolidation.ports import ResolutionProposal
from memgraph.model.conversation import SpeakerRole, voice_of
from memgraph.model.enums import Relation
from memgraph.model.jobs import RejectedItem
from memgraph.model.values import MAX_REASON_CHARS
from memgraph.store import sessions as queries
from memgraph.store.sessions import FactRow

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
    """Split proposals into what may be decided and what may not, each with a code.

    Args:
        dismissed: pairs that a second opinion took for no contradiction.
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
    """Return whether the rules find two statements opposed, or both hold what a model cites."""
    relation = relation_of(winner, loser)
    if relation is not None:
        return relation is not Relation.DUPLICATE
    return proposal.is_grounded_in(winner, loser)


class _Voices(NamedTuple):
    """The speakers of both sides: ``winners`` by what may win, ``spoken`` the roles behind stored
    facts.
    """

    winners: dict[str, SpeakerRole]
    spoken: dict[str, list[tuple[str | None, str | None]]]

    def outweighed(self, winner: str, loser: str) -> bool:
        """Return True when the loser's speaker outweighs the winner's."""
        against = (voice_of(*turn).weight for turn in self.spoken.get(loser, ()))
        return self.winners[winner].weight < max(against, default=0)


def _winners(drafts: Sequence[FactDraft], matched: MatchedDrafts) -> dict[str, SpeakerRole]:
    """Return what this page says anew, each with the weightiest voice that says it in the page.

    What is stored and only said again counts where a person says it: others repeat what they know.
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
