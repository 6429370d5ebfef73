"""Compute charts for the templates: statuses over time, and bars of scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memgraph.model.enums import MemoryStatus
from memgraph.model.recall import RecallItem
from memgraph.model.values import StatusPeriod

WIDTH: Final = 1_000.0
LEAST: Final = 12.0
"""The minimum width of a period, so that short ones are visible."""


@dataclass(frozen=True, slots=True)
class Band:
    """A rectangle of a ribbon, starting at ``x``."""

    x: float
    width: float
    status: MemoryStatus


@dataclass(frozen=True, slots=True)
class Ribbon:
    """Statuses over time, from ``since`` to ``until`` in milliseconds."""

    since: int
    until: int
    bands: tuple[Band, ...]


def ribbon(periods: Sequence[StatusPeriod], now: int) -> Ribbon:
    """Return the statuses of a memory until now; a period may have no length.

    Args:
        periods: in order, at least one.
        now: milliseconds.
    """
    since = periods[0].since
    until = max(now, *(period.since for period in periods), since + 1)
    bands = []
    for period in periods:
        start = _x(period.since, since, until)
        end = _x(until if period.until is None else period.until, since, until)
        start = min(start, WIDTH - LEAST)
        bands.append(Band(round(start, 2), round(max(end - start, LEAST), 2), period.status))
    return Ribbon(since, until, tuple(bands))


def _x(at: int, since: int, until: int) -> float:
    return WIDTH * min(max(at - since, 0) / (until - since), 1.0)


LEAST_CHANGE: Final = 0.0005
"""Modifiers that change a score by less are not shown."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A measure as a bar.

    Attributes:
        name: the name of a leg or a modifier.
        text: the measure as text.
        percent: the filled part of the bar, 0..100.
        lowers: True for a modifier below 1.
    """

    name: str
    text: str
    percent: float
    lowers: bool = False


@dataclass(frozen=True, slots=True)
class ScoredItem:
    """An item with its bars.

    Attributes:
        score: its score relative to the best one of the answer.
        fused: its score before the modifiers.
        legs: its rank in each leg; the bar is full for the first rank and nearly empty for the
            last one of the answer.
        modifiers: its effective factors; the bar is full for the largest of the answer, or 1.
    """

    item: RecallItem
    score: Bar
    fused: float
    legs: tuple[Bar, ...]
    modifiers: tuple[Bar, ...]


def scored(items: Sequence[RecallItem]) -> list[ScoredItem]:
    """Return every item of an answer with its bars, in order."""
    best = max((item.score for item in items), default=0.0)
    depth = max((rank for item in items for rank in item.legs.values()), default=1)
    top = max((factor for item in items for factor in item.modifiers.values()), default=1.0)
    return [_scored(item, best, depth, max(top, 1.0)) for item in items]


def _scored(item: RecallItem, best: float, depth: int, top: float) -> ScoredItem:
    product = math.prod(item.modifiers.values())
    return ScoredItem(
        item=item,
        score=Bar("score", f"{item.score:.5f}", _percent(item.score, best)),
        fused=item.score / product if product else 0.0,
        legs=tuple(
            Bar(name, f"place {rank:,}", _percent(depth + 1 - rank, depth))
            for name, rank in sorted(item.legs.items(), key=lambda leg: (leg[1], leg[0]))
        ),
        modifiers=tuple(
            Bar(name, f"× {factor:.3f}", _percent(factor, top), lowers=factor < 1.0)
            for name, factor in item.modifiers.items()
            if abs(factor - 1.0) >= LEAST_CHANGE
        ),
    )


def _percent(part: float, whole: float) -> float:
    """Return the percentage, rounded to tenths; 0 when ``whole`` is 0."""
    return round(min(max(part / whole, 0.0), 1.0) * 100, 1) if whole > 0 else 0.0
