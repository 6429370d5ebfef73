"""The vector index in SQLite: rows of ``memory_embeddings``, eight bits a number.

A process that recalls keeps a copy in memory (``vector_cache``) and follows what changes by
``memory_vector_changes``. Without a copy sqlite-vec's distance is computed for every row.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from memgraph.store.embeddings import damaged, quantized, visibility
from memgraph.store.ports import FaultyVector, VectorFault
from memgraph.store.snapshot import Snapshot, driver

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.sqlite.vector_cache import Rows, SqliteHeldVectors, Stamp, VectorState

# Of older versions a process reads all vectors anew; so many runs of keys have a version each.
VERSIONS_KEPT: Final = 1_024
MOST_RUNS: Final = 256
_BATCH: Final = 5_000
_SPARE: Final = 16
_LAST_KEY: Final = 2**63 - 1
# What one statement reads: 4,096 vectors of 256 numbers.
_BYTES_AT_ONCE: Final = 4_096 * 256

_STAMP: Final = """
    SELECT (SELECT coalesce(max(version), 0) FROM memory_vector_changes),
        (SELECT value FROM memory_metadata WHERE key = 'embedding_model'),
        CAST((SELECT value FROM memory_metadata WHERE key = 'embedding_dimensions') AS INTEGER),
        (SELECT coalesce(max(memory_pk), 0) FROM memory_embeddings)
"""
_ADD: Final = """
    INSERT INTO memory_embeddings (memory_pk, vector, model, dimensions, visibility, state)
    VALUES (?, ?, ?, ?, ?, 'ready') ON CONFLICT (memory_pk) DO UPDATE SET vector = excluded.vector,
        model = excluded.model, dimensions = excluded.dimensions,
        visibility = excluded.visibility, state = 'ready', error_code = NULL
"""
_REMOVE: Final = """
    UPDATE memory_embeddings SET state = 'pending', vector = NULL, model = NULL, dimensions = NULL,
        visibility = -1, next_attempt_at = 0, attempts = 0, error_code = NULL
    WHERE memory_pk IN (SELECT value FROM json_each(?))
"""
_FACTS: Final = "SELECT m.pk, m.scope, m.scope_id, m.status, m.sensitivity FROM memories m"
_FACTS_BY_PK: Final = f"{_FACTS} WHERE m.pk IN (SELECT value FROM json_each(?))"
_FACTS_BY_ID: Final = f"{_FACTS} WHERE m.memory_id IN (SELECT value FROM json_each(?))"
_STALE: Final = """
    SELECT e.memory_pk, e.visibility, m.scope, m.scope_id, m.status, m.sensitivity
    FROM memory_embeddings e JOIN memories m ON m.pk = e.memory_pk
    WHERE e.state = 'ready' AND e.memory_pk > ? ORDER BY e.memory_pk LIMIT ?
"""
_PLACE: Final = (
    "UPDATE memory_embeddings SET visibility = ? WHERE memory_pk = ? AND state = 'ready'"
)
_CHANGE: Final = "INSERT INTO memory_vector_changes (first_pk, last_pk) VALUES (?, ?)"
_FORGET_CHANGES: Final = (
    "DELETE FROM memory_vector_changes"
    f" WHERE version <= (SELECT max(version) FROM memory_vector_changes) - {VERSIONS_KEPT}"
)
_CHANGES: Final = (
    "SELECT first_pk, last_pk, version FROM memory_vector_changes WHERE version > ?"
    " ORDER BY version"
)
_SEARCHED: Final = (
    "state = 'ready' AND model IS :model AND dimensions = :dimensions"
    " AND length(vector) = :dimensions"
)
# As one value: to take thousands of rows one by one takes twice as long.
_READ: Final = (
    "SELECT group_concat(memory_pk), group_concat(visibility),"
    " CAST(group_concat(vector, '') AS BLOB) FROM memory_embeddings"
    f" WHERE memory_pk BETWEEN :first AND :last AND {_SEARCHED}"
)
_VECTORS: Final = (
    "SELECT f.key, e.vector FROM json_each(:pks) f"
    f" CROSS JOIN memory_embeddings e ON e.memory_pk = f.value WHERE {_SEARCHED}"
)
_NEAREST: Final = (
    f"SELECT memory_pk FROM memory_embeddings WHERE {_SEARCHED}"
    " AND visibility IN (SELECT value FROM json_each(:visibilities)) AND {among}"
    " ORDER BY vec_distance_cosine(vec_int8(vector), vec_int8(:query)), memory_pk LIMIT :limit"
)
_AMONG: Final = "memory_pk IN (SELECT value FROM json_each(:among))"
_CHECKED: Final = """
    SELECT e.memory_pk, m.memory_id, e.vector, e.dimensions, e.visibility,
        m.scope, m.scope_id, m.status, m.sensitivity
    FROM memory_embeddings e JOIN memories m ON m.pk = e.memory_pk
    WHERE e.state = 'ready' ORDER BY e.memory_pk
