"""Rows of ``sessions``: one conversation each, with the place of its next turn."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import sqlalchemy as sa

from memgraph.storage.statements import driver

_NEXT = (
    "SELECT session_id, next_sequence FROM sessions"
    " WHERE session_id IN (SELECT value FROM json_each(?))"
)
_SEEN = (
    "INSERT INTO sessions (session_id, first_seen_at, last_seen_at, next_sequence)"
    " VALUES (?, ?, ?, ?) ON CONFLICT (session_id) DO UPDATE SET"
    " last_seen_at = max(last_seen_at, excluded.last_seen_at),"
    " next_sequence = max(next_sequence, excluded.next_sequence)"
)


def next_sequences(connection: sa.Connection, session_ids: Collection[str]) -> dict[str, int]:
    """The place of the next turn of each session that has one; of any other it is 0."""
    if not session_ids:
        return {}
    return dict(driver(connection).execute(_NEXT, (json.dumps(list(session_ids)),)).fetchall())


def seen(connection: sa.Connection, next_sequences: Mapping[str, int], *, at: int) -> None:
    """Note that turns of these sessions were stored, each up to before its next sequence."""
    rows = [(session_id, at, at, following) for session_id, following in next_sequences.items()]
    if rows:
        driver(connection).executemany(_SEEN, rows)
