"""Leases: who alone may do something for a while, between processes.

Times are milliseconds of the wall clock: it is what the processes of a machine have in common.
"""

from __future__ import annotations

import sqlalchemy as sa

from memgraph.storage.statements import driver

_HELD = "SELECT holder, expires_at FROM leases WHERE name = ?"
_TAKE = (
    "INSERT INTO leases (name, holder, acquired_at, expires_at) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder,"
    " acquired_at = excluded.acquired_at, expires_at = excluded.expires_at"
)
_RENEW = (
    "UPDATE leases SET expires_at = max(expires_at, ?1)"
    " WHERE name = ?2 AND holder = ?3 AND expires_at > ?4"
)
_RELEASE = "DELETE FROM leases WHERE name = ? AND holder = ?"


def acquire(
    connection: sa.Connection, name: str, holder: str, *, wall_ms: int, lease_ms: int
) -> str | None:
    """Take a lease that is free or has expired, inside the caller's transaction.

    Args:
        holder: nobody else's, and another one for every time that it is taken.

    Returns:
        None: it is taken; else who has it.
    """
    found = driver(connection).execute(_HELD, (name,)).fetchone()
    if found is not None and found[1] > wall_ms:
        return str(found[0])
    driver(connection).execute(_TAKE, (name, holder, wall_ms, wall_ms + lease_ms))
    return None


def renew(
    connection: sa.Connection, name: str, holder: str, *, wall_ms: int, lease_ms: int
) -> bool:
    """Keep a lease for longer; False: it has expired or is another's, and stays so."""
    values = (wall_ms + lease_ms, name, holder, wall_ms)
    return bool(driver(connection).execute(_RENEW, values).rowcount)


def release(connection: sa.Connection, name: str, holder: str) -> None:
    """Give a lease back; one that is another's by now is left alone."""
    driver(connection).execute(_RELEASE, (name, holder))


def sweep(connection: sa.Connection, *, wall_ms: int) -> None:
    """Drop what has expired."""
    driver(connection).execute("DELETE FROM leases WHERE expires_at <= ?", (wall_ms,))
