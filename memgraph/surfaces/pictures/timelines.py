"""Pictures of times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from memgraph.clock import MS_PER_DAY, iso
from memgraph.model.graph import History
from memgraph.model.influence import Impact
from memgraph.model.values import StatusPeriod
from memgraph.rules.decay import effective_confidence
from memgraph.surfaces.pictures.canvas import (
    GRID,
    MUTED,
    STATUS_COLORS,
    Fill,
    TextTable,
    drawn,
    page,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SIZE: Final = (8.0, 3.6)
CURVE_POINTS: Final = 200
"""Points of each stored value; fewer when the total exceeds this."""
MOST_POINTS: Final = 4_000
KEPT, ADDED, REMOVED = "#5c6f82", "#2c7a4b", "#b5443a"


@dataclass(frozen=True, slots=True)
class ConfidencePeriod:
    """A stored confidence that held from ``since`` to ``until``, milliseconds.

    Attributes:
        confidence: 0..1, before decay.
        decay_rate: per day, as it was then.
        idle_since: from when it decays: its last access then, or its creation.
    """

    since: int
    until: int
    confidence: float
    decay_rate: float
    idle_since: int

    def at(self, ms: int, exponent: float) -> float:
        """Return the effective confidence at a time; see ``policy.decay.effective_confidence``."""
        days = (ms - self.idle_since) / MS_PER_DAY
        return effective_confidence(self.confidence, self.decay_rate, days, exponent)


@dataclass(frozen=True, slots=True)
class DrawnBulletin:
    """A bulletin that was handed out: when first, how often, and what it cited."""

    at: int
    receipts: int
    memory_ids: frozenset[str]


def confidence_picture(
    held: Sequence[ConfidencePeriod],
    periods: Sequence[StatusPeriod],
    form: str,
    *,
    title: str,
    now_ms: int,
    exponent: float,
) -> bytes:
    """Draw a memory's confidence over time: stored, after decay, and its statuses.

    Args:
        held, periods: in order, without gaps; at least one of each.
        form: ``svg``, ``png`` or ``html``.

    Raises:
        ExtraMissing: matplotlib is not installed.
    """

    def fill(figure: Figure) -> None:
        axes = figure.add_subplot()
        _statuses(axes, periods, now_ms)
        _curves(axes, held, exponent)
        axes.set_ylim(0.0, 1.05)
        axes.set_ylabel("confidence")
        axes.set_title(title, fontsize=10, loc="left", pad=20)
        axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=5)
        _dates(axes)

    rows = [
        (iso(item.since), iso(item.until), f"{item.confidence:g}", f"{item.decay_rate:g} per day")
        for item in held
    ]
    stored = TextTable("Stored confidence", ("from", "until", "confidence", "decay"), rows)
    statuses = TextTable("Status", ("from", "until", "status", "by", "reason"), _rows(periods))
    return _file(fill, form, title, (stored, statuses))


def bulletin_picture(bulletins: Sequence[DrawnBulletin], form: str, *, title: str) -> bytes:
    """Draw how bulletins changed: what each kept of the one before it, added and left out.

    Args:
        bulletins: oldest first.
        form: ``svg``, ``png`` or ``html``.

    Raises:
        ExtraMissing: matplotlib is not installed.
    """
    counts = changes(bulletins)

    def fill(figure: Figure) -> None:
        axes = figure.add_subplot()
        places = range(len(counts))
        kept_part, added, removed = ([count[item] for count in counts] for item in range(3))
        axes.bar(places, kept_part, color=KEPT, label="kept")
        axes.bar(places, added, bottom=kept_part, color=ADDED, label="added")
        axes.bar(places, [-item for item in removed], color=REMOVED, label="left out")
        axes.axhline(0.0, color=MUTED, linewidth=0.8)
        axes.set_ylabel("memories")
        axes.set_title(title, fontsize=10, loc="left")
        axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper left")
        axes.margins(y=0.2)
        step = max(len(counts) // 8, 1)
        shown_items = list(places)[::step]
        axes.set_xticks(shown_items, [_day(bulletins[item].at) for item in shown_items], fontsize=7)

    rows = [
        (iso(item.at), str(item.receipts), *(str(number) for number in value))
        for item, value in zip(bulletins, counts, strict=True)
    ]
    columns = ("first handed out", "times", "kept", "added", "left out")
    return _file(fill, form, title, (TextTable("Bulletins", columns, rows),))


def changes(bulletins: Sequence[DrawnBulletin]) -> list[tuple[int, int, int]]:
    """Return (kept, added, left out) of each, against the one before it."""
    before = [frozenset[str](), *(bulletin.memory_ids for bulletin in bulletins)]
    return [(len(new & old), len(new - old), len(old - new)) for old, new in pairwise(before)]


def _file(fill: Fill, form: str, title: str, listings: Sequence[TextTable]) -> bytes:
    if form != "html":
        return drawn(fill, size=SIZE, form=form)
    return page(title, drawn(fill, size=SIZE, form="svg"), listings).encode()


def _curves(axes: Axes, periods: Sequence[ConfidencePeriod], exponent: float) -> None:
    steps = [(at, item.confidence) for item in periods for at in (item.since, item.until)]
    count = max(min(CURVE_POINTS, MOST_POINTS // max(len(periods), 1)), 1)
    effective = [
        (ms, item.at(ms, exponent))
        for item in periods
        for ms in _between(item.since, item.until, count)
    ]
    for points, color, style, text in (
        (steps, MUTED, "--", "stored"),
        (effective, "#1f5fa8", "-", "effective"),
    ):
        times = [_date(ms) for ms, _ in points]
        values = [value for _, value in points]
        axes.plot(times, values, style, color=color, linewidth=1.6, label=text)  # type: ignore[arg-type]  # dates are taken


def _statuses(axes: Axes, periods: Sequence[StatusPeriod], now_ms: int) -> None:
    message: set[str] = set()
    for period in periods:
        status = period.status.value
        until = now_ms if period.until is None else period.until
        axes.axvspan(
            _date(period.since),  # type: ignore[arg-type]  # dates are taken
            _date(max(until, period.since)),  # type: ignore[arg-type]  # as above
            color=STATUS_COLORS[status],
            alpha=0.10,
            linewidth=0,
            label=None if status in message else status,
        )
        message.add(status)


def _between(since: int, until: int, count: int) -> list[int]:
    """Return times at ``count`` equal steps, or at each millisecond, with both ends."""
    steps = max(min(until - since, count), 1)
    return [since + round((until - since) * at / steps) for at in range(steps + 1)]


def _rows(periods: Sequence[StatusPeriod]) -> list[tuple[str, ...]]:
    return [
        (
            iso(period.since),
            "now" if period.until is None else iso(period.until),
            period.status.value,
            period.actor,
            period.reason or "",
        )
        for period in periods
    ]


def _dates(axes: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator()  # type: ignore[no-untyped-call]  # matplotlib says no types
    axes.xaxis.set_major_locator(locator)
    form = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]  # as above
    axes.xaxis.set_major_formatter(form)
    axes.grid(visible=True, axis="y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)


def _date(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, UTC)


def _day(ms: int) -> str:
    return iso(ms)[:10]


QUIET: Final = frozenset({"bulletin", "on_diagnostics"})
"""Purposes of receipts that count as no access; nor does one that asks how it was then."""


def held_of(history: History, accesses: Iterable[int]) -> list[ConfidencePeriod]:
    """Return the stored confidences in order, each from an access or a change to the next one.

    The last one ends when the history was read.

    Args:
        accesses: milliseconds, in any order; as far as receipts are kept.
    """
    created, now_ms = history.memory.created_at, history.at
    last = history.memory.last_accessed_at
    times = {created, *accesses} | (set() if last is None else {last})
    visible_part = sorted(time for time in times if created <= time <= now_ms)
    items_held: list[ConfidencePeriod] = []
    for period in history.values:
        until = now_ms if period.until is None else period.until
        marks = [
            period.since,
            *(item for item in visible_part if period.since < item < until),
            until,
        ]
        items_held += [
            ConfidencePeriod(
                since=since,
                until=end,
                confidence=period.confidence,
                decay_rate=period.decay_rate,
                idle_since=visible_part[max(bisect_right(visible_part, since) - 1, 0)],
            )
            for since, end in pairwise(marks)
        ]
    return items_held


def accesses_of(impact: Impact) -> list[int]:
    """Return the times at which the memory was handed out in a way that counts as an access."""
    return [
        hand_out.at
        for hand_out in impact.hand_outs
        if impact.memory_id in hand_out.memory_ids
        and hand_out.purpose not in QUIET
        and hand_out.as_of is None
    ]
