"""Queries for the material of a reflection, and for stored reflections.

Ids of reflections begin with ``ref_``, so a range of the id index finds them. Memories of a single
agent are excluded, because a reflection belongs to no agent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, Scope
from memgraph.model.values import Memory
from memgraph.rules.conversations import WEEKLY, ReflectionPeriod
from memgraph.rules.lifecycle import is_dismissed
from memgraph.store import tables
from memgraph.store.rows import memory_from_row
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, among, bound, prepared, value
from memgraph.store.visibility import View, memory_fields, replaces_whole


def _is_weekly(m: sa.FromClause) -> Column:
    return sa.and_(
        m.c.memory_id >= "ref_",
        # "`" follows "_" in ASCII.
        m.c.memory_id < "ref`",
        m.c.kind == MemoryKind.REFLECTION,
        sa.func.instr(m.c.tags, f'"{WEEKLY}"') > 0,
    )


def _is_shared(m: sa.FromClause, *kinds: MemoryKind) -> Column:
    return sa.and_(m.c.kind.in_(kinds), m.c.agent_id.is_(None))


_FACTS_AND_TURNS = (MemoryKind.FACT, MemoryKind.EPISODE)


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


def times(snapshot: Snapshot, scope: str, scope_id: str | None) -> list[int]:
    """Return the times of a scope's unretracted reflections."""
    m = tables.memories
    of_scope = (m.c.scope == bound(scope), m.c.scope_id.is_not_distinct_from(bound(scope_id)))
    weekly = sa.select(m.c.created_at).where(_is_weekly(m), *of_scope)
    return snapshot.column(weekly.where(m.c.status != MemoryStatus.RETRACTED).order_by(m.c.pk))


def projects(
    snapshot: Snapshot,
    during: ReflectionPeriod,
    sensitivities: Sequence[str],
    limit: int,
) -> list[str]:
    """Return the projects with new facts or turns, the busiest first."""
    values = {"sensitivities": sensitivities, "limit": limit}
    m, number = tables.memories, sa.func.count()
    is_shared = _is_shared(m, *_FACTS_AND_TURNS)
    new = (m.c.status == MemoryStatus.ACTIVE, is_shared, _is_of_period(m))
    query = (
        sa.select(m.c.scope_id)
        .where(m.c.scope == Scope.PROJECT, *new, among(m.c.sensitivity, "sensitivities"))
        .group_by(m.c.scope_id)
        .order_by(number.desc(), m.c.scope_id)
        .limit(value("limit"))
    )
    scope_ids = snapshot.column(query, asdict(during) | values)
    return [str(scope_id) for scope_id in scope_ids]


def _active(view: View, m: sa.FromClause) -> sa.Select[Any]:
    shared = (m.c.status == MemoryStatus.ACTIVE, m.c.agent_id.is_(None))
    return memory_fields(m).where(*shared, view.where(m)).limit(value("limit"))


def of_period(snapshot: Snapshot, view: View, during: ReflectionPeriod, limit: int) -> list[Memory]:
    """Return the latest active facts of a period, and turns up to the same limit."""
    rows: list[Any] = []
    m, values = tables.memories.alias("m"), view.params | asdict(during)
    for kind in (MemoryKind.FACT, MemoryKind.EPISODE):
        query = _active(view, m).where(_is_shared(m, kind), _is_of_period(m))
        rows += snapshot.rows(query.order_by(m.c.pk.desc()), values, limit=limit - len(rows))
    return [memory_from_row(row) for row in rows]


def tasks(snapshot: Snapshot, view: View, limit: int) -> list[Memory]:
    """Return the active goals and todos except turns, most important first."""
    m = tables.memories.alias("m")
    is_task = m.c.type.in_([MemoryType.GOAL, MemoryType.TODO])
    query = _active(view, m).where(is_task, m.c.kind != MemoryKind.EPISODE)
    query = query.order_by(m.c.importance.desc(), m.c.pk.desc())
    return snapshot.mapped(memory_from_row, query, view.params, limit=limit)


def joined(
    snapshot: Snapshot,
    view: View,
    during: ReflectionPeriod,
    edge_type: EdgeType,
    limit: int,
    *,
    resolved: bool = False,
) -> list[tuple[str, str, float]]:
    """Return (from, to, weight) of the open edges of a period between facts or turns.

    With ``resolved``, (winner, loser, weight) of those that were resolved in the period.
    """
    e = tables.edges.alias("e")
    a, b = tables.memories.alias("a"), tables.memories.alias("b")
    ends = e.join(a, a.c.memory_id == e.c.from_memory_id)
    query = (
        sa.select(a.c.memory_id, b.c.memory_id, e.c.weight, e.c.resolution)
        .select_from(ends.join(b, b.c.memory_id == e.c.to_memory_id))
        .where(e.c.edge_type == edge_type)
        .where(*(view.where(end) & _is_shared(end, *_FACTS_AND_TURNS) for end in (a, b)))
        .order_by(e.c.created_at.desc(), e.c.edge_id.desc())
        .limit(bound(limit))
    )
    if resolved:
        is_decided = (e.c.resolved_at >= value("since")) & (e.c.resolved_at < value("until"))
        kept = (end.c.status != MemoryStatus.RETRACTED for end in (a, b))
        query = query.where(is_decided, *kept)
    else:
        is_current = b.c.status != MemoryStatus.RETRACTED
        if edge_type is EdgeType.CONTRADICTS:
            is_current = b.c.status == MemoryStatus.ACTIVE
        is_open = e.c.resolved_at.is_(None) | replaces_whole(e)
        is_open &= (a.c.status == MemoryStatus.ACTIVE) & is_current
        query = query.where(_is_of_period(e), is_open)
    rows = snapshot.rows(query, view.params | asdict(during))
    if not resolved:
        return [(first, other, weight) for first, other, weight, _ in rows]
    decisions = [(json.loads(resolution), weight) for *_, weight, resolution in rows]
    return [
        (resolution["winner_id"], resolution["loser_id"], weight)
        for resolution, weight in decisions
        if not is_dismissed(resolution)
    ]