"""


class SqliteVectorIndex:
    """See ``ports.VectorIndex``.

    Args:
        held: what the process keeps of this database; None: nothing.
    """

    def __init__(self, snapshot: Snapshot, held: SqliteHeldVectors | None = None) -> None:
        self._snapshot = snapshot
        self._execute: Any = driver(snapshot).execute
        self._held = held

    @property
    def dimensions(self) -> int:
        return self._stamp.dimensions

    def add(self, pks: Sequence[int], vectors: NDArray[np.float32], model: str) -> None:
        visibilities = self._visibilities(pks)
        codes = quantized(vectors)
        driver(self._snapshot).executemany(
            _ADD,
            [
                (pk, row.tobytes(), model, vectors.shape[1], visibilities[pk])
                for pk, row in zip(pks, codes, strict=True)
            ],
        )
        self._note(pks)

    def remove(self, pks: Sequence[int]) -> int:
        changed = self._execute(_REMOVE, (json.dumps(list(pks)),)).rowcount
        self._note(pks)
        return int(changed)

    def refresh(self, memory_ids: Sequence[str]) -> None:
        rows = self._execute(_FACTS_BY_ID, (json.dumps(list(memory_ids)),)).fetchall()
        self._place([(visibility(*facts), pk) for pk, *facts in rows])

    def search(
        self,
        query: NDArray[np.float32],
        limit: int,
        *,
        visibilities: Collection[int],
        among: Collection[int] | None = None,
    ) -> list[int]:
        if self._state is not None:
            return self._state.nearest(query, limit, visibilities, among)
        return self._nearest_of_rows(query, limit, visibilities, among)

    def visible(self, visibilities: Collection[int]) -> NDArray[np.int64] | None:
        return None if self._state is None else self._state.visible(visibilities)

    def vectors(self, pks: Sequence[int]) -> NDArray[np.float32]:
        import numpy as np

        # A few rows are read sooner than a copy is made, also where that was interrupted.
        state: VectorState | None = self.__dict__.get("_state")
        if state is not None:
            return state.vectors(pks)
        found = np.zeros((len(pks), self.dimensions), np.float32)
        values = {**self._searched, "pks": json.dumps(list(pks))}
        rows = self._execute(_VECTORS, values).fetchall()
        if rows:
            codes = np.frombuffer(b"".join(vector for _, vector in rows), np.int8)
            numbers = codes.reshape(len(rows), -1).astype(np.float32)
            norms = np.sqrt(np.vecdot(numbers, numbers))
            found[[place for place, _ in rows]] = numbers / np.maximum(norms, 1.0)[:, None]
        return found

    def rebuild(self, dimensions: int | None = None) -> int:
        if dimensions is not None:
            self._execute(
                "INSERT OR REPLACE INTO memory_metadata (key, value)"
                " VALUES ('embedding_dimensions', ?)",
                (str(dimensions),),
            )
        after = -1
        while rows := self._execute(_STALE, (after, _BATCH)).fetchall():
            right = [(visibility(*facts), pk, known) for pk, known, *facts in rows]
            self._place([(mark, pk) for mark, pk, known in right if mark != known])
            after = rows[-1][0]
        # Whoever keeps a copy reads it anew, whatever was wrong with the rows.
        self._note_ranges([(0, _LAST_KEY)])
        [(number,)] = self._execute(
            f"SELECT count(*) FROM memory_embeddings WHERE {_SEARCHED}", self._searched
        )
        return int(number)

    def check(self) -> Iterator[FaultyVector]:
        source = self._execute(_CHECKED)
        while rows := source.fetchmany(_BATCH):
            bad = set(damaged([(row[2], row[3]) for row in rows]))
            for place, (pk, memory_id, _, _, known, *facts) in enumerate(rows):
                if place in bad:
                    yield FaultyVector(pk, memory_id, VectorFault.DAMAGED)
                elif not _fits(facts, known):
                    yield FaultyVector(pk, memory_id, VectorFault.VISIBILITY)

    @cached_property
    def _bounds(self) -> tuple[Stamp, int]:
        """Return what the vectors of the snapshot are determined by, and the last key of theirs."""
        from memgraph.store.sqlite.vector_cache import Stamp

        [(*stamp, last_key)] = self._execute(_STAMP)
        return Stamp(*stamp), int(last_key)

    @property
    def _stamp(self) -> Stamp:
        return self._bounds[0]

    @property
    def _searched(self) -> dict[str, Any]:
        """Return the values that ``_SEARCHED`` binds."""
        return {"model": self._stamp.model, "dimensions": self._stamp.dimensions}

    @property
    def _keys_at_once(self) -> int:
        return max(_BYTES_AT_ONCE // self.dimensions, 1)

    @cached_property
    def _state(self) -> VectorState | None:
        if self._held is None:
            return None
        return self._held.state(*self._bounds, self._read_after, self._changed_since)

    def _read_after(self, key: int) -> tuple[Rows, int]:
        last = key + self._keys_at_once
        return self._read(key + 1, last), last

    def _changed_since(self, version: int) -> Iterator[tuple[int, int, Rows]] | None:
        changes = self._execute(_CHANGES, (version,)).fetchall()
        if not changes or changes[0][2] != version + 1:
            return None
        ranges = dict.fromkeys((first, last) for first, last, _ in changes)
        if sum(last - first for first, last in ranges) > self._bounds[1]:
            return None
        step = self._keys_at_once
        pieces = (
            (start, min(start + step - 1, last))
            for first, last in ranges
            for start in range(first, last + 1, step)
        )
        return ((first, last, self._read(first, last)) for first, last in pieces)

    def _read(self, first: int, last: int) -> Rows:
        import numpy as np

        from memgraph.store.sqlite.vector_cache import Rows

        values = {**self._searched, "first": first, "last": last}
        [(keys, visibilities, codes)] = self._execute(_READ, values)
        if keys is None:
            none = np.empty(0, np.int64)
            return Rows(none, none, np.empty((0, self.dimensions), np.int8))
        return Rows(
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
            # The query is rounded for it: the last of them may be others.
            "limit": limit + limit // 4 + _SPARE,
        }
        if among is not None:
            values["among"] = json.dumps(list(among))
        statement = _NEAREST.format(among="1" if among is None else _AMONG)
        pks = [pk for (pk,) in self._execute(statement, values)]
        scores = np.vecdot(self.vectors(pks), query)
        keys = np.array(pks, dtype=np.int64)
        found: list[int] = keys[np.lexsort((keys, -scores))[:limit]].tolist()
        return found

    def _visibilities(self, pks: Sequence[int]) -> dict[int, int]:
        rows = self._execute(_FACTS_BY_PK, (json.dumps(list(pks)),))
        return {pk: visibility(*facts) for pk, *facts in rows}

    def _place(self, rows: Sequence[tuple[int, int]]) -> None:
        """Set the visibility of memories, rows of (visibility, pk)."""
        driver(self._snapshot).executemany(_PLACE, rows)
        self._note([pk for _, pk in rows])

    def _note(self, pks: Sequence[int]) -> None:
        """Record which keys changed, for those who keep a copy."""
        if not pks:
            return
        self._note_ranges(_runs(pks))

    def _note_ranges(self, ranges: Sequence[tuple[int, int]]) -> None:
        driver(self._snapshot).executemany(_CHANGE, ranges)
        self._execute(_FORGET_CHANGES)
        for name in ("_bounds", "_state"):
            self.__dict__.pop(name, None)


def _runs(pks: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last of every run of consecutive keys; of very many all as one."""
    ordered = sorted(set(pks))
    starts = [at for at in range(len(ordered)) if not at or ordered[at] != ordered[at - 1] + 1]
    if len(starts) > MOST_RUNS:
        return [(ordered[0], ordered[-1])]
    ends = [*starts[1:], len(ordered)]
    return [(ordered[at], ordered[end - 1]) for at, end in zip(starts, ends, strict=True)]


def _fits(facts: Sequence[Any], known: Any) -> bool:
    try:
        return bool(visibility(*facts) == known)
    except KeyError:  # a status or a sensitivity that there is not
        return False
