"""Find memories that are duplicated, contradicted, or without source, edge or vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.access import HealthMetric
from memgraph.model.enums import CapturedBy, EdgeType, EmbeddingState, MemoryKind, MemoryStatus
from memgraph.store import tables
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, bound, ordered, value
from memgraph.store.visibility import ENDS, Table, View, beginning

EXCERPT_CHARS: Final = 160


class CountedMemory(NamedTuple):
    """A memory that a measure counts; ``other_id``: the other memory, if the measure is of pairs.

    ``text``: its first characters.
    """

    memory_id: str
    other_id: str | None
    text: str


class MemoryOfPlace(NamedTuple):
    """An active memory with its place: scope, scope id and agent as a JSON array.

    Only memories of the same place may be compared.
    """

    pk: int
    memory_id: str
    content: str
    created_at: int
    place: str


class _Criterion(NamedTuple):
    """The condition of a measure, and the id of the other memory if the measure is of pairs."""

    condition: Column
    other: Column


_Measure = Callable[[View, Table], _Criterion]


def _is_known(m: Table) -> Column:
    return sa.and_(m.c.status == MemoryStatus.ACTIVE, m.c.kind != MemoryKind.EPISODE)


def _known(view: View, m: Table) -> _Criterion:  # noqa: ARG001
    return _Criterion(_is_known(m), sa.null())


def _active(view: View, m: Table) -> _Criterion:  # noqa: ARG001
    return _Criterion(m.c.status == MemoryStatus.ACTIVE, sa.null())


def _with_other(m: Table, other: sa.Select[Any]) -> _Criterion:
    other = other.limit(1).correlate(m)
    return _Criterion(_is_known(m) & other.exists(), other.scalar_subquery())


def _is_duplicate(view: View, m: Table) -> _Criterion:
    """It has the same text as another memory in the same place."""
    o = tables.memories.alias("o")
    same = (o.c.content_hash == m.c.content_hash, o.c.pk != m.c.pk, o.c.scope == m.c.scope)
    of_place = (o.c[name].is_not_distinct_from(m.c[name]) for name in ("scope_id", "agent_id"))
    others = sa.select(o.c.memory_id).where(*same, *of_place, _is_known(o), view.where(o))
    return _with_other(m, others.order_by(o.c.pk))


def _contradicted(view: View, m: Table) -> _Criterion:
    """It is in an open contradiction with another active memory."""
    e, o = tables.edges.alias("e"), tables.memories.alias("o")
    ends = sa.union_all(
        *(
            sa.select(o.c.memory_id)
            .select_from(ordered(e, (o, o.c.memory_id == e.c[far])))
            .where(e.c.edge_type == EdgeType.CONTRADICTS, e.c[near] == m.c.memory_id)
            .where(e.c.resolved_at.is_(None), o.c.status == MemoryStatus.ACTIVE, view.where(o))
            .correlate(m)
            for near, far in ENDS
        )
    ).subquery("ends")
    return _with_other(m, sa.select(ends.c.memory_id).order_by(ends.c.memory_id))


def _unsourced(view: View, m: Table) -> _Criterion:  # noqa: ARG001
    """It has no origin: no file, conversation, run or evidence, and no person said it."""
    s, p = tables.sources.alias("s"), tables.supports.alias("p")
    d = tables.derivations.alias("d")
    places = (s.c.source_path, s.c.conversation_id, s.c.workflow_run_id)
    is_nameless = sa.and_(
        *(place.is_(None) for place in places), s.c.captured_by != CapturedBy.USER
    )
    has_nameless_source = sa.exists().where(s.c.source_id == m.c.source_id, is_nameless)
    has_evidence = sa.exists().where(d.c.memory_id == m.c.memory_id)
    has_other_source = (
        sa.exists()
        .select_from(ordered(p, (s, s.c.source_id == p.c.source_id)))
        .where(p.c.memory_id == m.c.memory_id, p.c.ended_at.is_(None), ~is_nameless)
    )
    terms = (
        has_nameless_source.correlate(m),
        ~has_evidence.correlate(m),
        ~has_other_source.correlate(m),
    )
    return _Criterion(sa.and_(_is_known(m), m.c.session_id.is_(None), *terms), sa.null())


def _orphans(view: View, m: Table) -> _Criterion:
    """It has no edge or derivation to a visible memory, and no entity."""
    e, d = tables.edges, tables.derivations
    o, link = tables.memories.alias("o"), tables.links.alias("t")
    connections = [
        sa.exists()
        .select_from(ordered(t, (o, o.c.memory_id == t.c[far])))
        .where(t.c[near] == m.c.memory_id, view.where(o))
        for t, near, far in (
            *((e.alias("t"), *ends) for ends in ENDS),
            (d.alias("t"), "memory_id", "derived_from_id"),
            (d.alias("t"), "derived_from_id", "memory_id"),
        )
    ]
    connections.append(sa.exists().where(link.c.memory_pk == m.c.pk))
    return _Criterion(sa.and_(_is_known(m), *(~tie.correlate(m) for tie in connections)), sa.null())


def _unembedded(view: View, m: Table) -> _Criterion:
    e = tables.embeddings
    waiting = sa.select(e.c.memory_pk).where(e.c.state != EmbeddingState.READY)
    return _Criterion(_active(view, m).condition & m.c.pk.in_(waiting), sa.null())


_MEASURES: Final[Mapping[HealthMetric, _Measure]] = {
    HealthMetric.DUPLICATE: _is_duplicate,
    HealthMetric.CONTRADICTION: _contradicted,
    HealthMetric.UNSOURCED: _unsourced,
    HealthMetric.ORPHAN: _orphans,
    HealthMetric.UNEMBEDDED: _unembedded,
}


def count(snapshot: Snapshot, view: View, *, turns: bool) -> int:
    """Count active memories, with or without raw turns."""
    return _count(snapshot, view, _active if turns else _known)


def measured(
    snapshot: Snapshot, view: View, metric: HealthMetric, limit: int
) -> tuple[int, list[CountedMemory]]:
    """Count the memories of a measure that needs one statement; return up to ``limit``, too."""
    measure = _MEASURES[metric]
    number = _count(snapshot, view, measure)
    if not number or not limit:
        return number, []
    m = tables.memories.alias("m")
    condition, other = measure(view, m)
    query = sa.select(m.c.memory_id, other, beginning(m, EXCERPT_CHARS))
    query = query.where(condition, view.where(m)).order_by(m.c.pk.desc()).limit(bound(limit))
    return number, snapshot.mapped(CountedMemory._make, query, view.params)


def sample(snapshot: Snapshot, view: View, limit: int) -> list[MemoryOfPlace]:
    """Return up to ``limit`` active memories, without raw turns, evenly spread over all, by key."""
    m, most = tables.memories.alias("m"), sa.type_coerce(value("most"), sa.Integer)
    place = sa.func.row_number().over(order_by=m.c.pk)
    columns = [m.c[name] for name in ("pk", "memory_id", "content", "created_at")]
    place_key = sa.func.json_array(m.c.scope, m.c.scope_id, m.c.agent_id).label("of_place")
    numbered = sa.select(
        *columns, place_key, place.label("place"), sa.func.count().over().label("total")
    )
    n = numbered.where(_is_known(m), view.where(m)).subquery("n")
    is_next = (n.c.place - 1) * most // n.c.total != n.c.place * most // n.c.total
    chosen = sa.select(n.c.pk, n.c.memory_id, n.c.content, n.c.created_at, n.c.of_place)
    query = chosen.where(is_next | (n.c.total <= most)).order_by(n.c.pk)
    return snapshot.mapped(MemoryOfPlace._make, query, view.params, most=limit)


def _count(snapshot: Snapshot, view: View, measure: _Measure) -> int:
    m = tables.memories.alias("m")
    query = sa.select(sa.func.count()).select_from(m)
    query = query.where(measure(view, m).condition, view.where(m))
    return int(snapshot.scalar(query, view.params))
