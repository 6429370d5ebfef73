"""Conditions, columns and joins over ``memories`` that several aggregates share."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from memgraph.model.enums import EdgeType, MemoryType, Sensitivity
from memgraph.rules.namespaces import ITEM_TAG, ROOT
from memgraph.store import tables
from memgraph.store.rows import MEMORY_FIELDS
from memgraph.store.statements import Column, listed, ordered, value

# The types that a partial index (ix_memories_knowledge) holds together.
KNOWLEDGE: Final = (
    MemoryType.FACT,
    MemoryType.IDENTITY,
    MemoryType.OBSERVATION,
    MemoryType.EVENT,
)
ENDS: Final = (("from_memory_id", "to_memory_id"), ("to_memory_id", "from_memory_id"))
"""The columns of an edge's two ends, in both orders."""


def happened_at(m: sa.FromClause) -> Column:
    """Return the time of a memory's event, or else of its creation."""
    return sa.func.coalesce(m.c.event_time, m.c.created_at)


def is_unexpired(m: sa.FromClause, at: str = "at") -> Column:
    """Return whether a memory is still valid at the time that is bound as ``at``."""
    return m.c.valid_until.is_(None) | (m.c.valid_until > value(at))


def is_no_item(m: sa.FromClause) -> Column:
    """Return whether a memory is no item of a program's store; see ``rules.namespaces.is_item``.

    Items of a program are not compared with other statements, and may be gone soon.
    """
    in_store = sa.func.substr(sa.func.coalesce(m.c.item_id, ""), 1, len(ROOT)) == ROOT
    return (sa.func.instr(m.c.tags, f'"{ITEM_TAG}"') == 0) | ~in_store


def replaces_whole(e: sa.FromClause) -> Column:
    """Return whether an edge replaces all of an older memory."""
    return (e.c.edge_type == EdgeType.UPDATES) & (e.c.partial == sa.false())


def by_importance(m: sa.FromClause) -> tuple[Column, ...]:
    """Return the order by importance, then the newest first."""
    return m.c.importance.desc(), m.c.created_at.desc(), m.c.pk.desc()


def memory_fields(m: sa.FromClause) -> sa.Select[Any]:
    """Select ``MEMORY_FIELDS`` as they are stored."""
    return sa.select(*(m.c[name] for name in MEMORY_FIELDS))


def beginning(m: sa.FromClause, chars: Any) -> Column:
    """Return the first characters of a memory's content."""
    return sa.func.substr(m.c.content, 1, chars)


def memories_listed(name: str = "ids") -> tuple[sa.FromClause, Any]:
    """Return memories and the join that finds them by a list of their ids, in its order."""
    f, m = listed(name, "f"), tables.memories.alias("m")
    return m, ordered(f, (m, m.c.memory_id == f.c.value))


def edge_ends(e: sa.FromClause) -> tuple[sa.FromClause, sa.FromClause, Any]:
    """Return the memories at the two ends of an edge, and the join of the three."""
    a, b = tables.memories.alias("a"), tables.memories.alias("b")
    ends = ((a, a.c.memory_id == e.c.from_memory_id), (b, b.c.memory_id == e.c.to_memory_id))
    return a, b, ordered(e, *ends)


def up_to(clearance: Sensitivity) -> list[str]:
    """Return the sensitivities that a clearance covers."""
    return [level.value for level in Sensitivity if level.level <= clearance.level]
