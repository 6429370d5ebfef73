"""Token budgets: estimate the cost of a text, and select texts that fit in rank order."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from memgraph.errors import InvalidInput
from memgraph.model.enums import Scope

Id = TypeVar("Id", int, str)

_LATIN_PER_TOKEN = 7
_DIGITS_PER_TOKEN = 3
_ALPHABET_PER_TOKEN = 2
_ASTRAL_TOKENS = 3

# Each match counts as one token; a long run of characters has several matches.
_TOKEN = re.compile(
    rf"[A-Za-z]{{1,{_LATIN_PER_TOKEN}}}|[0-9]{{1,{_DIGITS_PER_TOKEN}}}"
    # Latin with marks, Greek, Cyrillic, Armenian, Hebrew, Arabic
    rf"|[\u00c0-\u06ff]{{1,{_ALPHABET_PER_TOKEN}}}|\S"
)
_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]")


def token_cost(text: str) -> int:
    """Estimate the number of tokens of a text without a tokenizer; 0 for white space alone.

    Counts one token for every 7 ASCII letters of a word, 3 digits of a number or 2 letters of
    another alphabet (each rounded up), 1 for every other character, 3 for one beyond U+FFFF
    (emoji).

    Compared with cl100k_base over 2,080 chat turns and 556 Markdown paragraphs in English, the sum
    is 10 to 11 % too high; single texts are between 11 % too low and 33 % too high (5th and 95th
    percentile). Other languages are less accurate: blocks of short German notes full of compounds
    are up to 8 % too low by o200k_base, and up to 29 % too low by cl100k_base. If the limit is
    hard, count with the model's tokenizer.
    """
    cost = len(_TOKEN.findall(text))
    if not text.isascii():
        cost += (_ASTRAL_TOKENS - 1) * len(_ASTRAL.findall(text))
    return cost


def select_within(
    items: Iterable[tuple[Id, int]],
    budget: int,
    together: Mapping[Id, Collection[Id]] | None = None,
) -> list[Id]:
    """Return the items that fit, best first; an item that is too large is skipped.

    Args:
        items: (id, token cost) in rank order; a cost below 0 counts as 0.
        budget: tokens; at 0 or below only items without cost are chosen.
        together: for an id, the ids that are chosen or left out together with it, unless the group
            exceeds the whole budget; then each is chosen separately.
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
    return [item for item in costs if chosen[item]]


# Divide a token budget among tiers, and choose the items of each.


Costs = Mapping[str, int]
Mates = Mapping[str, Collection[str]]


def divided(budget: int, weights: Mapping[Scope, float]) -> dict[Scope, int]:
    """Divide a budget in proportion to weights, by largest remainder; the sum is the budget.

    If remainders are equal the larger weight wins, then the earlier tier. If no weight is above 0
    every tier gets 0.

    Source: Hamilton's method of apportionment.

    Args:
        budget: tokens, >= 0.

    Raises:
        InvalidInput: the budget is below 0, or a weight is negative or not finite.
    """
    if budget < 0:
        raise InvalidInput("a token budget must not be negative", budget=budget)
    if any(not (math.isfinite(share) and share >= 0.0) for share in weights.values()):
        raise InvalidInput("a share must be a finite number, 0 or more")
    # Integers in the same proportion: floats may add up to more than the budget.
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
    # Sorting is stable: if all else is equal the earlier tier comes first.
    by_remainder = sorted(exact, key=lambda tier: (-(exact[tier] * budget % total), -exact[tier]))
    for tier in by_remainder[: budget - sum(shares.values())]:
        shares[tier] += 1
    return shares


def reached(
    costs: Mapping[Scope, int], budget: int, weights: Mapping[Scope, float]
) -> dict[Scope, int]:
    """Return the tokens of each tier: at most its cost, with unused shares divided among others.

    The sum is never above the budget, and is the budget if the costs reach it. No tier gets less
    than the smaller of its share and its cost.

    Args:
        costs: the tokens that each tier could use, >= 0.

    Raises:
        InvalidInput: see `divided`.
    """
    amounts = dict.fromkeys(Scope, 0)
    unmet = {tier: weights.get(tier, 0.0) for tier in Scope}
    rest = budget
    # Every round uses up the rest, or satisfies at least one tier.
    while any(unmet.values()):
        for tier, part in divided(rest, unmet).items():
            amounts[tier] = min(amounts[tier] + part, max(costs.get(tier, 0), 0))
        rest = budget - sum(amounts.values())
        if not rest:
            break
        unmet = {
            tier: weight for tier, weight in unmet.items() if amounts[tier] < costs.get(tier, 0)
        }
    return amounts


def allocated(
    offers: Mapping[Scope, Sequence[tuple[str, int]]],
    budget: int,
    weights: Mapping[Scope, float],
    together: Mates | None = None,
    first: Mapping[Scope, int] | None = None,
) -> dict[Scope, list[str]]:
    """Return the items of each tier, in its order, that fit into one budget.

    No tier loses an item that fits its own share to another tier, and no item is left out that
    would still fit. A tier of weight 0 gets nothing.

    Args:
        offers: (id, token cost) by tier, best first; every id is in one tier, a cost below 0 counts
            as 0.
        budget: tokens, >= 0.
        together: for an id, the ids of any tier that are chosen or left out together with it,
            unless the group exceeds the whole budget; then each is chosen separately.
        first: the initial shares, within the budget, for instance from `reached`; None: `divided`.

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
        # Each tier separately: the items of another tier must not change what fits here.
        selected |= choice.fitting(requested[tier], shares[tier], frozenset())
    while more := _handed_on(choice, requested, weights, budget, selected):
        selected |= more
    return {tier: [item for item in requested[tier] if item in selected] for tier in Scope}


@dataclass(frozen=True, slots=True)
class _Choice:
    costs: Costs
    budget: int
    together: Mates

    def cost(self, ids: Iterable[str]) -> int:
        return sum([self.costs[item] for item in ids])

    def fitting(self, requested: Sequence[str], room: int, selected: Collection[str]) -> set[str]:
        """Return the additional ids that fit into ``room`` tokens, best first."""
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
    """Divide the rest of the budget in one more round; return the added ids, empty if none fit."""
    rest = budget - choice.cost(selected)
    unmet = {
        tier: weights[tier] for tier in Scope if choice.any_fits(requested[tier], rest, selected)
    }
    added: set[str] = set()
    for tier, room in divided(rest, unmet).items():
        # Each tier separately again, so that their order does not matter.
        added |= choice.fitting(requested[tier], room, selected)
    if not added and unmet:
        # The parts are too small for any item: give all to the tier with the largest weight.
        first = max(unmet, key=lambda tier: unmet[tier])
        added = choice.fitting(requested[first], rest, selected)
    return added


# Summarise a text that has no summary.


SUMMARY_CHARS = 160

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")


def summarise(content: str, limit: int = SUMMARY_CHARS) -> str:
    """Return the text on one line if it fits ``limit`` characters, else its first sentence, cut
    between words.
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
