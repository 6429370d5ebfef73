"""Leases: who alone may do something for a while, between processes.

Times are milliseconds of the wall clock: it is what the processes of a machine have in common.
``acquired_at`` is when a lease was taken or renewed last.
"""

from __future__ import annotations

import sqlalchemy as sa

from memgraph.storage.statements import driver

# By so much the clock may be set back under a lease that was just taken or renewed.
SLACK_MS = 10_000
# One from the future was written by a clock that was ahead: it must not hold until that date.
LIVE = f"expires_at > ?1 AND acquired_at <= ?1 + {SLACK_MS}"
_HELD = f"SELECT holder FROM leases WHERE name = ?2 AND {LIVE}"
_TAKE = (
    "INSERT INTO leases (name, holder, acquired_at, expires_at) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder,"
    " acquired_at = excluded.acquired_at, expires_at = excluded.expires_at"
)
_RENEW = (
    "UPDATE leases SET acquired_at = ?1, expires_at = ?2"
    " WHERE name = ?3 AND holder = ?4 AND expires_at > ?1"
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
    found = driver(connection).execute(_HELD, (wall_ms, name)).fetchone()
    if found is not None:
        return str(found[0])
    driver(connection).execute(_TAKE, (name, holder, wall_ms, wall_ms + lease_ms))
    return None


def renew(
    connection: sa.Connection, name: str, holder: str, *, wall_ms: int, lease_ms: int
) -> bool:
    """Keep a lease for longer; False: it has expired or is another's, and stays so."""
    values = (wall_ms, wall_ms + lease_ms, name, holder)
    return bool(driver(connection).execute(_RENEW, values).rowcount)


def release(connection: sa.Connection, name: str, holder: str) -> None:
    """Give a lease back; one that is another's by now is left alone."""
    driver(connection).execute(_RELEASE, (name, holder))


def sweep(connection: sa.Connection, *, wall_ms: int) -> None:
    """Drop what has expired, or is from the future."""
    driver(connection).execute(f"DELETE FROM leases WHERE NOT ({LIVE})", (wall_ms,))
