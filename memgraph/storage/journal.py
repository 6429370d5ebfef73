"""Rows of ``audit_log``; the chain itself is made in ``memgraph.audit``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from memgraph.storage import tables
from memgraph.storage.statements import Insert, driver

_insert = Insert("audit_log", ("seq", "at", "actor", "action", "subject", "details", "hash"))


def head(connection: sa.Connection) -> tuple[int, str]:
    """(seq, hash) of the last entry; (0, "") of an empty journal."""
    found = driver(connection).execute("SELECT seq, hash FROM audit_log ORDER BY seq DESC LIMIT 1")
    return found.fetchone() or (0, "")


def hash_of(connection: sa.Connection, seq: int) -> str | None:
    """The seal of one entry; None: there is no such entry."""
    found = driver(connection).execute("SELECT hash FROM audit_log WHERE seq = ?", (seq,))
    row = found.fetchone()
    return None if row is None else str(row[0])


def insert(connection: sa.Connection, rows: Sequence[Sequence[Any]]) -> None:
    """Rows of seq, at, actor, action, subject, details, hash."""
    _insert(connection, rows)


def entries(
    connection: sa.Connection,
    *,
    subject: str | None = None,
    after: int = 0,
    limit: int | None = None,
) -> Iterator[sa.Row[Any]]:
    """Entries in order, all or those about one memory."""
    statement = sa.select(tables.audit_log).where(tables.audit_log.c.seq > after)
    if subject is not None:
        statement = statement.where(tables.audit_log.c.subject == subject)
    yield from connection.execute(statement.order_by(tables.audit_log.c.seq).limit(limit))
