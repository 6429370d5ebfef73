"""Commands to the FTS5 table over ``memories``: rows that it is given and does not keep."""

from __future__ import annotations

from memgraph.errors import DatabaseCorrupt
from memgraph.store import sqlite
from memgraph.store.snapshot import Transaction


def rebuild(transaction: Transaction) -> None:
    """Make the index anew from the rows of ``memories``."""
    transaction.driver.execute("INSERT INTO memory_fts (memory_fts) VALUES ('rebuild')")


def merge(transaction: Transaction, pages: int) -> bool:
    """Merge parts of the index, about so many pages of it; tell whether there was any to merge.

    Every transaction that stores texts leaves a part of its own, and a search reads all parts.
    """
    before = transaction.driver.total_changes
    _command(transaction, "merge", pages)
    # FTS5's own word for it: a command that found nothing changes one row.
    return bool(transaction.driver.total_changes - before > 1)


def check(transaction: Transaction) -> bool:
    """Return whether the index agrees with ``memories``, word for word. Takes a write transaction.

    Raises:
        StorageError: the check itself could not run.
    """
    try:
        with sqlite.translated_errors():
            _command(transaction, "integrity-check", 1)
    except DatabaseCorrupt:
        return False
    return True


def remove_words(transaction: Transaction, *, at_once: bool) -> None:
    """Remove the words of what is deleted at once from the index, or only mark them as removed."""
    _command(transaction, "secure-delete", int(at_once))


def _command(transaction: Transaction, name: str, argument: int) -> None:
    statement = "INSERT INTO memory_fts (memory_fts, rank) VALUES (?, ?)"
    transaction.driver.execute(statement, (name, argument))
