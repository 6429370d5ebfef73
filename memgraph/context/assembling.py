"""Candidates in, a context out: what is taken of each tier, in which words, and what is left out.

Pure: the same candidates, plan and counter give the same context, whatever order they come in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memgraph.context.blocks import render, render_line
from memgraph.context.counting import TokenCounter
from memgraph.context.fitting import fitted
from memgraph.context.items import item_of
from memgraph.model.context import (
    MAX_LEFT_OUT,
    BlockFormat,
    BlockLine,
    LeftOut,
    PackedItem,
    Shares,
    Tier,
    TierUse,
)
from memgraph.model.values import Memory
from memgraph.policy.allocation import allocated, divided
from memgraph.policy.budget import select_within, token_cost
from memgraph.policy.ranking import reciprocal_rank_fusion
from memgraph.storage.rows import built

OVER_BUDGET, TOO_LARGE, MAX_ITEMS, DUPLICATE = "over_budget", "too_large", "max_items", "duplicate"
# One item takes half of its tier's share at most, where that leaves it room for some words.
_LEAST_LINE, _ITEMS_OF_A_SHARE = 120, 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may come into a context.

    Attributes:
        citation: where it came from, in one line; shown: the same as its line has it.
        confidence: 0..1, after decay.
        recalled: its rank, from 1, among what was recalled; None: it was not.
        beside: the id of the memory whose open contradiction brought it; None: it came by itself.
        against: ids of what it contradicts, unresolved.
    """

    memory: Memory
    tier: Tier
    citation: str
    shown: str
    confidence: float
    recalled: int | None = None
    beside: str | None = None
    against: tuple[str, ...] = ()

    @property
    def at(self) -> int:
        """When it happened, else when it was stored."""
        known = self.memory.event_time
        return self.memory.created_at if known is None else known


@dataclass(frozen=True, slots=True)
class Plan:
    """What a context is to be; see ``ContextRequest``.

    Attributes:
        mark: of the fence, 16 hexadecimal digits.
    """

    budget_tokens: int
    shares: Shares
    head_tail: int
    format: BlockFormat
    max_items: int
    mark: str


@dataclass(frozen=True, slots=True)
class Assembled:
    """A context without what names it: see ``ContextPackage``."""

    items: tuple[PackedItem, ...] = ()
    text: str = ""
    token_cost: int = 0
    tiers: Mapping[Tier, TierUse] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    left_out_count: int = 0
    compression_ratio: float = 1.0


@dataclass(frozen=True, slots=True)
class _Line:
    """A candidate as it would be written, and why; ``place``: its rank in its tier, from 0."""

    candidate: Candidate
    text: str
    rendered: str
    cost: int
    reasons: tuple[str, ...]
    place: int

    @property
    def memory_id(self) -> str:
        return self.candidate.memory.memory_id


def assembled(candidates: Iterable[Candidate], plan: Plan, counter: TokenCounter) -> Assembled:
    """The context of some candidates, each of another memory.

    Those of a tier without a share are not considered.
    """
    weights = {tier: plan.shares.of(tier) for tier in Tier}
    offered = [each for each in candidates if weights[each.tier] > 0.0]
    given = sorted(offered, key=lambda each: each.memory.memory_id)
    kept, repeated = _each_text_once(given)
    count, frame = counter.count, _frame(given, plan, counter)
    room = max(plan.budget_tokens - frame.cost, 0)
    limits = {tier: _limit(share, room) for tier, share in divided(room, weights).items()}
    lines = {
        line.memory_id: line
        for tier in Tier
        for line in _lines(
            [each for each in kept if each.tier is tier], tier, plan, limits[tier], count
        )
    }
    offers = {
        tier: [(one, line.cost) for one, line in lines.items() if line.candidate.tier is tier]
        for tier in Tier
    }
    together = {
        one: line.candidate.against for one, line in lines.items() if line.candidate.against
    }
    found = allocated(offers, room, weights, together)
    fitting = [one for each in found.chosen.values() for one in each]
    chosen = _at_most(plan.max_items, [lines[one] for one in fitting], together)
    beyond = set(fitting) - {line.memory_id for line in chosen}
    chosen, text, cost = _written(chosen, frame, plan.budget_tokens, counter, together)
    inside = {line.memory_id for line in chosen}
    left_out = [
        *(
            _left(line, _reason(line, room, beyond))
            for one, line in lines.items()
            if one not in inside
        ),
        *((len(lines), _repeat(each)) for each in repeated),
    ]
    left_out.sort(key=lambda each: (each[0], each[1].memory_id))
    return Assembled(
        items=tuple(_packed(line) for line in chosen),
        text=text,
        token_cost=cost,
        tiers={tier: _use(tier, found.shares[tier], chosen, given) for tier in Tier},
        left_out=tuple(each for _, each in left_out[:MAX_LEFT_OUT]),
        left_out_count=len(left_out),
        compression_ratio=_ratio(chosen, given),
    )


