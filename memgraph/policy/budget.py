"""Token budgets: an estimate of what a text costs, and what fits in rank order."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

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
class Selection(Generic[Id]):
    """What fits a budget.

    Attributes:
        chosen: ids in rank order.
        left_out: ids that did not fit, in rank order.
        spent: tokens of the chosen ones; never above the budget.
    """

    chosen: tuple[Id, ...]
    left_out: tuple[Id, ...]
    spent: int


def token_cost(text: str) -> int:
    """An estimate of the tokens of a text, without a tokenizer; 0 for white space alone.

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
) -> Selection[Id]:
    """Takes what fits, best first; one that is too large is passed over, the next is tried.

    Args:
        items: (id, token cost) in rank order; a cost below 0 counts as 0.
        budget: tokens; at 0 or below only items without cost are chosen.
        together: ids that belong to an id: taken with it or left out with it, unless they exceed
            the whole budget together, when each is on its own.
    """
    costs = {one: max(cost, 0) for one, cost in items}
    taken: dict[Id, bool] = {}
    spent = 0
    for first in costs:
        if first in taken:
            continue
        mates = (together or {}).get(first, ())
        group = {first: None} | {one: None for one in mates if one in costs and one not in taken}
        if sum(costs[one] for one in group) > budget:
            group = {first: None}
        cost = sum(costs[one] for one in group)
        fits = cost <= budget - spent or cost == 0
        taken.update(dict.fromkeys(group, fits))
        spent += cost if fits else 0
    return Selection(
        tuple(one for one in costs if taken[one]),
        tuple(one for one in costs if not taken[one]),
        spent,
    )
