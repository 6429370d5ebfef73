"""Queries for the material of a reflection, and for stored reflections.

Ids of reflections begin with ``ref_``, so a range of the id index finds them. Memories of a single
agent are excluded, because a reflection belongs to no agent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, Scope
from memgraph.model.values import Memory
from memgraph.rules.conversations import WEEKLY, ReflectionPeriod
from memgraph.store import tables
from memgraph.store.rows import memory_from_row
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, among, prepared, value
from memgraph.store.visibility import View, is_no_item, memory_fields


def _is_weekly(m: sa.FromClause) -> Column:
    return sa.and_(
        m.c.memory_id >= "ref_",
        # "`" follows "_" in ASCII.
        m.c.memory_id < "ref`",
        m.c.kind == MemoryKind.REFLECTION,
        sa.func.instr(m.c.tags, f'"{WEEKLY}"') > 0,
    )


def _is_shared_fact(m: sa.FromClause) -> Column:
    return sa.and_(m.c.kind == MemoryKind.FACT, is_no_item(m), m.c.agent_id.is_(None))


def _is_of_period(rows: sa.FromClause) -> Column:
    return (rows.c.created_at >= value("since")) & (rows.c.created_at < value("until"))


@prepared
def _latest(view: View) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    is_active = view.status(m) == MemoryStatus.ACTIVE
    weekly = sa.select(*view.memory_columns(m)).where(_is_weekly(m), is_active, view.where(m))
    return weekly.order_by(m.c.pk.desc()).limit(1)


def latest(snapshot: Snapshot, view: View) -> Memory | None:
    """Return the newest active and visible reflection, or None."""
    row = _latest(view.shape).row(snapshot, view.params)
    return None if row is None else memory_from_row(row)


@prepared
def _times() -> sa.Select[Any]:
    m = tables.memories
    of_scope = (m.c.scope == value("scope"), m.c.scope_id.is_not_distinct_from(value("scope_id")))
    weekly = sa.select(m.c.memory_id, m.c.created_at).where(_is_weekly(m), *of_scope)
    return weekly.where(m.c.status != MemoryStatus.RETRACTED).order_by(m.c.pk)


def times(snapshot: Snapshot, scope: str, scope_id: str | None) -> list[tuple[str, int]]:
    """Return the ids and times of a scope's unretracted reflections."""
    return _times().rows(snapshot, scope=scope, scope_id=scope_id)


@prepared
def _projects() -> sa.Select[Any]:
    m, number = tables.memories, sa.func.count()
    new = (m.c.status == MemoryStatus.ACTIVE, _is_shared_fact(m), _is_of_period(m))
    return (
        sa.select(m.c.scope_id)
        .where(m.c.scope == Scope.PROJECT, *new, among(m.c.sensitivity, "sensitivities"))
        .group_by(m.c.scope_id)
        .having(number >= value("at_least"))
        .order_by(number.desc(), m.c.scope_id)
        .limit(value("limit"))
    )


def projects(
    snapshot: Snapshot,
    during: ReflectionPeriod,
    sensitivities: Sequence[str],
    at_least: int,
    limit: int,
) -> list[str]:
    """Return the projects with at least ``at_least`` new facts, most facts first."""
    values = {"sensitivities": sensitivities, "at_least": at_least}
    scope_ids = _projects().column(snapshot, asdict(during), limit=limit, **values)
    return [str(scope_id) for scope_id in scope_ids]


def _active(view: View, m: sa.FromClause) -> sa.Select[Any]:
    """Select visible active memories without an agent, with the fields of ``memory_from_row``."""
    shared = (m.c.status == MemoryStatus.ACTIVE, m.c.agent_id.is_(None))
    return memory_fields(m).where(*shared, view.where(m)).limit(value("limit"))


@prepared
def _of_period(view: View, facts: bool) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    chosen = _is_shared_fact(m) if facts else m.c.kind == MemoryKind.EPISODE
    return _active(view, m).where(chosen, _is_of_period(m)).order_by(m.c.pk.desc())


def of_period(snapshot: Snapshot, view: View, during: ReflectionPeriod, limit: int) -> list[Memory]:
    """Return the latest active facts of a period, and turns up to the same limit."""
    rows: list[Any] = []
    values = view.params | asdict(during)
    for facts in (True, False):
        statement = _of_period(view.shape, facts)
        rows += statement.rows(snapshot, values, limit=limit - len(rows))
    return [memory_from_row(row) for row in rows]


@prepared
def _count_facts(view: View) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    new = (_is_shared_fact(m), _is_of_period(m), m.c.status == MemoryStatus.ACTIVE)
    return sa.select(sa.func.count()).select_from(m).where(*new, view.where(m))


