"""The scores of a recalled memory, as bars. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memgraph.model.recall import RecallItem

LEAST: Final = 0.0005
"""Modifiers that change a score by less are not shown."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A measure and how it is drawn.

    Attributes:
        name: of a leg or of a modifier.
        text: the measure, for reading.
        percent: 0..100, how much of the bar is full.
        lowers: a modifier below 1.
    """

    name: str
    text: str
    percent: float
    lowers: bool = False


@dataclass(frozen=True, slots=True)
class Scored:
    """An item with its bars.

    Attributes:
        score: of the item against the best one of its answer.
        fused: its score before the modifiers.
        legs: its rank in each leg; a full bar is the first rank, and the last one of the answer is
            nearly empty.
        modifiers: factors that change something; a full bar is the largest of the answer, or 1.
    """

    item: RecallItem
    score: Bar
    fused: float
    legs: tuple[Bar, ...]
    modifiers: tuple[Bar, ...]


def scored(items: Sequence[RecallItem]) -> list[Scored]:
    """Return every item of an answer with its bars, in order."""
    best = max((each.score for each in items), default=0.0)
    depth = max((rank for each in items for rank in each.legs.values()), default=1)
    top = max((factor for each in items for factor in each.modifiers.values()), default=1.0)
    return [_scored(each, best, depth, max(top, 1.0)) for each in items]


def _scored(item: RecallItem, best: float, depth: int, top: float) -> Scored:
    product = math.prod(item.modifiers.values())
    return Scored(
        item=item,
        score=Bar("score", f"{item.score:.5f}", _percent(item.score, best)),
        fused=item.score / product if product else 0.0,
        legs=tuple(
            Bar(name, f"place {rank:,}", _percent(depth + 1 - rank, depth))
            for name, rank in sorted(item.legs.items(), key=lambda each: (each[1], each[0]))
        ),
        modifiers=tuple(
            Bar(name, f"× {factor:.3f}", _percent(factor, top), lowers=factor < 1.0)
            for name, factor in item.modifiers.items()
            if abs(factor - 1.0) >= LEAST
        ),
    )


def _percent(part: float, whole: float) -> float:
    """Return 0..100, rounded to tenths; 0 when the whole is 0."""
    return round(min(max(part / whole, 0.0), 1.0) * 100, 1) if whole > 0 else 0.0
