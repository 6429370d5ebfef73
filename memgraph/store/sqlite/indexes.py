"""The vector index (sqlite-vec) and the ``engine.PhraseIndex`` (FTS5) in SQLite."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from memgraph.errors import DatabaseCorrupt
from memgraph.store import sqlite
from memgraph.store.embeddings import quantized
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.vector_index import VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.vector_cache import VectorRows

_SPARE: Final = 16
_SEARCHED: Final = (
    "state = 'ready' AND model IS :model AND dimensions = :dimensions"
    " AND length(vector) = :dimensions"
)
# Aggregated into one row: fetching thousands of rows takes twice as long.
_READ: Final = (
    "SELECT group_concat(memory_pk), group_concat(visibility),"
    " CAST(group_concat(vector, '') AS BLOB) FROM memory_embeddings"
    f" WHERE memory_pk BETWEEN :first AND :last AND {_SEARCHED}"
)
_NEAREST: Final = (
    f"SELECT memory_pk FROM memory_embeddings WHERE {_SEARCHED}"
    " AND visibility IN (SELECT value FROM json_each(:visibilities)) AND {among}"
    " ORDER BY vec_distance_cosine(vec_int8(vector), vec_int8(:query)), memory_pk LIMIT :limit"
)
_AMONG: Final = "memory_pk IN (SELECT value FROM json_each(:among))"


class SqliteVectorIndex(VectorIndex):
    """The vector index in SQLite."""

    def _execute(self, statement: str, values: dict[str, Any]) -> Any:
        return self._snapshot.driver.execute(statement, values)

    def _read(self, first: int, last: int) -> VectorRows:
        import numpy as np

        from memgraph.store.vector_cache import VectorRows

        values = {**self._searched, "first": first, "last": last}
        [(keys, visibilities, codes)] = self._execute(_READ, values)
        if keys is None:
            none = np.empty(0, np.int64)
            return VectorRows(none, none, np.empty((0, self.dimensions), np.int8))
        return VectorRows(
            np.array(keys.split(","), np.int64),
            np.array(visibilities.split(","), np.int64),
            np.frombuffer(codes, np.int8).reshape(-1, self.dimensions),
        )

    def _nearest_of_rows(
        self,
        query: NDArray[np.float32],
        limit: int,
        visibilities: Collection[int],
        among: Collection[int] | None,
    ) -> list[int]:
        import numpy as np

        values = {
            **self._searched,
            "visibilities": json.dumps(list(visibilities)),
            "query": quantized(query[None, :]).tobytes(),
            # The quantised query may order the last results differently, so fetch some more.
            "limit": limit + limit // 4 + _SPARE,
        }
        if among is not None:
            values["among"] = json.dumps(list(among))
        statement = _NEAREST.format(among="1" if among is None else _AMONG)
        pks = [pk for (pk,) in self._execute(statement, values)]
        scores = np.vecdot(self.vectors(pks), query)
        keys = np.array(pks, dtype=np.int64)
        nearest: list[int] = keys[np.lexsort((keys, -scores))[:limit]].tolist()
        return nearest


MERGED_PAGES: Final = 16


def expression(match: str) -> str:
    """Return the expression: it is FTS5's."""
    return match


def index_texts(transaction: Transaction) -> None:
    """Do nothing, because triggers update the index."""


def rebuild(transaction: Transaction) -> None:
    """Rebuild the index from the rows of ``memories``."""
    transaction.driver.execute("INSERT INTO memory_fts (memory_fts) VALUES ('rebuild')")


def merge(transaction: Transaction) -> bool:
    """Merge about ``MERGED_PAGES`` pages of the index; return False if nothing was left to merge.

    Every transaction that stores texts adds a segment, and a search reads all segments.
    """
    before = transaction.driver.total_changes
    _command(transaction, "merge", MERGED_PAGES)
    # According to the FTS5 documentation, a merge without work changes at most one row.
    return bool(transaction.driver.total_changes - before > 1)


checks_snapshots: Final = False


def check(transaction: Snapshot) -> bool:
    """Return True if the index agrees with ``memories``. Requires a write transaction.

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
    """Set whether the words of deleted rows are removed immediately or only marked."""
    _command(transaction, "secure-delete", int(at_once))


def _command(transaction: Snapshot, name: str, argument: int) -> None:
    statement = "INSERT INTO memory_fts (memory_fts, rank) VALUES (?, ?)"
    transaction.driver.execute(statement, (name, argument))