def count_facts(snapshot: Snapshot, view: View, during: ReflectionPeriod) -> int:
    """Return the number of active facts stored in a period."""
    return int(_count_facts(view.shape).scalar(snapshot, view.params | asdict(during)))


@prepared
def _tasks(view: View) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    is_task = m.c.type.in_([MemoryType.GOAL, MemoryType.TODO])
    tasks = _active(view, m).where(is_task, m.c.kind != MemoryKind.EPISODE)
    return tasks.order_by(m.c.importance.desc(), m.c.pk.desc())


def tasks(snapshot: Snapshot, view: View, limit: int) -> list[Memory]:
    """Return the active goals and todos except turns, most important first."""
    return _tasks(view.shape).mapped(memory_from_row, snapshot, view.params, limit=limit)


@prepared
def _edges_among() -> sa.Select[Any]:
    e = tables.edges
    edges = sa.select(e.c.from_memory_id, e.c.to_memory_id, e.c.edge_type, e.c.weight)
    both = (among(e.c.from_memory_id, "ids"), among(e.c.to_memory_id, "ids"))
    return edges.where(*both).order_by(e.c.edge_id)


def edges_among(
    snapshot: Snapshot, memory_ids: Collection[str]
) -> list[tuple[str, str, EdgeType, float]]:
    """Return (from, to, type, weight) of every edge between two of these memories."""
    rows = _edges_among().rows(snapshot, ids=memory_ids)
    return [(from_id, to_id, EdgeType(kind), weight) for from_id, to_id, kind, weight in rows]


@prepared
def _derivations_among() -> sa.Select[Any]:
    d = tables.derivations
    both = (among(d.c.memory_id, "ids"), among(d.c.derived_from_id, "ids"))
    pair = (d.c.memory_id, d.c.derived_from_id)
    return sa.select(*pair).where(*both).order_by(*pair)


def derivations_among(snapshot: Snapshot, memory_ids: Collection[str]) -> list[tuple[str, str]]:
    """Return the (memory, evidence) pairs among these memories."""
    return _derivations_among().rows(snapshot, ids=memory_ids)


@prepared
def _entities_of() -> sa.Select[Any]:
    m, link, n = tables.memories, tables.links, tables.entities
    mentions = m.join(link, link.c.memory_pk == m.c.pk).join(n, n.c.pk == link.c.entity_pk)
    pair = (n.c.entity_id, m.c.memory_id)
    return sa.select(*pair).select_from(mentions).where(among(m.c.memory_id, "ids")).order_by(*pair)


def entities_of(snapshot: Snapshot, memory_ids: Collection[str]) -> list[tuple[str, str]]:
    """Return (entity id, memory id) for every entity that these memories name."""
    return _entities_of().rows(snapshot, ids=memory_ids)


@prepared
def _joined(view: View, edge_type: EdgeType) -> sa.Select[Any]:
    """Select both sides of a period's edges between shared facts, newest first."""
    e = tables.edges.alias("e")
    a, b = tables.memories.alias("a"), tables.memories.alias("b")
    if edge_type is EdgeType.CONTRADICTS:
        is_current: Column = e.c.resolved_at.is_(None) & (b.c.status == MemoryStatus.ACTIVE)
    else:
        is_current = b.c.status != MemoryStatus.RETRACTED
    ends = e.join(a, a.c.memory_id == e.c.from_memory_id)
    return (
        sa.select(a.c.memory_id, b.c.memory_id)
        .select_from(ends.join(b, b.c.memory_id == e.c.to_memory_id))
        .where(e.c.edge_type == edge_type, _is_of_period(e))
        .where(a.c.status == MemoryStatus.ACTIVE, is_current)
        .where(*(view.where(end) & _is_shared_fact(end) for end in (a, b)))
        .order_by(e.c.created_at.desc(), e.c.edge_id.desc())
        .limit(value("limit"))
    )


def contradictions(
    snapshot: Snapshot, view: View, during: ReflectionPeriod, limit: int
) -> list[tuple[str, str]]:
    """Return both sides of the open contradictions that were found in a period."""
    statement = _joined(view.shape, EdgeType.CONTRADICTS)
    return statement.rows(snapshot, view.params | asdict(during), limit=limit)


def replacements(
    snapshot: Snapshot, view: View, during: ReflectionPeriod, limit: int
) -> list[tuple[str, str]]:
    """Return (newer, replaced) pairs of a period, including partial updates."""
    statement = _joined(view.shape, EdgeType.UPDATES)
    return statement.rows(snapshot, view.params | asdict(during), limit=limit)
