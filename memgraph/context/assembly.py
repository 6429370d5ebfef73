"""Select the memories of a context, and fit them into its token budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from memgraph.context.candidates import ContextCandidate, distinct, ranked
from memgraph.context.items import item_of
from memgraph.context.selection import BlockPlan, Filling
from memgraph.errors import ConfirmationMissing
from memgraph.model.context import MAX_LEFT_OUT, OmittedMemory, PackedItem, TierShares, TierUse
from memgraph.model.enums import Scope
from memgraph.model.values import built
from memgraph.rules.budget import allocated, counted, divided, reached, select_within, token_cost
from memgraph.rules.lines import BlockLine, frame_cost, in_time

OVER_BUDGET, TOO_LARGE, MAX_ITEMS, DUPLICATE = "over_budget", "too_large", "max_items", "duplicate"
QUERY = "query"
# A cut line may take half of what its tier can have, or what uncut lines leave, but at least 120
# tokens.
_LEAST_LINE, _ITEMS_OF_A_TIER = 120, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPlan(BlockPlan):
    """The plan of a context; what repeats its query is left out. See ``ContextRequest``."""

    shares: TierShares
    head_tail: int
    max_items: int
    query: str = ""


class AssembledContext(NamedTuple):
    """The fields of a ``ContextPackage`` that depend on the chosen memories.

    ``left_out_reasons`` is the number of omitted memories by reason.
    """

    items: tuple[PackedItem, ...]
    text: str
    token_cost: int
    tiers: dict[Scope, TierUse]
    left_out: tuple[OmittedMemory, ...]
    left_out_count: int
    left_out_reasons: Mapping[str, int]
    compression_ratio: float


@dataclass(frozen=True, slots=True)
class _Line:
    """A candidate as it would be written, with the reasons for its rank.

    ``place`` is its rank within its tier, from 0.
    """

    candidate: ContextCandidate
    line: BlockLine
    cost: int
    reasons: tuple[str, ...]
    place: int

    @property
    def memory_id(self) -> str:
        return self.candidate.memory.memory_id

    @property
    def shortened(self) -> bool:
        return self.line.text != self.candidate.line.text


def assembled(candidates: Iterable[ContextCandidate], plan: ContextPlan) -> AssembledContext:
    """Assemble a context from candidates, one for each memory.

    Candidates of a tier without a share are ignored.
    """
    weights = {tier: plan.shares.of(tier) for tier in Scope}
    offered = [candidate for candidate in candidates if weights[candidate.tier] > 0.0]
    candidates_by_id = sorted(offered, key=lambda each: each.memory.memory_id)
    kept, repeated, asked = distinct(candidates_by_id, plan.query)
    room = max(plan.budget_tokens - frame_cost(plan.format, (each.line for each in kept)), 0)
    lines_by_tier = {tier: _whole(kept, tier, plan) for tier in Scope}
    costs = {tier: sum(line.cost for line in own) for tier, own in lines_by_tier.items()}
    reach = reached(costs, room, weights)
    cut = {tier: _cut(own, reach[tier], plan) for tier, own in lines_by_tier.items()}
    offers = {tier: [(line.memory_id, line.cost) for line in own] for tier, own in cut.items()}
    lines = {line.memory_id: line for own in cut.values() for line in own}
    together = {memory_id: line.candidate.against for memory_id, line in lines.items()}
    fitting = allocated(offers, room, reach, together)
    fitting_lines = [line for memory_id, line in lines.items() if memory_id in fitting]
    chosen = _at_most(plan.max_items, fitting_lines, together)
    beyond = fitting - {line.memory_id for line in chosen}
    chosen, filling = _filled(chosen, plan, together)
    inside = {line.memory_id for line in chosen}
    omitted = [line for memory_id, line in lines.items() if memory_id not in inside]
    omitted.sort(key=lambda line: (line.place, line.memory_id))
    unseen = [_omitted(candidate, DUPLICATE) for candidate in repeated]
    unseen += [_omitted(candidate, QUERY) for candidate in asked]
    left_out = [
        *(_omitted(line.candidate, _reason(line, room, beyond), line.cost) for line in omitted),
        *sorted(unseen, key=lambda each: each.memory_id),
    ]
    shares = divided(room, weights)
    return AssembledContext(
        items=tuple(_packed(line) for line in chosen),
        text=filling.text,
        token_cost=counted(filling.text),
        tiers={tier: _use(tier, shares[tier], chosen, candidates_by_id) for tier in Scope},
        left_out=tuple(left_out[:MAX_LEFT_OUT]),
        left_out_count=len(left_out),
        left_out_reasons=Counter(each.reason for each in left_out),
        compression_ratio=_ratio(chosen, candidates_by_id),
    )


def _whole(candidates: Sequence[ContextCandidate], tier: Scope, plan: ContextPlan) -> list[_Line]:
    """Return the uncut lines of one tier, best first."""
    of_tier = [candidate for candidate in candidates if candidate.tier is tier]
    return [
        _Line(candidate, candidate.line, plan.cost_of(candidate.line), reasons, place)
        for place, (candidate, reasons) in enumerate(ranked(of_tier, tier, plan.head_tail))
    ]


def _cut(lines: Sequence[_Line], reach: int, plan: BlockPlan) -> list[_Line]:
    """Return the lines of a tier, and cut those that cost more than ``reach`` tokens."""
    long = sum(line.cost > reach for line in lines)
    remaining = reach - sum(line.cost for line in lines if line.cost <= reach)
    limit = max(reach // _ITEMS_OF_A_TIER, remaining // max(long, 1), _LEAST_LINE)
    result = []
    for line in lines:
        if line.cost > reach:
            head = plan.cost_of(replace(line.line, text=""))
            cut = plan.cut(line.line, max(limit - head, 0))
            line = replace(line, line=cut, cost=plan.cost_of(cut))
        result.append(line)
    return result


def _at_most(
    max_items: int, fitting: Sequence[_Line], together: Mapping[str, Collection[str]]
) -> list[_Line]:
    """Return the best lines, at most ``max_items``, taking the tiers in turns.

    Both sides of a contradiction are kept, or neither of them.
    """
    by_place = sorted(fitting, key=lambda line: line.place)
    inside = set(select_within([(line.memory_id, 1) for line in by_place], max_items, together))
    return [line for line in fitting if line.memory_id in inside]


def _filled(
    chosen: Sequence[_Line], plan: BlockPlan, together: Mapping[str, Collection[str]]
) -> tuple[list[_Line], Filling]:
    """Return the lines in order of time as they are printed, and the text of which they are part.

    Together lines may cost more than one by one: then the last are cut, or left out with the lines
    that belong to them. Of a contradiction that no text of this size could hold, each side goes in
    on its own. What is left of the budget goes to cut lines.
    """
    by_id = {line.memory_id: line for line in sorted(chosen, key=lambda line: line.place)}
    filling = Filling(plan, {one: line.candidate.line for one, line in by_id.items()})
    for memory_id in by_id:
        ids = [one for one in (memory_id, *together[memory_id]) if one in by_id]
        group = [by_id[one].line for one in dict.fromkeys(ids) if one not in filling.shown]
        if memory_id in filling.shown:
            continue
        lines, cost = filling.fitting(group, None)
        if cost > filling.budget and not filling.could_hold(group):
            lines, cost = filling.fitting(group[:1], None)
        if cost <= filling.budget:
            filling.put(lines, cost)
    filling.grow()
    printed = [
        replace(by_id[line.memory_id], line=line, cost=plan.cost_of(line))
        for line in in_time(filling.shown.values())
    ]
    return printed, filling


def _packed(line: _Line) -> PackedItem:
    candidate = line.candidate
    return built(
        PackedItem,
        {
            "item": item_of(candidate.memory),
            "tier": candidate.tier,
            "memory_id": line.memory_id,
            "kind": candidate.memory.kind,
            "type": candidate.memory.type,
            "text": line.line.text,
            "shortened": line.shortened,
            "token_cost": line.cost,
            "reasons": line.reasons,
            "citation": candidate.citation,
            "at": candidate.memory.said_at,
            "confidence": candidate.confidence,
        },
    )


def _reason(line: _Line, room: int, beyond: Collection[str]) -> str:
    if line.memory_id in beyond:
        return MAX_ITEMS
    return TOO_LARGE if line.cost > room else OVER_BUDGET


def _omitted(candidate: ContextCandidate, reason: str, cost: int | None = None) -> OmittedMemory:
    return built(
        OmittedMemory,
        {
            "memory_id": candidate.memory.memory_id,
            "tier": candidate.tier,
            "reason": reason,
            "token_cost": candidate.memory.token_cost if cost is None else cost,
        },
    )


def _use(
    tier: Scope, share: int, chosen: Sequence[_Line], candidates: Sequence[ContextCandidate]
) -> TierUse:
    own = [line for line in chosen if line.candidate.tier is tier]
    return built(
        TierUse,
        {
            "share_tokens": share,
            "spent": sum(line.cost for line in own),
            "offered": sum(candidate.tier is tier for candidate in candidates),
            "chosen": len(own),
        },
    )


def _ratio(chosen: Sequence[_Line], candidates: Sequence[ContextCandidate]) -> float:
    """Return the compression ratio."""
    considered = sum(candidate.memory.token_cost for candidate in candidates)
    tokens_used = sum(
        token_cost(line.line.text) if line.shortened else line.candidate.memory.token_cost
        for line in chosen
    )
    return tokens_used / considered if considered else 1.0


ConfirmationCallback = Callable[[str], bool]
"""Asks a person a question and returns True for yes and False for no; it may take time."""


def confirmed(callback: ConfirmationCallback | None, question: str) -> bool:
    """Ask a person for consent; return True for yes.

    Only True is consent and only False is a refusal: any other answer, such as the None of a
    callback that forgot to return one, is an error.

    Raises:
        ConfirmationMissing: nobody can be asked, the callback failed, or its answer is neither.
    """
    if callback is None:
        raise ConfirmationMissing("a person must consent: pass a confirmation_callback")
    try:
        answer = callback(question)
    except Exception as error:
        raise ConfirmationMissing(
            "could not ask for consent: the confirmation_callback failed",
            error=type(error).__name__,
        ) from error
    if answer is not True and answer is not False:
        raise ConfirmationMissing(
            "no consent was given: a confirmation_callback must return True or False",
            given=type(answer).__name__,
        )
    return answer
