"""What a task, a project and everybody hold, read along indexes. Turns of talk are no items.

The conditions repeat those of the partial indexes in ``memgraph.model.tables`` word for word, else
SQLite does not use them. Limits are written out: SQLite plans a statement anew each time that one
is bound, which takes longer than the statement.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from memgraph.model.enums import MemoryType, Scope
from memgraph.model.values import Memory
from memgraph.storage.narrowing import Narrowing
from memgraph.storage.recall_queries import plain_rows
from memgraph.storage.rows import memory_from_row

_AT = "coalesce(m.event_time, m.created_at)"
_OF_A_SCOPE = (
    "m.scope = :tier_scope AND m.scope_id = :tier_scope_id AND m.status = 'active'"
    " AND m.scope <> 'global' AND m.kind <> 'episode'"
)
_BY_IMPORTANCE = "m.importance DESC, m.created_at DESC, m.pk DESC"
# Two indexes hold all types between them: one of four, and one by type.
_KNOWLEDGE = "'Fact', 'Identity', 'Observation', 'Event'"
_KNOWLEDGE_INDEX, _TYPE_INDEX = "ix_memories_knowledge", "ix_memories_type_status"
_OTHERS = tuple(each for each in MemoryType if f"'{each.value}'" not in _KNOWLEDGE)


def first_and_last(
    connection: sa.Connection, narrowing: Narrowing, scope: Scope, scope_id: str, limit: int
) -> list[Memory]:
    """What a task or project holds, in time order; of more the first half and the last half.

    Args:
        limit: memories at most, >= 2.
    """
    condition = f"{_OF_A_SCOPE} AND {narrowing.where('m')}"
    select = f"SELECT {_columns(narrowing)} FROM memories m"
    values = _of_scope(scope, scope_id)
    # Hardly ever does one hold more: then its ends are looked for.
    found = _memories(
        connection,
        narrowing,
        f"{select} WHERE {condition} ORDER BY {_AT}, m.pk LIMIT {limit + 1:d}",
        values,
    )
    if len(found) <= limit:
        return found
    ends = " UNION ".join(
        f"SELECT pk FROM (SELECT m.pk FROM memories m WHERE {condition}"
        f" ORDER BY {_AT} {way}, m.pk {way} LIMIT {limit // 2:d})"
        for way in ("ASC", "DESC")
    )
    return _memories(
        connection,
        narrowing,
        f"{select} WHERE m.pk IN ({ends}) ORDER BY {_AT}, m.pk",
        values,
    )


def most_important(
    connection: sa.Connection,
    narrowing: Narrowing,
    scope: Scope,
    scope_id: str | None,
    limit: int,
) -> list[Memory]:
    """What a scope holds, the most important first, then the newest."""
    where = narrowing.where("m")
    if scope is Scope.GLOBAL:
        return _of_everybody(connection, narrowing, where, limit)
    return _memories(
        connection,
        narrowing,
        f"SELECT {_columns(narrowing)} FROM memories m WHERE {_OF_A_SCOPE} AND {where}"
        f" ORDER BY {_BY_IMPORTANCE} LIMIT {limit:d}",
        _of_scope(scope, scope_id),
    )


def by_ids(
    connection: sa.Connection, narrowing: Narrowing, memory_ids: Collection[str]
) -> list[Memory]:
    """Those of ``memory_ids`` that pass, in their order."""
    if not memory_ids:
        return []
    return _memories(
        connection,
        narrowing,
        f"SELECT {_columns(narrowing)} FROM json_each(:tier_ids) f"
        f" CROSS JOIN memories m ON m.memory_id = f.value WHERE {narrowing.where('m')}",
        {"tier_ids": json.dumps(list(memory_ids))},
    )


def _of_everybody(
    connection: sa.Connection, narrowing: Narrowing, where: str, limit: int
) -> list[Memory]:
    active = f"m.status = 'active' AND m.kind <> 'episode' AND m.scope = 'global' AND {where}"
    # Left to itself the planner gathers the four types one by one and sorts them all.
    ways = [
        (_KNOWLEDGE_INDEX, f"m.type IN ({_KNOWLEDGE})"),
        *((_TYPE_INDEX, f"m.type = '{each.value}'") for each in _OTHERS),
    ]
    legs = " UNION ALL ".join(
        "SELECT * FROM (SELECT m.pk, m.importance, m.created_at"
        f" FROM memories m INDEXED BY {index}"
        f" WHERE {of_type} AND {active} ORDER BY {_BY_IMPORTANCE} LIMIT {limit:d})"
        for index, of_type in ways
    )
    return _memories(
        connection,
        narrowing,
        f"SELECT {_columns(narrowing)} FROM memories m WHERE m.pk IN"
        f" (SELECT m.pk FROM ({legs}) m ORDER BY {_BY_IMPORTANCE} LIMIT {limit:d})"
        f" ORDER BY {_BY_IMPORTANCE}",
        {},
    )


def _of_scope(scope: Scope, scope_id: str | None) -> dict[str, Any]:
    return {"tier_scope": scope.value, "tier_scope_id": scope_id}


def _columns(narrowing: Narrowing) -> str:
    return narrowing.view.memory_columns("m")


def _memories(
    connection: sa.Connection, narrowing: Narrowing, statement: str, values: dict[str, Any]
) -> list[Memory]:
    rows = plain_rows(connection, statement, narrowing.params | values)
    return [memory_from_row(row) for row in rows]
