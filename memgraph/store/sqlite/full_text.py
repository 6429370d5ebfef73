"""The FTS5 table over ``memories``: its words, and commands, which are rows it does not keep."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

from memgraph.errors import DatabaseCorrupt
from memgraph.store import sqlite
from memgraph.store.snapshot import Snapshot, Transaction

MERGED_PAGES: Final = 16
_WORDS: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.memory_terms"
    " USING fts5vocab('main', 'memory_fts', 'col')"
)
_FREQUENCIES: Final = (
    "SELECT f.value, max(t.doc) FROM json_each(?) f CROSS JOIN temp.memory_terms t"
    " ON t.term = f.value WHERE t.col <> 'source_role' GROUP BY f.value"
)


def frequencies(snapshot: Snapshot, stems: Collection[str]) -> dict[str, int]:
    """Return the number of memories with each stem, without stems that occur nowhere.

    The cost of a stem grows with its frequency.
    """
    snapshot.driver.execute(_WORDS)
    rows = snapshot.driver.execute(_FREQUENCIES, (json.dumps(sorted(stems)),))
    return {str(stem): int(count) for stem, count in rows}


def rebuild(transaction: Transaction) -> None:
    """Make the index anew from the rows of ``memories``."""
    transaction.driver.execute("INSERT INTO memory_fts (memory_fts) VALUES ('rebuild')")


def merge(transaction: Transaction) -> bool:
    """Merge parts of the index, about ``MERGED_PAGES``; return whether there was any to merge.

    Every transaction that stores texts leaves a part of its own, and a search reads all parts.
    """
    before = transaction.driver.total_changes
    _command(transaction, "merge", MERGED_PAGES)
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
    """Set whether words of deleted rows are removed at once or only marked."""
    _command(transaction, "secure-delete", int(at_once))


def _command(transaction: Transaction, name: str, argument: int) -> None:
    statement = "INSERT INTO memory_fts (memory_fts, rank) VALUES (?, ?)"
    transaction.driver.execute(statement, (name, argument))


class SqlitePhraseIndex:
    """The functions of this module as a ``ports.PhraseIndex``."""

    def expression(self, match: str) -> str:
        """Return the expression: it is FTS5's."""
        return match

    frequencies = staticmethod(frequencies)
    merge = staticmethod(merge)
    rebuild = staticmethod(rebuild)
    check = staticmethod(check)
