"""Rows of ``sessions``: one conversation each, with the place of its next turn."""

from __future__ import annotations

import sqlalchemy as sa

from memgraph.storage.statements import driver

_SEEN = (
    "INSERT INTO sessions (session_id, first_seen_at, last_seen_at, next_sequence)"
    " VALUES (?, ?, ?, ?) ON CONFLICT (session_id) DO UPDATE SET"
    " last_seen_at = max(last_seen_at, excluded.last_seen_at),"
    " next_sequence = max(next_sequence, excluded.next_sequence)"
)


def next_sequence(connection: sa.Connection, session_id: str) -> int:
    """The place of the next turn, from 0."""
    statement = "SELECT next_sequence FROM sessions WHERE session_id = ?"
    found = driver(connection).execute(statement, (session_id,)).fetchone()
    return int(found[0]) if found else 0


def seen(connection: sa.Connection, session_id: str, *, at: int, next_sequence: int) -> None:
    """Note that turns of a session were stored, up to before ``next_sequence``."""
    driver(connection).execute(_SEEN, (session_id, at, at, next_sequence))
