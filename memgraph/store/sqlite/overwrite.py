"""Overwrite deleted bytes in SQLite: pages, the WAL, free space.

Of itself it marks what is deleted as free, and leaves the bytes where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memgraph.store.snapshot import Transaction
from memgraph.store.sqlite import full_text


@contextmanager
def thorough(transaction: Transaction) -> Iterator[None]:
    """Overwrite what is deleted inside everywhere, the words of the text index too."""
    execute = transaction.driver.execute
    execute("PRAGMA secure_delete = ON")
    full_text.remove_words(transaction, at_once=True)
    try:
        yield
    finally:
        execute("PRAGMA secure_delete = FAST")
    full_text.remove_words(transaction, at_once=False)


def fold(driver_connection: Any, *, wait_ms: int) -> bool:
    """Fold the WAL into the file and cut it to nothing.

    Args:
        wait_ms: for so long it waits for readers of an older state, with no writer beside it.

    Returns:
        Whether no reader was in the way.
    """
    execute = driver_connection.execute
    [(usual_ms,)] = execute("PRAGMA busy_timeout").fetchall()
    execute(f"PRAGMA busy_timeout = {wait_ms}")
    try:
        busy, _, _ = execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        execute(f"PRAGMA busy_timeout = {usual_ms}")
    return not busy


def vacuum(driver_connection: Any) -> None:
    """Write the database anew: what lies in the free space of its pages is left behind.

    Rows keep their numbers: every table whose numbers are given out has an index or such a key.
    """
    try:
        driver_connection.execute("PRAGMA temp_store = FILE")
        driver_connection.execute("VACUUM")
    finally:
        driver_connection.execute("PRAGMA temp_store = MEMORY")
