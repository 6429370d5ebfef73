"""What a bulletin is made of, read along indexes: no query sorts or walks a whole type.

The conditions repeat those of the partial indexes in ``memgraph.model.tables`` word for word, else
SQLite does not use them. Nothing here looks at a clock: expiry is judged at the time of the last
journal entry, so that the same journal gives the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.storage import bulletin_past
from memgraph.storage.namespace_queries import is_no_item
from memgraph.storage.visibility import View

# More of a text than any bulletin shows; keeps a long one from being read and copied whole.
EXCERPT_CHARS = 2_000
LOW_CONFIDENCE = 0.5

_KNOWLEDGE = (
    "m.status = 'active' AND m.kind <> 'episode'"
    " AND m.type IN ('Fact', 'Identity', 'Observation', 'Event')"
)
_OPEN_TODOS = (
    "m.status = 'active' AND m.type = 'Todo' AND instr(m.tags, '\"done\"') = 0"
    " AND json_extract(m.attributes, '$.done') IS NOT 1"
)
_DECISIONS = "m.status = 'active' AND m.type = 'Decision'"
_UNCERTAIN = "m.status = 'active' AND m.kind <> 'episode' AND m.confidence < 0.5"
_OPEN_INDEX = "INDEXED BY ix_memory_edges_contradictions"
_BY_IMPORTANCE = "m.importance DESC, m.created_at DESC, m.pk DESC"


class Excerpt(NamedTuple):
    """The part of a memory that a bulletin shows.

    ``valid_until`` is None where reading puts the end off: no journal entry tells of that.
    ``decision_status`` is free text, or None.
    """

    memory_id: str
    type: str
    text: str
    confidence: float
    event_time: int | None
    created_at: int
    valid_until: int | None
    decision_status: str | None


class ConflictExcerpt(NamedTuple):
    """An open contradiction: its edge's time, and both sides."""

    created_at: int
    first_id: str
    first_text: str
    second_id: str
    second_text: str


def journal_head(connection: sa.Connection, as_of: int | None = None) -> tuple[int, int, str]:
    """(seq, time in milliseconds, seal) of the last entry, now or at a time; (0, 0, "") of an empty
    journal.
    """
    last = "SELECT seq, at, hash FROM audit_log ORDER BY seq DESC LIMIT 1"
    if as_of is not None:
        # By the index of times: of the entries of one millisecond the last one.
        last = (
            "SELECT seq, at, hash FROM audit_log WHERE at ="
            " (SELECT max(at) FROM audit_log WHERE at <= :as_of) ORDER BY seq DESC LIMIT 1"
        )
    found = _rows(connection, last, {"as_of": as_of})
    return tuple(found[0]) if found else (0, 0, "")


def knowledge(connection: sa.Connection, view: View, at: int, limit: int) -> list[Excerpt]:
    """Facts, identities, observations and events that are not raw turns: the most important."""
    # Spelled out because the planner does not prefer it to the index by type by itself.
    return _memories(
        connection, view, at, _KNOWLEDGE, _BY_IMPORTANCE, limit, "ix_memories_knowledge"
    )


def goals(connection: sa.Connection, view: View, at: int, limit: int) -> list[Excerpt]:
    return _of_type(connection, view, at, "Goal", limit)


def preferences(connection: sa.Connection, view: View, at: int, limit: int) -> list[Excerpt]:
    return _of_type(connection, view, at, "Preference", limit)


def open_todos(connection: sa.Connection, view: View, at: int, limit: int) -> list[Excerpt]:
    """Todos without ``attributes.done`` and without the tag ``done``: the most important."""
    return _memories(
        connection, view, at, _OPEN_TODOS, _BY_IMPORTANCE, limit, "ix_memories_open_todos"
    )


def decisions(connection: sa.Connection, view: View, at: int, limit: int) -> list[Excerpt]:
    """The newest by when they were taken, or else stored."""
    index = "ix_memories_decisions"
    # Two walks of one index, as no index is ordered by whichever of two columns is set.
    dated = _memories(
        connection,
        view,
        at,
        f"{_DECISIONS} AND m.event_time IS NOT NULL",
        "m.event_time DESC, m.created_at DESC, m.pk DESC",
        limit,
        index,
    )
    undated = _memories(
        connection,
        view,
        at,
        f"{_DECISIONS} AND m.event_time IS NULL",
        "m.created_at DESC, m.pk DESC",
        limit,
        index,
    )
    return sorted(
        dated + undated,
        key=lambda one: (
            one.created_at if one.event_time is None else one.event_time,
            one.created_at,
            one.memory_id,
        ),
        reverse=True,
    )[:limit]


