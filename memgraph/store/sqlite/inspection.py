"""What SQLite tells of a file by itself: its pages, its schema, rows that refer to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memgraph.errors import DatabaseCorrupt
from memgraph.store import sqlite
from memgraph.store.snapshot import Snapshot

MAX_MESSAGES = 20


def prepare(connection: Any) -> None:
    """Let a driver connection read alone, and show any bytes as text."""
    connection.execute("PRAGMA query_only = ON")
    # Sorting a large journal spills to disk rather than into memory.
    connection.execute("PRAGMA temp_store = FILE")
    connection.text_factory = lambda text: text.decode("utf-8", "replace")


def quick_check(snapshot: Snapshot) -> list[str]:
    """Return what SQLite itself finds wrong with its pages; empty: nothing.

    It looks at the structure and not at the payload: one flipped byte of a text passes.
    """
    try:
        with sqlite.translated_errors():
            rows = snapshot.driver.execute(f"PRAGMA quick_check({MAX_MESSAGES})").fetchall()
    except DatabaseCorrupt as error:
        return [error.message]
    told = [str(message) for message, *_ in rows]
    return [] if told == ["ok"] else told


def schema(snapshot: Snapshot) -> dict[str, str]:
    """Return the statement that made each table, index and trigger, by ``type name``."""
    found = snapshot.driver.execute(
        "SELECT type || ' ' || name, sql FROM sqlite_schema"
        " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    return {str(name): " ".join(str(statement).split()) for name, statement in found}


def dangling(snapshot: Snapshot) -> Iterator[tuple[str, int | None, str]]:
    """Yield (table, rowid, the table it refers to) of rows that refer to nothing."""
    for table, rowid, parent, _ in snapshot.driver.execute("PRAGMA foreign_key_check"):
        yield str(table), rowid, str(parent)
