"""Inspect a SQLite file of any schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pysqlite3.dbapi2 as driver

from memgraph.errors import DatabaseCorrupt
from memgraph.store import sqlite
from memgraph.store.engine import EngineDamage
from memgraph.store.snapshot import Snapshot

MAX_MESSAGES = 20


def prepare(connection: Any) -> None:
    """Let a driver connection read alone, and show any bytes as text."""
    connection.execute("PRAGMA query_only = ON")
    # Sorting a large journal spills to disk rather than into memory.
    connection.execute("PRAGMA temp_store = FILE")
    connection.text_factory = lambda text: text.decode("utf-8", "replace")


def damage(snapshot: Snapshot) -> list[EngineDamage]:
    """Return SQLite's own findings about its pages; empty: none.

    It looks at the structure and not at the payload: one flipped byte of a text passes.
    """
    try:
        with sqlite.translated_errors():
            rows = snapshot.driver.execute(f"PRAGMA quick_check({MAX_MESSAGES})").fetchall()
    except DatabaseCorrupt as error:
        return [_damage(error.message)]
    messages = [str(message) for message, *_ in rows]
    return [] if messages == ["ok"] else [_damage(message) for message in messages]


def _damage(message: str) -> EngineDamage:
    is_of_index = "fts5" in message.lower()
    return EngineDamage("the full-text index is damaged" if is_of_index else message, is_of_index)


def schema(snapshot: Snapshot) -> dict[str, str]:
    """Return the statement that made each table, index and trigger, by ``type name``."""
    rows = snapshot.driver.execute(
        "SELECT type || ' ' || name, sql FROM sqlite_schema"
        " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    return {str(name): " ".join(str(statement).split()) for name, statement in rows}


def dangling(snapshot: Snapshot) -> Iterator[tuple[str, int | None, str]]:
    """Yield (table, rowid, the table it refers to) of rows that refer to nothing."""
    for table, rowid, parent, _ in snapshot.driver.execute("PRAGMA foreign_key_check"):
        yield str(table), rowid, str(parent)


# -- of a file that may be of another program, or of an earlier schema ----------------------------


def begin(connection: Any, application_id: int) -> None:
    """Mark an empty file as a program's; writes may be lost until it is copied."""
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(f"PRAGMA application_id = {application_id}")


def application_id(connection: Any) -> int:
    """Return the number that a program marked the file with; 0: none did."""
    return int(_value(connection, "PRAGMA application_id"))


def revision(connection: Any) -> str | None:
    """Return the last migration that ran; None: none did."""
    number: str | None = _value(connection, "SELECT version_num FROM alembic_version")
    return number


def fact(connection: Any, key: str) -> str | None:
    """Return a fact about a database; see ``store.metadata``."""
    text = _value(connection, "SELECT value FROM memory_metadata WHERE key = ?", key)
    return None if text is None else str(text)


def last_entry(connection: Any, action: str | None = None) -> int:
    """Return the number of the journal's last entry, or the last one of an action; 0: none."""
    statement = "SELECT coalesce(max(seq), 0) FROM audit_log WHERE action = coalesce(?, action)"
    return int(_value(connection, statement, action))


def _value(connection: Any, statement: str, *values: Any) -> Any:
    """Return the first value of a statement; None: no row.

    Raises:
        DatabaseCorrupt: the table is not there.
    """
    try:
        row = connection.execute(statement, values).fetchone()
    except driver.OperationalError as error:
        if getattr(error, "sqlite_errorname", "") != "SQLITE_ERROR":
            raise
        raise DatabaseCorrupt("the database lacks its tables; restore a backup") from error
    return row[0] if row else None