def uncertain(connection: sa.Connection, view: View, at: int, limit: int) -> list[Excerpt]:
    """Memories with a stored confidence under 0.5, the lowest first."""
    return _memories(
        connection,
        view,
        at,
        _UNCERTAIN,
        "m.confidence, m.created_at, m.pk",
        limit,
        "ix_memories_uncertain",
    )


def excerpts(
    connection: sa.Connection, view: View, memory_ids: Sequence[str], at: int
) -> dict[str, Excerpt]:
    """Those of some memories that are visible and active and have not expired, by id."""
    statement = (
        f"SELECT {_excerpt('m')} FROM json_each(:ids) f"
        " CROSS JOIN memories m ON m.memory_id = f.value"
        f" WHERE {view.status('m')} = 'active' AND {view.where('m')} AND {view.unerased('m')}"
        f" AND coalesce({view.value('valid_until', 'm')} > :at, 1)"
    )
    values = view.params | {"ids": json.dumps(list(memory_ids)), "at": at}
    return {row[0]: Excerpt._make(row) for row in _rows(connection, statement, values)}


def open_conflicts(connection: sa.Connection, view: View, limit: int) -> list[ConflictExcerpt]:
    """Contradictions without a resolution between two visible, active memories, newest first."""
    statement = (
        f"SELECT e.created_at, a.memory_id, {_text('a')}, b.memory_id, {_text('b')}"
        f" FROM memory_edges e {_OPEN_INDEX if view.as_of is None else ''}"
        " CROSS JOIN memories a ON a.memory_id = e.from_memory_id"
        " CROSS JOIN memories b ON b.memory_id = e.to_memory_id"
        f" WHERE e.edge_type = 'Contradicts' AND {view.resolved_at('e')} IS NULL"
        f" AND {view.status('a')} = 'active' AND {view.status('b')} = 'active'"
        f" AND {view.edge_where('e')} AND {view.where('a')} AND {view.where('b')}"
        f" AND {view.unerased('a')} AND {view.unerased('b')}"
        " ORDER BY e.created_at DESC, e.edge_id DESC LIMIT :limit"
    )
    found = _rows(connection, statement, view.params | {"limit": limit})
    return [ConflictExcerpt._make(row) for row in found]


def _of_type(
    connection: sa.Connection, view: View, at: int, type_: str, limit: int
) -> list[Excerpt]:
    where = f"m.type = '{type_}' AND m.status = 'active'"
    return _memories(connection, view, at, where, _BY_IMPORTANCE, limit, "ix_memories_type_status")


def _memories(
    connection: sa.Connection,
    view: View,
    at: int,
    where: str,
    order: str,
    limit: int,
    index: str,
) -> list[Excerpt]:
    if view.as_of is not None:
        found = bulletin_past.rows(
            connection,
            view,
            {"at": at, "limit": limit},
            shown=_excerpt("m"),
            where=where,
            order=order,
            index=index,
        )
        return [Excerpt._make(row) for row in found]
    statement = (
        f"SELECT {_excerpt('m')} FROM memories m INDEXED BY {index}"
        f" WHERE {where} AND {view.where('m')} AND (m.valid_until IS NULL OR m.valid_until > :at)"
        f" ORDER BY {order} LIMIT :limit"
    )
    found = _rows(connection, statement, view.params | {"at": at, "limit": limit})
    return [Excerpt._make(row) for row in found]


def _excerpt(alias: str) -> str:
    return (
        f"{alias}.memory_id, {alias}.type, {_text(alias)}, {alias}.confidence, {alias}.event_time,"
        f" {alias}.created_at, CASE WHEN {is_no_item(alias)}"
        f" OR json_extract({alias}.attributes, '$.ttl') IS NULL THEN {alias}.valid_until END,"
        f" json_extract({alias}.attributes, '$.decision_status')"
    )


def _text(alias: str) -> str:
    return (
        f"CASE {alias}.summary WHEN '' THEN substr({alias}.content, 1, {EXCERPT_CHARS})"
        f" ELSE {alias}.summary END"
    )


def _rows(connection: sa.Connection, statement: str, values: dict[str, Any]) -> list[Any]:
    driver: Any = connection.connection.driver_connection
    found: list[Any] = driver.execute(statement, values).fetchall()
    return found
