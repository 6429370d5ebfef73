"""Rows of ``audit_log``; the chain itself is made in ``memgraph.audit``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from memgraph.storage import tables
from memgraph.storage.statements import insert_into

_INSERT = insert_into("audit_log", ("seq", "at", "actor", "action", "subject", "details", "hash"))


def head(connection: sa.Connection) -> tuple[int, str]:
    """(seq, hash) of the last entry; (0, "") of an empty journal."""
    row = connection.exec_driver_sql(
        "SELECT seq, hash FROM audit_log ORDER BY seq DESC LIMIT 1"
    ).first()
    return (row.seq, row.hash) if row else (0, "")


def hash_of(connection: sa.Connection, seq: int) -> str | None:
    """The seal of one entry; None: there is no such entry."""
    row = connection.exec_driver_sql("SELECT hash FROM audit_log WHERE seq = ?", (seq,)).first()
    return None if row is None else str(row.hash)


def insert(connection: sa.Connection, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.exec_driver_sql(_INSERT, list(rows))


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
