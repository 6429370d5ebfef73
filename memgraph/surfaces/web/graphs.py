"""Graphs for the browser, as JSON."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from memgraph.clock import iso
from memgraph.model.access import Permission
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus
from memgraph.model.graph import StaleMemory, Subgraph
from memgraph.model.recall import RecallItem
from memgraph.model.values import Edge, Memory, StatusPeriod
from memgraph.surfaces.web.render import short

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
    for item in items:
        ids.add(item.memory.memory_id)
        for step in item.premise.path:
            kind = DERIVED if step.edge_type is None else step.edge_type.value
            steps.append((step.memory_id, step.ground_id, kind))
    return Staleness(ids, steps)


def drawing(subgraph: Subgraph, stale: Staleness, *, as_of: int | None) -> dict[str, Any]:
    """Return a neighbourhood as plain JSON; texts are unescaped, for a script that sets text.

    Memories of one document or conversation are in one of ``groups``, if more than one is drawn.
    """
    marked = {frozenset(step[:2]) for step in stale.steps}
    places = _places(subgraph)
    names, titles = labels(subgraph.nodes, places)
    edges = [
        _edge(edge, frozenset((edge.from_id, edge.to_id)) in marked) for edge in subgraph.edges
    ]
    return {
        "nodes": [
            _node(node, node.memory_id in stale.ids)
            | {"label": names[node.memory_id], "group": _group(places.get(node.memory_id))}
            for node in subgraph.nodes
        ],
        "edges": edges + list(_derivations(subgraph, stale.steps, marked)),
        "groups": [
            {"id": _group(place), "label": titles.get(place) or PurePosixPath(place).name or place}
            for place in sorted(set(places.values()))
        ],
        "missing": list(subgraph.missing),
        "cut": subgraph.cut,
        "cut_reasons": list(subgraph.cut_reasons),
        "as_of": None if as_of is None else iso(as_of),
    }


def _places(subgraph: Subgraph) -> dict[str, str]:
    """Return the document or conversation of each memory that shares it with another one."""
    sources = {item.source_id: item for item in subgraph.sources}
    places = {}
    for memory in subgraph.nodes:
        source = sources.get(memory.source_id)
        path = None if source is None else source.source_path
        if place := path or memory.session_id or (source and source.conversation_id):
            places[memory.memory_id] = place
    count = Counter(places.values())
    return {memory_id: place for memory_id, place in places.items() if count[place] > 1}


def _group(place: str | None) -> str | None:
    """Return an id for a place, whose path is the server's own affair."""
    return None if place is None else hashlib.sha256(place.encode()).hexdigest()[:16]


LABEL_CHARS: Final = 40
_HEAD: Final = re.compile(r"(.{3,80}?)(?: \(([\w ]{1,30})\))?: (?=\S)", re.DOTALL)
"""``Title: …`` or ``Title (part): …``, as the parts of a document begin."""


def labels(
    memories: Sequence[Memory], places: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return a short name for each memory by id, and the title of each place that has one title.

    Names differ where the texts do.

    The parts of a document begin with its title: their names begin after it. Of texts that begin
    alike, the names begin with the first word that differs.
    """
    texts = {memory.memory_id: " ".join(memory.summary.split()) for memory in memories}
    heads = {
        memory.memory_id: match
        for memory in memories
        if memory.kind is not MemoryKind.EPISODE
        and memory.memory_id in places
        and (match := _HEAD.match(texts[memory.memory_id]))
    }
    # What has parts is a title; of a quotation the speaker comes first.
    titles = {(places[key], match[1]) for key, match in heads.items() if match[2]}
    for key, match in heads.items():
        if (places[key], match[1]) in titles:
            rest = texts[key][match.end() :]
            texts[key] = f"{match[2]}: {rest}" if match[2] else match[1]
    alike: dict[str, list[str]] = {}
    for key, text in texts.items():
        alike.setdefault(short(text, LABEL_CHARS), []).append(key)
    names = {}
    for name, ids in alike.items():
        ends = (min(texts[memory_id] for memory_id in ids), max(texts[one] for one in ids))
        common = os.path.commonprefix(ends) if len(ids) > 1 else ""  # noqa: RUF071 - of texts
        start = common.rfind(" ") + 1
        for memory_id in ids:
            rest = texts[memory_id][start:]
            names[memory_id] = f"…{short(rest, LABEL_CHARS)}" if start and rest else name
    by_place: dict[str, set[str]] = {}
    for place, title in titles:
        by_place.setdefault(place, set()).add(title)
    return names, {place: next(iter(value)) for place, value in by_place.items() if len(value) == 1}


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


def _derivations(
    subgraph: Subgraph, steps: Iterable[Step], marked: Collection[frozenset[str]]
) -> Iterable[dict[str, Any]]:
    """Yield the derivations between drawn memories: they are no stored edges."""
    drawn = {node.memory_id for node in subgraph.nodes}
    pairs = [
        (derivation.memory_id, derivation.derived_from_id) for derivation in subgraph.derivations
    ]
    pairs += [(value, ground) for value, ground, kind in steps if kind == DERIVED]
    for value, ground in dict.fromkeys(pairs):
        if value in drawn and ground in drawn:
            yield {
                "id": f"derived:{value}:{ground}",
                "source": value,
                "target": ground,
                "type": DERIVED,
                "open": False,
                "stale": frozenset((value, ground)) in marked,
            }


def lines_of(visit: Visit, *memory_ids: str) -> Mapping[str, SourceLines]:
    """Return the lines by memory id; empty for a principal who may not audit."""
    if not visit.may(Permission.AUDIT):
        return {}
    orc = visit.enter(Permission.AUDIT)
    return {memory_id: orc.sources.lines(memory_id) for memory_id in memory_ids}


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
    until = max(now, *(period.since for period in periods), since + 1)
    bands = []
    for period in periods:
        start = _x(period.since, since, until)
        end = _x(until if period.until is None else period.until, since, until)
        start = min(start, WIDTH - LEAST)
        bands.append(Band(round(start, 2), round(max(end - start, LEAST), 2), period.status))
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
