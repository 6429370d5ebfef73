"""Curves and ribbons over time as numbers that a template draws. Pure.

A drawing is ``WIDTH`` wide and ``HEIGHT`` high, and is stretched to the width of the page: strokes
keep their width, and labels are outside, so that they stay readable on a telephone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memgraph.model.enums import MemoryStatus
from memgraph.model.values import StatusPeriod

WIDTH: Final = 1_000.0
HEIGHT: Final = 100.0
LEAST: Final = 12.0
"""The minimum width of a period, so that short ones are visible."""


@dataclass(frozen=True, slots=True)
class Band:
    """A rectangle of a ribbon: from ``x``, ``width`` wide."""

    x: float
    width: float
    status: MemoryStatus


@dataclass(frozen=True, slots=True)
class Ribbon:
    """Statuses over time: ``since`` and ``until`` are its ends, milliseconds."""

    since: int
    until: int
    bands: tuple[Band, ...]


@dataclass(frozen=True, slots=True)
class StepChart:
    """A value between 0 and 1 that holds until it changes.

    Attributes:
        path: of an SVG path.
        points: time (milliseconds) and value, in their order.
        since, until: the ends, milliseconds.
    """

    path: str
    points: tuple[tuple[int, float], ...]
    since: int
    until: int


def ribbon(periods: Sequence[StatusPeriod], now: int) -> Ribbon:
    """Return the statuses that a memory had until now; a period may end as it began.

    Args:
        periods: in order, at least one.
        now: milliseconds.
    """
    since = periods[0].since
    until = max(now, *(each.since for each in periods), since + 1)
    bands = []
    for each in periods:
        start = _x(each.since, since, until)
        end = _x(until if each.until is None else each.until, since, until)
        start = min(start, WIDTH - LEAST)
        bands.append(Band(round(start, 2), round(max(end - start, LEAST), 2), each.status))
    return Ribbon(since, until, tuple(bands))


def step_chart(points: Sequence[tuple[int, float]], now: int) -> StepChart:
    """Return a value over time until now.

    Args:
        points: the times of changes and the new values, in order, at least one; milliseconds and
            0..1.
    """
    since = points[0][0]
    until = max(now, points[-1][0], since + 1)
    steps = [f"M0 {_y(points[0][1])}"]
    for at, value in points[1:]:
        steps.append(f"H{round(_x(at, since, until), 2)}V{_y(value)}")
    steps.append(f"H{WIDTH:g}")
    return StepChart("".join(steps), tuple(points), since, until)


def _x(at: int, since: int, until: int) -> float:
    return WIDTH * min(max(at - since, 0) / (until - since), 1.0)


def _y(value: float) -> float:
    return round(HEIGHT * (1.0 - min(max(value, 0.0), 1.0)), 2)
