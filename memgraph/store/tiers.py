"""Queries for the memories of the task, project and global tiers, without turns."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType, Scope
from memgraph.model.values import Memory
from memgraph.store import tables
from memgraph.store.recall import FilterShape, RecallFilter
from memgraph.store.rows import memory_from_row
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, prepared, value
from memgraph.store.visibility import KNOWLEDGE, by_importance, happened_at, memories_listed

# Two indexes cover all types: one for the types in KNOWLEDGE together, and one by type.
_KNOWLEDGE_INDEX, _TYPE_INDEX = "ix_memories_knowledge", "ix_memories_type_status"
_OTHERS = tuple(memory_type for memory_type in MemoryType if memory_type not in KNOWLEDGE)


def _in_task_or_project(narrowed: FilterShape, m: sa.FromClause) -> Column:
    """Return the condition that a memory belongs to one task or project."""
    return sa.and_(
        m.c.scope == value("tier_scope"),
        m.c.scope_id == value("tier_scope_id"),
        m.c.status == MemoryStatus.ACTIVE,
        m.c.scope != Scope.GLOBAL,
        m.c.kind != MemoryKind.EPISODE,
        narrowed.where(m),
    )


def _memory_query(narrowed: FilterShape, m: sa.FromClause) -> sa.Select[Any]:
    return sa.select(*narrowed.view.memory_columns(m))


@prepared
def _first(narrowed: FilterShape, limit: int) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    query = _memory_query(narrowed, m).where(_in_task_or_project(narrowed, m))
    return query.order_by(happened_at(m), m.c.pk).limit(limit)


@prepared
def _both_ends(narrowed: FilterShape, each_end: int) -> sa.Select[Any]:
    m, n = tables.memories.alias("m"), tables.memories.alias("n")
    keys = sa.select(n.c.pk).where(_in_task_or_project(narrowed, n)).limit(each_end)
    orders = ((happened_at(n), n.c.pk), (happened_at(n).desc(), n.c.pk.desc()))
    ends = (sa.select(keys.order_by(*order).subquery().c.pk) for order in orders)
    query = _memory_query(narrowed, m).where(m.c.pk.in_(sa.union(*ends)))
    return query.order_by(happened_at(m), m.c.pk)


def first_and_last(
    snapshot: Snapshot, narrowing: RecallFilter, scope: Scope, scope_id: str, limit: int
) -> list[Memory]:
    """Return the memories of a task or project in time order: the first and the last if too many.

    Args:
        limit: the maximum number of memories, at least 2; each end gets half of it.
    """
    values = {"tier_scope": scope.value, "tier_scope_id": scope_id}
    # A task or project rarely has more memories; only then are its two ends selected.
    rows = _first(narrowing.shape, limit + 1).rows(snapshot, narrowing.params, **values)
    if len(rows) > limit:
        ends = _both_ends(narrowing.shape, limit // 2)
        rows = ends.rows(snapshot, narrowing.params, **values)
    return [memory_from_row(row) for row in rows]


@prepared
def _most_important(narrowed: FilterShape, limit: int) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    query = _memory_query(narrowed, m).where(_in_task_or_project(narrowed, m))
    return query.order_by(*by_importance(m)).limit(limit)


@prepared
def _most_important_of_all(narrowed: FilterShape, limit: int) -> sa.Select[Any]:
    m, n = tables.memories.alias("m"), tables.memories.alias("n")
    # Without a hint the planner reads the four types one by one and sorts all of their rows.
    indexed_conditions = [
        (_KNOWLEDGE_INDEX, n.c.type.in_(KNOWLEDGE)),
        *((_TYPE_INDEX, n.c.type == memory_type) for memory_type in _OTHERS),
    ]
    legs = (
        sa.select(n.c.pk, n.c.importance, n.c.created_at)
        .with_hint(n, f"INDEXED BY {index}", "sqlite")
        .where(
            of_type,
            n.c.status == MemoryStatus.ACTIVE,
            n.c.kind != MemoryKind.EPISODE,
            n.c.scope == Scope.GLOBAL,
            narrowed.where(n),
        )
        .order_by(*by_importance(n))
        .limit(limit)
        .subquery()
        for index, of_type in indexed_conditions
    )
    leg = sa.union_all(*(sa.select(leg) for leg in legs)).subquery()
    first = sa.select(leg.c.pk).order_by(*by_importance(leg)).limit(limit)
    return _memory_query(narrowed, m).where(m.c.pk.in_(first)).order_by(*by_importance(m))


def most_important(
    snapshot: Snapshot,
    narrowing: RecallFilter,
    scope: Scope,
    scope_id: str | None,
    limit: int,
) -> list[Memory]:
    """Return the memories of a scope, most important first, then newest first."""
    build = _most_important_of_all if scope is Scope.GLOBAL else _most_important
    values = {"tier_scope": scope.value, "tier_scope_id": scope_id}
    # The limit is a literal: with a bound limit, SQLite sorts more rows.
    return build(narrowing.shape, limit).mapped(
        memory_from_row, snapshot, narrowing.params, **values
    )


@prepared
def _by_ids(narrowed: FilterShape) -> sa.Select[Any]:
    m, joined = memories_listed("tier_ids")
    return _memory_query(narrowed, m).select_from(joined).where(narrowed.where(m))


def by_ids(
    snapshot: Snapshot, narrowing: RecallFilter, memory_ids: Collection[str]
) -> list[Memory]:
    """Return the memories of ``memory_ids`` that pass the filter, in the order of the ids."""
    if not memory_ids:
        return []
    return _by_ids(narrowing.shape).mapped(
        memory_from_row, snapshot, narrowing.params, tier_ids=memory_ids
    )
