"""Read the graph: the memories around given memories, level by level.

A list of ids is one parameter, so that the text and the plan of a statement do not depend on the
number of ids. Every function works on the caller's snapshot, and returns what its ``View`` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple, TypeVar

import sqlalchemy as sa

from memgraph.clock import MAX_MS
from memgraph.errors import NotFound
from memgraph.model.columns import unreadable
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.values import Edge, Memory, StatusPeriod, StoredSource
from memgraph.rules.contradictions import ConflictSide, in_order
from memgraph.rules.marks import MarkGraph, Pair, PairKind, Replacement
from memgraph.store import tables
from memgraph.store.bulletins import moment
from memgraph.store.items import is_id
from memgraph.store.redaction import readable_edges, without_hidden
from memgraph.store.rows import (
    EDGE_FIELDS,
    SOURCE_FIELDS,
    STATUS_FIELDS,
    edge_from_row,
    memory_from_row,
    source_from_row,
    status_from_row,
)
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import (
    Column,
    among,
    bound,
    listed,
    member,
    ordered,
    place_of,
    prepared,
    unindexed,
    value,
)
from memgraph.store.visibility import STANDING, Table, View, memories_listed

_STRENGTH = itemgetter(*(EDGE_FIELDS.index(name) for name in ("weight", "created_at", "edge_id")))


class GraphStep(NamedTuple):
    """A step from ``origin_id`` to a visible memory, over one edge or derivation.

    Attributes:
        edge_type: None for a derivation.
        partial: 1 if the edge replaces only a part of the older memory.
    """

    origin_id: str
    memory_id: str
    edge_type: str | None
    weight: float
    created_at: int
    edge_id: str
    partial: int


class Direction(Enum):
    """The direction of an edge, seen from the origin."""

    OUT = ("from_memory_id", "to_memory_id")
    IN = ("to_memory_id", "from_memory_id")


Types = frozenset[EdgeType] | None
"""The types of edges to follow; None: all."""

Row = TypeVar("Row")


def read_hops(
    seeds: Iterable[str],
    read: Callable[[list[str]], Sequence[Row]],
    reached: Callable[[Row], str],
    max_hops: int,
) -> Iterator[Sequence[Row]]:
    """Yield the rows of each hop from memories, breadth first; every walk in the store is this one.

    Args:
        read: return the rows of one hop from the given memories.
        reached: return the memory that a row leads to; the next hop begins at the new ones.
    """
    frontier = list(dict.fromkeys(seeds))
    passed = set(frontier)
    for _ in range(max_hops):
        if not frontier:
            return
        rows = read(frontier)
        yield rows
        # A dict keeps the order, unlike a set.
        frontier = [each for each in dict.fromkeys(map(reached, rows)) if each not in passed]
        passed.update(frontier)


def strongest_neighbours(
    snapshot: Snapshot,
    ids: Collection[str],
    view: View,
    edge_types: Collection[EdgeType] | None,
    per_node: int,
) -> list[GraphStep]:
    """Return the strongest edges from each of ``ids`` to visible memories, in no particular order.

    Edges are ranked by weight, then the newest, then the higher edge id.

    Args:
        edge_types: the types of edges to follow; None: all.
        per_node: the maximum number of edges per memory in each direction.
    """
    statement = _strongest_neighbours(view.shape, _types(edge_types))
    return statement.mapped(GraphStep._make, snapshot, view.params, ids=ids, per_node=per_node)


@prepared
def _strongest_neighbours(view: View, types: Types) -> sa.CompoundSelect[Any]:
    legs = []
    for direction in Direction:
        f, e, strongest = _strongest(direction, view, types)
        far = direction.value[1]
        weight, partial = view.of_edge(e, "weight"), view.of_edge(e, "partial")
        step = (f.c.value, e.c[far], e.c.edge_type, weight, e.c.created_at, e.c.edge_id, partial)
        legs.append(sa.select(*step).select_from(strongest))
    return sa.union_all(*legs)


def _strongest(direction: Direction, view: View, types: Types) -> tuple[Table, Table, Any]:
    """Return the table of ids, the edges, and the join of each id with its strongest edges."""
    near, far = direction.value
    f, e, o = listed("ids", "f"), tables.edges.alias("e"), tables.edges.alias("o")
    m = tables.memories.alias("m")
    # This reads an index in the desired order and stops at the limit, so that a hub needs no sort.
    strongest = (
        sa.select(sa.type_coerce(place_of(o), sa.Integer).label("value"))
        .select_from(ordered(o, (m, m.c.memory_id == o.c[far])))
        .where(o.c[near] == f.c.value, _is_of(o, types), view.edge_where(o), view.where(m))
        .order_by(*_strength(o, view))
        .limit(value("per_node"))
        .correlate(f)
        .lateral("p")
    )
    return f, e, ordered(f, (strongest, sa.true()), (e, place_of(e) == strongest.c.value))


def _strength(e: Table, view: View) -> tuple[Column, ...]:
    return view.of_edge(e, "weight").desc(), e.c.created_at.desc(), e.c.edge_id.desc()


def edges_among(
    snapshot: Snapshot,
    ids: Collection[str],
    view: View,
    edge_types: Collection[EdgeType] | None,
    limit: int,
) -> list[Edge]:
    """Return edges with both ends in ``ids``, by weight, then newest, then the higher id."""
    f, o = listed(ids, "f"), tables.edges.alias("o")
    # Hiding the index of the other end makes the planner read the edges of each id, not all pairs.
    other = among(unindexed(o.c.to_memory_id), ids)
    query = (
        sa.select(*view.edge_columns(o))
        .select_from(ordered(f, (o, o.c.from_memory_id == f.c.value)))
        .where(other, _is_of(o, _types(edge_types)), view.edge_where(o))
        .order_by(*_strength(o, view))
        .limit(bound(limit))
    )
    return readable_edges(snapshot, view, snapshot.mapped(edge_from_row, query, view.params))


def derivations_among(
    snapshot: Snapshot, ids: Collection[str], view: View, limit: int
) -> list[tuple[str, str]]:
    """Return (memory id, evidence id) pairs with both in ``ids``, sorted."""
    f, d = listed(ids, "f"), tables.derivations.alias("d")
    query = (
        sa.select(d.c.memory_id, d.c.derived_from_id)
        .select_from(ordered(f, (d, d.c.memory_id == f.c.value)))
        .where(among(unindexed(d.c.derived_from_id), ids), view.derived_where(d))
        .order_by(d.c.memory_id, d.c.derived_from_id)
        .limit(bound(limit))
    )
    return snapshot.rows(query, view.params)


def linked(
    snapshot: Snapshot,
    ids: Collection[str],
    view: View,
    edge_types: Collection[EdgeType],
    direction: Direction,
    limit: int,
    *,
    derivations: bool = False,
) -> list[GraphStep]:
    """Return the steps from ``ids`` to visible memories in one direction, oldest first, then by id.

    Args:
        edge_types: the types of edges to follow.
        limit: the maximum number of steps.
        derivations: also return what the ids were derived from (OUT), or what was derived from
            them (IN).
    """
    statement = _linked(direction, view.shape, _types(edge_types), derivations)
    return statement.mapped(GraphStep._make, snapshot, view.params, ids=ids, limit=limit)


@prepared
def _linked(direction: Direction, view: View, types: Types, derivations: bool) -> sa.Select[Any]:
    near, far = direction.value
    f, m = listed("ids", "f"), tables.memories.alias("m")
    o, d = tables.edges.alias("o"), tables.derivations.alias("d")
    weight, partial = (view.of_edge(o, name).label(name) for name in ("weight", "partial"))
    of_edge = (o.c.edge_type, weight, o.c.created_at, o.c.edge_id, partial)
    steps = sa.select(o.c[near].label("origin"), o.c[far].label("memory_id"), *of_edge)
    is_step = sa.and_(o.c[near] == f.c.value, _is_of(o, types), view.edge_where(o))
    edges = ordered(f, (o, is_step), (m, m.c.memory_id == o.c[far]))
    legs = [steps.select_from(edges).where(view.where(m))]
    if derivations:
        near, far = "memory_id", "derived_from_id"
        if direction is Direction.IN:
            near, far = far, near
        of_none = (sa.null(), sa.literal(1.0), m.c.created_at, sa.literal(""), sa.false())
        is_step = sa.and_(d.c[near] == f.c.value, view.derived_where(d))
        grounds = ordered(f, (d, is_step), (m, m.c.memory_id == d.c[far]))
        leg = sa.select(d.c[near], d.c[far], *of_none).select_from(grounds)
        legs.append(leg.where(view.where(m)))
    both = sa.union_all(*legs).subquery()
    order = (both.c.created_at, both.c.memory_id, both.c.origin, both.c.edge_id)
    return sa.select(both).order_by(*order).limit(value("limit"))


@prepared
def _visible_memories(view: View) -> sa.Select[Any]:
    m, joined = memories_listed()
    return sa.select(*view.memory_columns(m)).select_from(joined).where(view.where(m))


def visible_memories(snapshot: Snapshot, ids: Collection[str], view: View) -> dict[str, Memory]:
    """Return the visible memories among ``ids``, in the order of ``ids``."""
    rows = _visible_memories(view.shape).rows(snapshot, view.params, ids=ids)
    return {row[0]: memory_from_row(row) for row in rows}


def visible_memory(snapshot: Snapshot, memory_id: str, view: View) -> Memory:
    """Return one memory.

    Raises:
        NotFound: it does not exist or is not visible; the error does not reveal which.
    """
    memories = visible_memories(snapshot, [memory_id] if is_id(memory_id) else [], view)
    if memory_id not in memories:
        raise NotFound(f"no memory {memory_id[:80]!r}", memory_id=memory_id[:80])
    return memories[memory_id]


@prepared
def _sources() -> sa.Select[Any]:
    f, s = listed("ids", "f"), tables.sources.alias("s")
    query = sa.select(*(s.c[name] for name in SOURCE_FIELDS))
    return query.select_from(ordered(f, (s, s.c.source_id == f.c.value)))


def sources_of(snapshot: Snapshot, memories: Collection[Memory]) -> tuple[StoredSource, ...]:
    """Return the distinct sources of memories, sorted by id."""
    source_ids = sorted({memory.source_id for memory in memories})
    return tuple(map(source_from_row, _sources().rows(snapshot, ids=source_ids)))


def status_history(
    snapshot: Snapshot, memory_id: str, *, until: int = MAX_MS
) -> tuple[StatusPeriod, ...]:
    """Return the status periods of a memory as known at ``until`` (milliseconds), oldest first."""
    h = tables.statuses.alias("h")
    ended = {"until": sa.case((h.c.until <= bound(until), h.c.until))}
    query = (
        sa.select(*(ended.get(name, h.c[name]) for name in STATUS_FIELDS))
        .where(h.c.memory_id == bound(memory_id), h.c.since <= bound(until))
        .order_by(h.c.since, h.c.status_id)
    )
    return tuple(snapshot.mapped(status_from_row, query))


def journal_about(
    snapshot: Snapshot,
    edges: Collection[Edge],
    limit: int,
    *,
    until: int = MAX_MS,
    memory_id: str = "",
) -> list[Any]:
    """Return the last ``limit`` journal entries about edges, oldest first.

    Each is (seq, at, actor, action, details as JSON).

    Args:
        until: include entries up to this time, in milliseconds.
        memory_id: also entries about this memory.
    """
    log = tables.audit_log.c
    query = sa.select(log.seq, log.at, log.actor, log.action, log.details)
    query = query.where(log.at <= bound(until)).order_by(log.seq.desc()).limit(bound(limit))
    rows = snapshot.rows(query.where(log.subject == bound(memory_id))) if memory_id else []
    # The subject of an entry about an edge is either end.
    others = {one for edge in edges for one in (edge.from_id, edge.to_id)} - {memory_id}
    if others:
        named = among(member(log.details, "edge_id"), sorted(edge.edge_id for edge in edges))
        query = query.where(among(log.subject, sorted(others)), sa.func.json_valid(log.details))
        rows += snapshot.rows(query.where(named))
    return sorted(rows, key=lambda row: row[0])[-limit:]


def _types(edge_types: Iterable[EdgeType] | None) -> Types:
    return None if edge_types is None else frozenset(edge_types)


def _is_of(e: Table, types: Types) -> Column:
    if types is None:
        return sa.true()
    return e.c.edge_type.in_(sorted(types)) if types else sa.false()


# The queries of recall: contradictions, replaced memories, and the edges around its items.


PAIRED: Final = frozenset({EdgeType.CONTRADICTS, EdgeType.UPDATES})
"""The edges by which two memories are a pair, see ``memgraph.rules.marks``."""


@prepared
def _pairs(view: View) -> sa.Select[Any]:
    standing = replace(view, statuses=STANDING)
    f, e = listed("ids", "f"), tables.edges.alias("e")
    m, o = tables.memories.alias("m"), tables.memories.alias("o")
    legs = []
    for direction in Direction:
        near, far = direction.value
        is_pair = (e.c[near] == f.c.value) & _is_of(e, PAIRED)
        ends = ((m, m.c.memory_id == e.c[far]), (o, o.c.memory_id == f.c.value))
        sides = sa.select(
            moment(o).label("time"),
            f.c.value.label("one"),
            moment(m).label("other_time"),
            e.c[far].label("other"),
            standing.status(m).label("status"),
            sa.literal(direction is Direction.OUT).label("is_from"),
            e.c.edge_type,
            *(view.of_edge(e, name).label(name) for name in ("partial", "weight")),
            e.c.edge_id,
            view.of_edge(e, "reason").label("reason"),
        )
        legs.append(
            sides.select_from(ordered(f, (e, is_pair), *ends)).where(
                view.of_edge(e, "resolved_at").is_(None) | view.in_force(e),
                view.edge_where(e),
                standing.where(m),
            )
        )
    both = sa.union_all(*legs).subquery()
    return sa.select(both).order_by(both.c.one, both.c.other, both.c.edge_id).limit(value("limit"))


def _pair(
    time: int,
    memory_id: str,
    other_time: int,
    other_id: str,
    status: str,
    is_from: bool,
    edge_type: str,
    partial: bool,
    weight: float,
    edge_id: str,
    *,
    reason: str | None,
) -> Pair | None:
    ends = ConflictSide(int(time), memory_id), ConflictSide(int(other_time), other_id)
    if edge_type == EdgeType.CONTRADICTS:
        kind, (later, earlier) = PairKind.CONTRADICTS, in_order(ends)
    else:
        later, earlier = ends if is_from else ends[::-1]
        kind = PairKind.AMENDS if partial else PairKind.REPLACES
        if weight < 1.0:
            kind = PairKind.CHANGES
    if status != MemoryStatus.ACTIVE and kind is not PairKind.REPLACES:
        return None
    return Pair(kind, later, earlier, weight, edge_id, reason)


@prepared
def _replacements(view: View) -> sa.Select[Any]:
    f, e, m = listed("ids", "f"), tables.edges.alias("e"), tables.memories.alias("m")
    replaced = view.in_force(e)
    is_loser = member(view.of_edge(e, "resolution"), "loser_id") == f.c.value
    lost = (e.c.edge_type == EdgeType.CONTRADICTS) & is_loser
    legs = []
    for rank, direction, condition in (
        (0, Direction.IN, replaced),
        (1, Direction.IN, lost),
        (1, Direction.OUT, lost),
    ):
        near, far = direction.value
        step = (sa.literal(rank).label("way"), e.c.created_at.label("since"))
        pair = (e.c[far].label("new"), f.c.value.label("old"), e.c.edge_id)
        ends = ((e, (e.c[near] == f.c.value) & condition), (m, m.c.memory_id == e.c[far]))
        query = sa.select(*step, *pair).select_from(ordered(f, *ends))
        legs.append(query.where(view.edge_where(e), view.where(m)))
    successors = sa.union_all(*legs).subquery()
    order = (successors.c.way, successors.c.since, successors.c.new, successors.c.old)
    return sa.select(successors).order_by(*order).limit(value("limit"))


def replacements(
    snapshot: Snapshot, memory_ids: Collection[str], view: View, limit: int
) -> list[Replacement]:
    """Return what replaced memories: full replacements, oldest first, then winners."""
    statement = _replacements(view.shape)
    return statement.mapped(Replacement._make, snapshot, view.params, ids=memory_ids, limit=limit)


MAX_CHAIN: Final = 5
"""The maximum number of replacements that are followed, one after another."""
_ROWS_PER_HOP: Final = 2_000


def read_pairs(
    snapshot: Snapshot, graph: MarkGraph, memory_ids: Collection[str], view: View
) -> None:
    """Add to a graph what contradicts, changes or replaced memories, and the reverse.

    Resolved contradictions and dismissed marks are left out. The other memory is visible, and
    active, except that of a replacement. Memories of which the graph has that are not read again.

    Args:
        view: the same for every reading.
    """
    if unread := graph.unread(memory_ids):
        rows = _pairs(view.shape).rows(snapshot, view.params, ids=unread, limit=_ROWS_PER_HOP)
        reasons = without_hidden(snapshot, view, [row[-1] for row in rows])
        pairs = (_pair(*row[:-1], reason=reason) for row, reason in zip(rows, reasons, strict=True))
        graph.add_pairs([pair for pair in pairs if pair], of=unread)


def read_successions(
    snapshot: Snapshot, graph: MarkGraph, memory_ids: Collection[str], view: View
) -> None:
    """Add to a graph what replaced memories, over several steps."""

    def read(ids: list[str]) -> list[Replacement]:
        return replacements(snapshot, ids, view, _ROWS_PER_HOP)

    for steps in read_hops(memory_ids, read, attrgetter("new"), MAX_CHAIN):
        graph.add_replacements(steps)


@prepared
def _edges_around(view: View, types: Types) -> sa.CompoundSelect[Any]:
    legs = []
    for direction in Direction:
        _, e, strongest = _strongest(direction, view, types)
        legs.append(sa.select(*view.edge_columns(e)).select_from(strongest))
    return sa.union_all(*legs)


def edges_around(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    view: View,
    per_memory: int,
    limit: int,
    edge_types: Collection[EdgeType] | None = None,
) -> list[Edge]:
    """Return the distinct edges from memories to visible ones, strongest, then newest first.

    Args:
        per_memory: the maximum number of edges per memory in each direction.
        limit: the maximum number of edges in all.
        edge_types: the types of the edges; None: all.

    Raises:
        DatabaseCorrupt: a row is damaged.
    """
    values = {"ids": memory_ids, "per_node": per_memory}
    # An edge between two of the memories is selected twice.
    statement = _edges_around(view.shape, _types(edge_types))
    rows = {row[0]: row for row in statement.rows(snapshot, view.params, **values)}
    try:
        strongest = sorted(rows.values(), key=_STRENGTH, reverse=True)
    except TypeError as error:
        raise unreadable("memory_edges", None) from error
    return readable_edges(snapshot, view, [edge_from_row(row) for row in strongest[:limit]])


# The newest connections, from which a drawing of a large store starts.


def _newest_pairs(view: View, limit: int, *, derived: bool) -> sa.Select[Any]:
    e = (tables.derivations if derived else tables.edges).alias("e")
    names = ("memory_id", "derived_from_id") if derived else ("from_memory_id", "to_memory_id")
    of_view = view.derived_where(e) if derived else view.edge_where(e)
    m, o = tables.memories.alias("m"), tables.memories.alias("o")
    ends = ((m, m.c.memory_id == e.c[names[0]]), (o, o.c.memory_id == e.c[names[1]]))
    # Ids of memories and of edges sort by time.
    order = e.c.memory_id if derived else e.c.edge_id
    return (
        sa.select(*(e.c[name] for name in names))
        .select_from(ordered(e, *ends))
        .where(of_view, view.where(m), view.where(o))
        .order_by(order.desc())
        .limit(bound(limit))
    )


def newest_pairs(snapshot: Snapshot, view: View, limit: int) -> list[tuple[str, str]]:
    """Return the ends of the newest edges and derivations between visible memories.

    Args:
        limit: the maximum number of edges, and of derivations.
    """
    return [
        (str(first), str(second))
        for derived in (False, True)
        for first, second in snapshot.rows(_newest_pairs(view, limit, derived=derived), view.params)
    ]
