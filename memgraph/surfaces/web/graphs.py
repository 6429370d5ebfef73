"""Graphs for the browser, as JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from memgraph.clock import iso
from memgraph.model.access import Permission
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.graph import StaleMemory, Subgraph
from memgraph.model.recall import RecallItem
from memgraph.model.values import Edge, Memory, StatusPeriod

if TYPE_CHECKING:
    from memgraph.model.influence import SourceLines
    from memgraph.surfaces.web.requests import Visit


DERIVED: Final = "DerivedFrom"
"""The explorer's name for the relation from a memory to its evidence; not a stored edge."""
EDGES: Final = (*(each.value for each in EdgeType), DERIVED)

Step = tuple[str, str, str]
"""The two memories and the type of the edge between them."""


@dataclass(frozen=True, slots=True)
class Staleness:
    """Memories with retracted evidence.

    Attributes:
        ids: of such memories.
        steps: on the paths from them to their evidence.
    """

    ids: Collection[str] = frozenset()
    steps: Sequence[Step] = field(default=())


def staleness(items: Iterable[StaleMemory]) -> Staleness:
    """Return the marks for memories with retracted evidence."""
    ids, steps = set(), []
    for each in items:
        ids.add(each.memory.memory_id)
        for step in each.premise.path:
            kind = DERIVED if step.edge_type is None else step.edge_type.value
            steps.append((step.memory_id, step.ground_id, kind))
    return Staleness(ids, steps)


def drawing(found: Subgraph, stale: Staleness, *, as_of: int | None) -> dict[str, Any]:
    """Return a neighbourhood as plain JSON; texts are unescaped, for a script that sets text."""
    drawn = {each.memory_id for each in found.nodes}
    marked = {frozenset(step[:2]) for step in stale.steps}
    edges = [_edge(each, frozenset((each.from_id, each.to_id)) in marked) for each in found.edges]
    return {
        "nodes": [_node(each, each.memory_id in stale.ids) for each in found.nodes],
        "edges": edges + list(_derivations(stale.steps, drawn)),
        "missing": list(found.missing),
        "cut": found.cut,
        "cut_reasons": list(found.cut_reasons),
        "as_of": None if as_of is None else iso(as_of),
    }


def _node(memory: Memory, stale: bool) -> dict[str, Any]:
    return {
        "id": memory.memory_id,
        "summary": memory.summary,
        "type": memory.type.value,
        "kind": memory.kind.value,
        "status": memory.shown_status.value,
        "importance": memory.importance,
        "confidence": memory.confidence,
        "created_at": iso(memory.created_at),
        "stale": stale,
    }


def _edge(edge: Edge, stale: bool) -> dict[str, Any]:
    contradicts = edge.edge_type is EdgeType.CONTRADICTS
    return {
        "id": edge.edge_id,
        "source": edge.from_id,
        "target": edge.to_id,
        "type": edge.edge_type.value,
        "open": contradicts and edge.resolved_at is None,
        "stale": stale,
    }


def _derivations(steps: Iterable[Step], drawn: Collection[str]) -> Iterable[dict[str, Any]]:
    """Yield derivations on a stale path, between two drawn memories: they are no stored edges."""
    for origin, ground, kind in dict.fromkeys(steps):
        if kind == DERIVED and origin in drawn and ground in drawn:
            yield {
                "id": f"derived:{origin}:{ground}",
                "source": origin,
                "target": ground,
                "type": DERIVED,
                "open": False,
                "stale": True,
            }


def lines_of(visit: Visit, *memory_ids: str) -> Mapping[str, SourceLines]:
    """Return the lines by memory id; empty for a principal who may not audit."""
    if not visit.may(Permission.AUDIT):
        return {}
    orc = visit.enter(Permission.AUDIT)
    return {each: orc.source_lines(each) for each in memory_ids}


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


LEAST_CHANGE: Final = 0.0005
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
class ScoredItem:
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


def scored(items: Sequence[RecallItem]) -> list[ScoredItem]:
    """Return every item of an answer with its bars, in order."""
    best = max((each.score for each in items), default=0.0)
    depth = max((rank for each in items for rank in each.legs.values()), default=1)
    top = max((factor for each in items for factor in each.modifiers.values()), default=1.0)
    return [_scored(each, best, depth, max(top, 1.0)) for each in items]


def _scored(item: RecallItem, best: float, depth: int, top: float) -> ScoredItem:
    product = math.prod(item.modifiers.values())
    return ScoredItem(
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
            if abs(factor - 1.0) >= LEAST_CHANGE
        ),
    )


def _percent(part: float, whole: float) -> float:
    """Return 0..100, rounded to tenths; 0 when the whole is 0."""
    return round(min(max(part / whole, 0.0), 1.0) * 100, 1) if whole > 0 else 0.0
