"""Walk from memories to their evidence, and tell how memories ended.

Every walk has limits on its steps, on the rows of a step, and on the endings that it examines.
Memories that the view hides are skipped, whether as evidence, on the way, or as successors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import takewhile
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus
from memgraph.rules.evidence import (
    BASIS_EDGES,
    MAX_HOPS,
    Dependency,
    RefutedEvidence,
    broken_paths,
    evidence_graph,
)
from memgraph.rules.lifecycle import EndOfLife, refuted
from memgraph.store import graph, memories, tables
from memgraph.store.graph import Direction, GraphStep
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, bound, listed, member, ordered, prepared, value
from memgraph.store.visibility import AS_OF, Table, View

# How memories ended, in the form that ``memgraph.rules.lifecycle`` needs.


def endings(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> dict[str, EndOfLife]:
    """Return the ending of each visible memory, now or at the view's time, by id.

    The view's statuses are ignored, so that retracted memories are included.
    """
    any_status = View(view.viewer, view.as_of)
    rows = _endings(any_status.shape).rows(snapshot, any_status.params, ids=memory_ids)
    return {
        str(memory_id): EndOfLife(MemoryStatus(status), reason, bool(lost), since or 0, actor or "")
        for memory_id, status, reason, since, actor, lost in rows
    }


@prepared
def _endings(view: View) -> sa.Select[Any]:
    f, m = listed("ids", "f"), tables.memories.alias("m")
    ended = (
        sa.select(m.c.memory_id, view.status(m).label("status"))
        .select_from(ordered(f, (m, m.c.memory_id == f.c.value)))
        .where(view.where(m))
        .subquery("ended")
    )
    h, e = tables.statuses.alias("h"), tables.edges.alias("e")
    periods = (
        sa.select(column)
        .where(h.c.memory_id == ended.c.memory_id, _is_then(h, view))
        .order_by(*_last_first(h))
        .limit(1)
        .correlate(ended)
        .scalar_subquery()
        for column in (h.c.reason, h.c.since, h.c.actor)
    )
    lost = (
        sa.select(sa.literal(1))
        .where(e.c[end] == ended.c.memory_id, e.c.edge_type == EdgeType.CONTRADICTS)
        .where(member(view.of_edge(e, "resolution"), "loser_id") == ended.c.memory_id)
        .correlate(ended)
        for end in ("from_memory_id", "to_memory_id")
    )
    # Look up the period only of memories that have ended; most have not.
    has_ended = ended.c.status != MemoryStatus.ACTIVE
    return sa.select(
        ended.c.memory_id,
        ended.c.status,
        *(sa.case((has_ended, period)) for period in periods),
        sa.case((has_ended, sa.union_all(*lost).exists()), else_=sa.false()),
    )


def last_retractions(snapshot: Snapshot, memory_id: str) -> tuple[str | None, ...]:
    """Return the reasons of a memory's latest consecutive retractions, up to two, latest first."""
    h = tables.statuses.alias("h")
    last = sa.select(h.c.status, h.c.reason).where(h.c.memory_id == bound(memory_id))
    rows = snapshot.rows(last.order_by(*_last_first(h)).limit(2))
    retractions = takewhile(lambda row: row[0] == MemoryStatus.RETRACTED, rows)
    return tuple(reason for _, reason in retractions)


def _last_first(h: Table) -> tuple[Column, Column]:
    return h.c.since.desc(), h.c.status_id.desc()


def _is_then(h: Table, view: View) -> Column:
    """Return the SQL condition that a status period contains the view's time."""
    if view.as_of is None:
        return h.c.until.is_(None)
    return (h.c.since <= AS_OF) & (h.c.until.is_(None) | (h.c.until > AS_OF))


MAX_ROWS: Final = 2_000
"""The maximum number of rows in one step of a walk."""

# Sorted as in the condition of the index ix_memory_edges_grounds, which must be identical.
_TYPES: Final = tuple(sorted(BASIS_EDGES))


