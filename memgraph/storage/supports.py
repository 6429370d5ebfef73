"""Rows of ``memory_supports``: further sources that say what a memory says."""

from __future__ import annotations

import sqlalchemy as sa

from memgraph.model.values import StoredSource
from memgraph.policy.support import Origin
from memgraph.storage.rows import SOURCE_FIELDS, source_from_row
from memgraph.storage.statements import driver

_ORIGIN = "s.conversation_id, s.source_path, s.content_sha256, s.workflow_run_id"
_OWN = (
    f"SELECT {_ORIGIN}, m.session_id FROM memories m"
    " JOIN memory_sources s ON s.source_id = m.source_id WHERE m.memory_id = ?"
)
_FURTHER = (
    f"SELECT {_ORIGIN} FROM memory_supports p JOIN memory_sources s ON s.source_id = p.source_id"
    " WHERE p.memory_id = ? ORDER BY p.added_at, p.source_id"
)
_TOLD = (
    f"SELECT p.added_at, {', '.join(f's.{name}' for name in SOURCE_FIELDS)}"
    " FROM memory_supports p JOIN memory_sources s ON s.source_id = p.source_id"
    " WHERE p.memory_id = ? ORDER BY p.added_at, p.source_id"
)
_ADD = (
    "INSERT OR IGNORE INTO memory_supports (memory_id, source_id, added_at)"
    " SELECT memory_id, ?, ? FROM memories WHERE memory_id = ? AND source_id <> ?"
)


def origins(connection: sa.Connection, memory_id: str) -> tuple[list[Origin], list[Origin]]:
    """Where a memory came from, and where else it was said, in the order in which that came."""
    own = []
    for row in driver(connection).execute(_OWN, (memory_id,)):
        own = [Origin(*row[:4]), Origin(conversation_id=row[4])]
    return own, [Origin(*row) for row in driver(connection).execute(_FURTHER, (memory_id,))]


def further(connection: sa.Connection, memory_id: str) -> list[tuple[int, StoredSource]]:
    """When each further source of a memory was noted, and what it is; the first one first."""
    found = driver(connection).execute(_TOLD, (memory_id,))
    return [(at, source_from_row(row)) for at, *row in found]


def add(connection: sa.Connection, memory_id: str, source_id: str, *, at: int) -> bool:
    """Note a further source; whether it is new. The memory's own one is none."""
    done = driver(connection).execute(_ADD, (source_id, at, memory_id, source_id))
    return int(done.rowcount) > 0