def _each_text_once(given: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """Of equal texts the one nearest to the task, then the best recalled; and the others."""
    places = {tier: place for place, tier in enumerate(Tier)}
    seen: set[str] = set()
    kept: list[Candidate] = []
    repeated: list[Candidate] = []
    for each in sorted(given, key=lambda one: (places[one.tier], *_by_recall(one))):
        (repeated if each.memory.content_hash in seen else kept).append(each)
        seen.add(each.memory.content_hash)
    return kept, repeated


def _by_recall(each: Candidate) -> tuple[bool, int, str]:
    return each.recalled is None, each.recalled or 0, each.memory.memory_id


@dataclass(frozen=True, slots=True)
class _Frame:
    """What stands before and after the lines of a block, and what it costs."""

    before: str = ""
    after: str = ""
    cost: int = 0


def _frame(given: Sequence[Candidate], plan: Plan, counter: TokenCounter) -> _Frame:
    if not given:
        return _Frame()
    line = _line_of(given[0], "")
    whole, alone = render([line], plan.format, mark=plan.mark), render_line(line, plan.format)
    before, _, after = whole.partition(alone)
    return _Frame(before, after, counter.count(whole) - counter.count(alone))


def _limit(share: int, room: int) -> int:
    return min(room, max(share // _ITEMS_OF_A_SHARE, _LEAST_LINE))


def _lines(
    of_tier: Sequence[Candidate],
    tier: Tier,
    plan: Plan,
    limit: int,
    count: Callable[[str], int],
) -> list[_Line]:
    """The lines of one tier, best first, long ones shortened."""
    found = []
    ends = _ends(of_tier, plan.head_tail, tier)
    for place, (each, end) in enumerate(_ranked(of_tier, ends)):
        whole = _line_of(each, each.memory.content)
        line, rendered, cost = fitted(whole, plan.format, limit, count)
        reasons = (*end, *_reasons(each)) or ("importance",)
        found.append(_Line(each, line.text, rendered, cost, reasons, place))
    return found


def _ends(of_tier: Sequence[Candidate], count: int, tier: Tier) -> dict[str, tuple[str, ...]]:
    """The first and last items of a task by id, those at the very ends first; and which each is."""
    if tier is not Tier.TASK:
        return {}
    in_time = [one.memory.memory_id for one in sorted(of_tier, key=_by_time)]
    found: dict[str, tuple[str, ...]] = {}
    for first, last in zip(in_time[:count], in_time[::-1], strict=False):
        found[first] = (*found.get(first, ()), "head")
        found[last] = (*found.get(last, ()), "tail")
    return found


def _ranked(
    of_tier: Sequence[Candidate], ends: Mapping[str, tuple[str, ...]]
) -> list[tuple[Candidate, tuple[str, ...]]]:
    """The ends, then the others by the reciprocal ranks of relevance and importance."""
    by_id = {each.memory.memory_id: each for each in of_tier}
    relevant = sorted(
        (each for each in by_id.values() if each.recalled is not None), key=_by_recall
    )
    important = sorted(by_id.values(), key=_by_importance)
    legs = {
        "importance": [each.memory.memory_id for each in important],
        "relevance": [each.memory.memory_id for each in relevant],
    }
    order = dict.fromkeys([*ends, *(each.id for each in reciprocal_rank_fusion(legs))])
    return [(by_id[one], ends.get(one, ())) for one in order]


def _by_time(each: Candidate) -> tuple[int, str]:
    return each.at, each.memory.memory_id


def _by_importance(each: Candidate) -> tuple[int, int, str]:
    return -each.memory.importance, -each.at, each.memory.memory_id


def _reasons(each: Candidate) -> tuple[str, ...]:
    if each.recalled is not None:
        return (f"recall:{each.recalled}",)
    return () if each.beside is None else (f"beside:{each.beside}",)


def _line_of(each: Candidate, text: str) -> BlockLine:
    return built(
        BlockLine,
        {
            "memory_id": each.memory.memory_id,
            "kind": each.memory.kind,
            "text": text,
            "at": each.at,
            "citation": each.shown,
            "confidence": each.confidence,
        },
    )


def _at_most(
    most: int, fitting: Sequence[_Line], together: Mapping[str, Collection[str]]
) -> list[_Line]:
    """The best of what fits, the tiers in turns; both sides of a contradiction or none."""
    in_turns = sorted(fitting, key=lambda line: line.place)
    wanted = select_within([(line.memory_id, 1) for line in in_turns], most, together).chosen
    inside = set(wanted)
    return [line for line in fitting if line.memory_id in inside]


def _written(
    chosen: Sequence[_Line],
    frame: _Frame,
    budget: int,
    counter: TokenCounter,
    together: Mapping[str, Collection[str]],
) -> tuple[list[_Line], str, int]:
    """The lines in their order and the block, which is counted as a whole: it may cost more than
    its lines do one by one. Then the last goes, and what belongs to it.
    """
    shown = _in_order(chosen)
    while shown:
        text = frame.before + "".join([line.rendered for line in shown]) + frame.after
        if counter.by_line:
            cost = frame.cost + sum(line.cost for line in shown)
        else:
            cost = counter.count(text)
        if cost <= budget:
            return shown, text, cost
        last = shown[-1].memory_id
        gone = {last, *together.get(last, ())}
        shown = [line for line in shown if line.memory_id not in gone]
    return [], "", 0


def _in_order(chosen: Sequence[_Line]) -> list[_Line]:
    """The task's in time order, then the project's and everybody's by rank."""
    of_task = [line for line in chosen if line.candidate.tier is Tier.TASK]
    return [
        *sorted(of_task, key=lambda line: _by_time(line.candidate)),
        *(line for line in chosen if line.candidate.tier is not Tier.TASK),
    ]


def _packed(line: _Line) -> PackedItem:
    each = line.candidate
    return built(
        PackedItem,
        {
            "item": item_of(each.memory),
            "tier": each.tier,
            "memory_id": line.memory_id,
            "kind": each.memory.kind,
            "type": each.memory.type,
            "text": line.text,
            "shortened": line.text != each.memory.content,
            "token_cost": line.cost,
            "reasons": line.reasons,
            "citation": each.citation,
            "at": each.at,
            "confidence": each.confidence,
        },
    )


def _reason(line: _Line, room: int, beyond: Collection[str]) -> str:
    if line.memory_id in beyond:
        return MAX_ITEMS
    return TOO_LARGE if line.cost > room else OVER_BUDGET


def _left(line: _Line, reason: str) -> tuple[int, LeftOut]:
    left = built(
        LeftOut,
        {
            "memory_id": line.memory_id,
            "tier": line.candidate.tier,
            "reason": reason,
            "token_cost": line.cost,
        },
    )
    return line.place, left


def _repeat(each: Candidate) -> LeftOut:
    return built(
        LeftOut,
        {
            "memory_id": each.memory.memory_id,
            "tier": each.tier,
            "reason": DUPLICATE,
            "token_cost": each.memory.token_cost,
        },
    )


def _use(tier: Tier, share: int, chosen: Sequence[_Line], given: Sequence[Candidate]) -> TierUse:
    own = [line for line in chosen if line.candidate.tier is tier]
    return built(
        TierUse,
        {
            "share_tokens": share,
            "spent": sum(line.cost for line in own),
            "offered": sum(each.tier is tier for each in given),
            "chosen": len(own),
        },
    )


def _ratio(chosen: Sequence[_Line], given: Sequence[Candidate]) -> float:
    """By the same estimate for both, whatever counts the block."""
    considered = sum(each.memory.token_cost for each in given)
    shown = sum(
        each.memory.token_cost if line.text == each.memory.content else token_cost(line.text)
        for line in chosen
        for each in (line.candidate,)
    )
    return shown / considered if considered else 1.0