def _visible_rows(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> list[Dependency]:
    """Return what visible memories depend on within ``MAX_HOPS`` steps of ``MAX_ROWS`` rows."""
    any_status = View(view.viewer, view.as_of)

    def read(frontier: list[str]) -> list[GraphStep]:
        return graph.linked(
            snapshot, frontier, any_status, _TYPES, Direction.OUT, MAX_ROWS, derivations=True
        )

    hops = graph.read_hops(memory_ids, read, attrgetter("memory_id"), MAX_HOPS)
    return [
        Dependency(step.origin_id, step.memory_id, step.edge_type, step.edge_id)
        for steps in hops
        for step in steps
    ]


@prepared
def _grounds(view: View) -> sa.Select[Any]:
    f = listed("ids", "f")
    e, d = tables.edges.alias("e"), tables.derivations.alias("d")
    of_edge = (e.c.from_memory_id == f.c.value) & e.c.edge_type.in_(_TYPES) & view.edge_where(e)
    derived = sa.and_(d.c.memory_id == f.c.value, view.derived_where(d))
    edges = sa.select(e.c.from_memory_id, e.c.to_memory_id, e.c.edge_type, e.c.edge_id)
    edges = edges.with_hint(e, "INDEXED BY ix_memory_edges_grounds", "sqlite")
    origins = sa.select(d.c.memory_id, d.c.derived_from_id, sa.null(), sa.literal(""))
    both = sa.union_all(
        edges.select_from(ordered(f, (e, of_edge))),
        origins.select_from(ordered(f, (d, derived))),
    )
    return sa.select(both.subquery()).limit(value("limit"))


def broken_evidence(
    snapshot: Snapshot, memory_ids: Iterable[str], view: View
) -> dict[str, tuple[Dependency, ...]]:
    """Return the paths from memories to the refuted evidence they depend on, by memory id."""
    ids = sorted(set(memory_ids))
    any_status, cut = View(view.viewer, view.as_of), False

    def read(frontier: list[str]) -> list[Dependency]:
        nonlocal cut
        rows = _grounds(any_status.shape).mapped(
            Dependency._make, snapshot, any_status.params, ids=frontier, limit=MAX_ROWS + 1
        )
        cut = len(rows) > MAX_ROWS
        return [] if cut else rows

    # Most evidence is valid, so the first walk reads only indexes, and visibility is checked later
    # for evidence that has ended. If it is cut, walk again without hidden rows.
    hops = graph.read_hops(ids, read, itemgetter(1), MAX_HOPS)
    rows = [row for rows in hops for row in rows]
    if cut:
        rows = _visible_rows(snapshot, ids, view)
    # Whether they are visible is looked up later.
    ids_and_time = {"ids": {row.ground_id for row in rows}, "view_as_of": view.as_of}
    ended: frozenset[str] = frozenset(_ended(view.shape).column(snapshot, ids_and_time))
    if not ended:
        return {}
    import networkx as nx

    # What leads to ended evidence alone: only its visibility is looked up.
    bases = evidence_graph(rows)
    leading = set().union(*nx.bfs_layers(bases.reverse(copy=False), ended))
    visible = frozenset(memories.existing_ids(snapshot, sorted(leading), any_status))
    refuted_evidence = refuted_among(snapshot, ended & visible, view)
    paths = broken_paths(bases.subgraph(visible), refuted_evidence)
    return {memory_id: paths[memory_id] for memory_id in ids if memory_id in paths}


@prepared
def _ended(view: View) -> sa.Select[Any]:
    f, h = listed("ids", "f"), tables.statuses.alias("h")
    period = (h.c.memory_id == f.c.value, h.c.status != MemoryStatus.ACTIVE, _is_then(h, view))
    return sa.select(f.c.value).where(sa.exists().where(*period).correlate(f))


def refuted_among(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> dict[str, RefutedEvidence]:
    """Return the refuted visible memories by id, with the time and their successors."""
    if not memory_ids:
        return {}
    ids = sorted(memory_ids)
    ended = endings(snapshot, ids, view)
    since = {one: ended[one].since for one in ids if one in ended and refuted(ended[one])}
    if not since:
        return {}
    any_status = View(view.viewer, view.as_of)
    successors: dict[str, set[str]] = {}
    for step in graph.replacements(snapshot, list(since), any_status, MAX_ROWS):
        successors.setdefault(step.old, set()).add(step.new)
    return {
        memory_id: RefutedEvidence(at, frozenset(successors.get(memory_id, ())))
        for memory_id, at in since.items()
    }


class Speaker(NamedTuple):
    """The role of a turn's speaker, and the conversation of the turn."""

    role: str | None
    session_id: str | None


def speakers(snapshot: Snapshot, memory_id: str) -> list[Speaker]:
    """Return the speakers of the turns that a memory was derived from, in each conversation.

    The list is empty if it does not come from a conversation.
    """
    d, m = tables.derivations.alias("d"), tables.memories.alias("m")
    roles = sa.select(m.c.source_role, m.c.session_id).distinct()
    roles = roles.select_from(d.join(m, m.c.memory_id == d.c.derived_from_id))
    roles = roles.where(d.c.memory_id == bound(memory_id), m.c.kind == MemoryKind.EPISODE)
    return snapshot.mapped(Speaker._make, roles)
