"""What an extractor wants decided, held against the rules before anything is decided.

A proposal is taken only between facts of one place that speak of one thing, in favour of what was
said in this page, and never against what a person told or confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memgraph.classification.relations import Statement
from memgraph.consolidation.comparing import Comparer
from memgraph.consolidation.drafts import Draft
from memgraph.consolidation.gating import of_one_thing
from memgraph.consolidation.lookup import is_protected, stands_against
from memgraph.consolidation.matching import Matched, Read
from memgraph.consolidation.ports import ResolutionProposal
from memgraph.model.jobs import RejectedItem
from memgraph.model.values import MAX_REASON_CHARS
from memgraph.storage import consolidation_queries as queries
from memgraph.storage.consolidation_queries import FactRow

MAX_RESOLUTIONS = 20


@dataclass(frozen=True, slots=True)
class Decision:
    """A contradiction to decide. ``winner``: an id, or ``#number`` of a draft to be stored."""

    winner: str
    loser: str
    reason: str
    where: str


def decide(
    read: Read,
    proposals: Sequence[ResolutionProposal],
    drafts: Sequence[Draft],
    matched: Matched,
    comparer: Comparer,
    *,
    at: int,
    where: str,
) -> tuple[list[Decision], list[RejectedItem]]:
    """Split proposals into what may be decided and what may not, each with a code."""
    if not proposals or not drafts:
        faults = [_rejected("resolution.winner", where, n) for n in range(len(proposals))]
        return [], faults
    place = drafts[0].place
    targets = {f"#{each.number}": matched.target(each.number) for each in drafts}
    asked = proposals[:MAX_RESOLUTIONS]
    named = {end for each in asked for end in (each.winner, each.loser)} | set(targets.values())
    with read() as connection:
        known = queries.facts_by_id(connection, sorted(named), place, at=at)
    said = {f"#{each.number}": Statement(each.given.content, each.time) for each in drafts}
    taken: list[Decision] = []
    refused: list[RejectedItem] = []
    for number, each in enumerate(proposals):
        if number >= MAX_RESOLUTIONS:
            refused.append(_rejected("resolution.too_many", where, number))
            break
        winner = targets.get(each.winner, each.winner)
        loser = targets.get(each.loser, each.loser)
        code = _fault(winner, loser, targets, known, {one.loser for one in taken})
        if code is None:
            row = known[loser]
            new = said.get(winner) or Statement(known[winner].content, known[winner].time)
            [guess] = comparer.relations([(Statement(row.content, row.time), new)])
            of_one = of_one_thing(row.content, new.text)
            if guess is None or not of_one or not stands_against(guess):
                code = "resolution.unrelated"
        if code is not None:
            refused.append(_rejected(code, where, number))
            continue
        reason = " ".join(each.reason.split())[: MAX_REASON_CHARS // 2]
        taken.append(Decision(winner, loser, reason, f"{where}, resolution {number}"))
    return taken, refused


def _fault(
    winner: str,
    loser: str,
    targets: dict[str, str],
    known: dict[str, FactRow],
    lost: set[str],
) -> str | None:
    if winner not in targets.values():
        return "resolution.winner"
    if loser not in known or not known[loser].twin:
        return "resolution.loser"
    if winner == loser or winner in lost or loser in lost:
        return "resolution.twice"
    return "resolution.protected" if is_protected(known[loser]) else None


def _rejected(code: str, where: str, number: int) -> RejectedItem:
    return RejectedItem(code=code, where=f"{where}, resolution {number}")
