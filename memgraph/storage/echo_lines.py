"""Lines that were handed out, by the hash of their normal form, and when."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import sqlalchemy as sa

from memgraph.storage.statements import driver

_RECORD = (
    "INSERT INTO echo_lines (line_hash, first_at, last_at) VALUES (?, ?, ?)"
    " ON CONFLICT (line_hash) DO UPDATE SET first_at = min(first_at, excluded.first_at),"
    " last_at = max(last_at, excluded.last_at)"
)
_FIND = (
    "SELECT line_hash, first_at, last_at FROM echo_lines"
    " WHERE line_hash IN (SELECT value FROM json_each(?))"
)
_FORGET = "DELETE FROM echo_lines WHERE last_at < ?"


def record(connection: sa.Connection, lines: Sequence[tuple[int, int, int]]) -> None:
    """Note when lines were handed out: each with its hash, the first and the last time."""
    driver(connection).executemany(_RECORD, lines)


def find(connection: sa.Connection, hashes: Collection[int]) -> dict[int, tuple[int, int]]:
    """When each of these lines was handed out first and last; unknown ones are left out."""
    rows = driver(connection).execute(_FIND, (json.dumps(list(hashes)),)).fetchall()
    return {line_hash: (first, last) for line_hash, first, last in rows}


def forget(connection: sa.Connection, before: int) -> int:
    """Remove lines that were last handed out before a time; gives how many."""
    return int(driver(connection).execute(_FORGET, (before,)).rowcount)
