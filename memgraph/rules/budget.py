"""Token budgets: an estimate of what a text costs, and what fits in rank order."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from memgraph.errors import InvalidInput
from memgraph.model.enums import Scope

Id = TypeVar("Id", int, str)

_LATIN_PER_TOKEN = 7
_DIGITS_PER_TOKEN = 3
_ALPHABET_PER_TOKEN = 2
_ASTRAL_TOKENS = 3

# One match is one token: a run takes as many matches as its length asks for.
_TOKEN = re.compile(
    rf"[A-Za-z]{{1,{_LATIN_PER_TOKEN}}}|[0-9]{{1,{_DIGITS_PER_TOKEN}}}"
    # Latin with marks, Greek, Cyrillic, Armenian, Hebrew, Arabic
    rf"|[\u00c0-\u06ff]{{1,{_ALPHABET_PER_TOKEN}}}|\S"
)
_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class BudgetSelection(Generic[Id]):
    """A selection that fits a budget.

    Attributes:
        chosen: ids in rank order.
        left_out: ids that did not fit, in rank order.
        spent: tokens of the chosen ones; never above the budget.
    """

    chosen: tuple[Id, ...]
    left_out: tuple[Id, ...]
    spent: int


def token_cost(text: str) -> int:
    """Return an estimate of the tokens of a text, without a tokenizer; 0 for white space alone.

    One token for every 7 ASCII letters of a word, 3 digits of a number or 2 letters of another
    alphabet (each rounded up), 1 for every other character, 3 for one beyond U+FFFF (emoji).

    Against cl100k_base over 2,080 chat turns and 556 Markdown paragraphs in English: the sum is
    10 to 11 % too high; single texts lie between 11 % too low and 33 % too high (5th and 95th
    percentile). Other languages are further off: of short German notes full of compounds a block
    comes out up to 9 % too low by o200k_base, and up to 29 % by cl100k_base. Where the limit is
    hard, let the model's tokenizer count.
    """
    cost = len(_TOKEN.findall(text))
    if not text.isascii():
        cost += (_ASTRAL_TOKENS - 1) * len(_ASTRAL.findall(text))
    return cost


def select_within(
    items: Iterable[tuple[Id, int]],
    budget: int,
    together: Mapping[Id, Collection[Id]] | None = None,
) -> BudgetSelection[Id]:
    """Takes what fits, best first; one that is too large is passed over, the next is tried.

    Args:
        items: (id, token cost) in rank order; a cost below 0 counts as 0.
        budget: tokens; at 0 or below only items without cost are chosen.
        together: ids that belong to an id: taken with it or left out with it, unless they exceed
            the whole budget together, when each is on its own.
    """
    costs = {item: max(cost, 0) for item, cost in items}
    chosen: dict[Id, bool] = {}
    spent = 0
    for first in costs:
        if first in chosen:
            continue
        mates = (together or {}).get(first, ())
        group = {first: None} | {
            item: None for item in mates if item in costs and item not in chosen
        }
        if sum(costs[item] for item in group) > budget:
            group = {first: None}
        cost = sum(costs[item] for item in group)
        fits = cost <= budget - spent or cost == 0
        chosen.update(dict.fromkeys(group, fits))
        spent += cost if fits else 0
    return BudgetSelection(
        tuple(item for item in costs if chosen[item]),
        tuple(item for item in costs if not chosen[item]),
        spent,
    )


# Dividing a token budget among tiers, and choosing what is taken of each.


Costs = Mapping[str, int]
Mates = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class Allocation:
    """An allocation of items.

    Attributes:
        shares: tokens that each tier was given at first; together within the budget.
        chosen: ids of each tier, in its order.
        left_out: ids of each tier that did not fit, in its order.
        spent: tokens of the chosen of each tier; together never above the budget.
    """

    shares: Mapping[Scope, int]
    chosen: Mapping[Scope, tuple[str, ...]]
    left_out: Mapping[Scope, tuple[str, ...]]
    spent: Mapping[Scope, int]


def divided(budget: int, weights: Mapping[Scope, float]) -> dict[Scope, int]:
    """Whole tokens in proportion to some weights, by largest remainder; their sum is the budget.

    Of equal remainders the larger weight wins, then the earlier tier. Where no weight is above 0
    nobody gets anything.

    Source: Hamilton's method of apportionment.

    Args:
        budget: tokens, >= 0.

    Raises:
        InvalidInput: a budget below 0, or a weight that is negative or not finite.
    """
    if budget < 0:
        raise InvalidInput("a token budget must not be negative", budget=budget)
    if any(not (math.isfinite(share) and share >= 0.0) for share in weights.values()):
        raise InvalidInput("a share must be a finite number, 0 or more")
    # Whole numbers in the same proportion: floats may add up to more than there is.
    ratios = {
        tier: float(weights[tier]).as_integer_ratio()
        for tier in Scope
        if weights.get(tier, 0.0) > 0.0
    }
    scale = max((below for _, below in ratios.values()), default=1)  # all are powers of two
    exact = {tier: above * (scale // below) for tier, (above, below) in ratios.items()}
    total = sum(exact.values())
    shares = dict.fromkeys(Scope, 0) | {
        tier: weight * budget // total for tier, weight in exact.items()
    }
    # Sorting is stable: of equal ones the earlier tier stays the first.
    by_remainder = sorted(exact, key=lambda tier: (-(exact[tier] * budget % total), -exact[tier]))
    for tier in by_remainder[: budget - sum(shares.values())]:
        shares[tier] += 1
    return shares


def reached(
    costs: Mapping[Scope, int], budget: int, weights: Mapping[Scope, float]
) -> dict[Scope, int]:
    """Return what each tier can have: its share, as far as it wants it, and its part of what others
    leave.

    Together never above the budget, and all of it where they want as much; never less than the
    smaller of a tier's share and what it wants.

    Args:
        costs: tokens by tier, >= 0.

    Raises:
        InvalidInput: see `divided`.
    """
    amounts = dict.fromkeys(Scope, 0)
    hungry = {tier: weights.get(tier, 0.0) for tier in Scope}
    rest = budget
    # Every round hands out all that is left, or leaves a tier less that wants more.
    while any(hungry.values()):
        for tier, part in divided(rest, hungry).items():
            amounts[tier] = min(amounts[tier] + part, max(costs.get(tier, 0), 0))
        rest = budget - sum(amounts.values())
        if not rest:
            break
        hungry = {
            tier: weight for tier, weight in hungry.items() if amounts[tier] < costs.get(tier, 0)
        }
    return amounts


def allocated(
    offers: Mapping[Scope, Sequence[tuple[str, int]]],
    budget: int,
    weights: Mapping[Scope, float],
    together: Mates | None = None,
    first: Mapping[Scope, int] | None = None,
) -> Allocation:
    """Return what is taken of some tiers within one budget.

    No tier loses to another what its own share can hold, and nothing is left out that would still
    fit. A tier of weight 0 takes nothing.

    Args:
        offers: (id, token cost) by tier, best first; every id is in one tier, a cost below 0 counts
            as 0.
        budget: tokens, >= 0.
        together: ids that belong to an id, of whatever tier: taken with it or left out with it,
            unless they exceed the whole budget together, when each is on its own.
        first: the shares, together within the budget, for instance of `reached`; None: `divided`.

    Raises:
        InvalidInput: see `divided`.
    """
    shares = divided(budget, weights) if first is None else first
    requested = {
        tier: [item for item, _ in offers.get(tier, ())] if weights.get(tier, 0.0) > 0.0 else []
        for tier in Scope
    }
    costs = {
        item: max(cost, 0)
        for tier, tier_items in offers.items()
        for item, cost in tier_items
        if requested[tier]
    }
    choice = _Choice(costs, budget, together or {})
    selected: set[str] = set()
    for tier in Scope:
        # Each by itself: what another takes must not change what fits here.
        selected |= choice.fitting(requested[tier], shares[tier], frozenset())
    while more := _handed_on(choice, requested, weights, budget, selected):
        selected |= more
    chosen = {tier: tuple(item for item in requested[tier] if item in selected) for tier in Scope}
    return Allocation(
        shares,
        chosen,
        {
            tier: tuple(item for item, _ in offers.get(tier, ()) if item not in selected)
            for tier in Scope
        },
        {tier: choice.cost(tier_items) for tier, tier_items in chosen.items()},
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    costs: Costs
    budget: int
    together: Mates

    def cost(self, ids: Iterable[str]) -> int:
        return sum([self.costs[item] for item in ids])

    def fitting(self, requested: Sequence[str], room: int, selected: Collection[str]) -> set[str]:
        """Return what is newly taken of some ids, best first, within some tokens."""
        chosen = set(selected)
        for item in requested:
            if item in chosen:
                continue
            group = self.group(item, chosen)
            cost = self.cost(group)
            if cost <= room:
                chosen.update(group)
                room -= cost
        return chosen.difference(selected)

    def any_fits(self, requested: Sequence[str], room: int, selected: Collection[str]) -> bool:
        return any(
            self.cost(self.group(item, selected)) <= room
            for item in requested
            if item not in selected
        )

    def group(self, item: str, chosen: Collection[str]) -> Collection[str]:
        mates = self.together.get(item)
        if not mates:
            return (item,)
        group = {item} | {mate for mate in mates if mate in self.costs and mate not in chosen}
        return group if self.cost(group) <= self.budget else (item,)


def _handed_on(
    choice: _Choice,
    requested: Mapping[Scope, Sequence[str]],
    weights: Mapping[Scope, float],
    budget: int,
    selected: Collection[str],
) -> set[str]:
    """Return what is taken of what is left, in one round; empty: nothing fits any more."""
    rest = budget - choice.cost(selected)
    hungry = {
        tier: weights[tier] for tier in Scope if choice.any_fits(requested[tier], rest, selected)
    }
    added: set[str] = set()
    for tier, room in divided(rest, hungry).items():
        # Seen by itself again, so that the order of the tiers decides nothing.
        added |= choice.fitting(requested[tier], room, selected)
    if not added and hungry:
        # Too small in parts: all of it to the tier with the largest share.
        first = max(hungry, key=lambda tier: hungry[tier])
        added = choice.fitting(requested[first], rest, selected)
    return added


# A short text for a long one, when nobody gave any.


SUMMARY_CHARS = 160

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")


def summarise(content: str, limit: int = SUMMARY_CHARS) -> str:
    """Return all of it on one line where that is at most ``limit`` characters, else the first
    sentence, cut between words.
    """
    text = " ".join(content.split())
    if len(text) <= limit:
        return text
    first = next((part for part in _SENTENCE_END.split(content.strip(), maxsplit=1) if part), "")
    line = " ".join(first.split())
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    cut = head.rfind(" ")
    return (head[:cut] if cut > limit // 2 else head) + "…"
