"""The vector index: rows of ``memory_embeddings`` with 8 bits per number.

A process that recalls caches the vectors in memory (``vector_cache``) and updates them from
``memory_vector_changes``. Without the cache the engine compares every row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.model.enums import EmbeddingState
from memgraph.store import metadata, tables
from memgraph.store.embeddings import damaged, quantized, unit_vectors, visibility
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import Column, among, listed, ordered, prepared, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.vector_cache import HeldVectors, VectorRows, VectorStamp, VectorState

# A cache that is more versions behind is reloaded. A change of up to MOST_RUNS runs of keys adds a
# version per run, a larger one a single version for the whole range.
VERSIONS_KEPT: Final = 1_024
MOST_RUNS: Final = 256
_BATCH: Final = 5_000
_LAST_KEY: Final = 2**63 - 1
# The number of bytes that one statement reads: 4,096 vectors with 256 dimensions.
_BYTES_AT_ONCE: Final = 4_096 * 256


@prepared
def _stamp() -> sa.Select[Any]:
    facts, v, e = tables.metadata, tables.vector_changes, tables.embeddings

    def kept(key: str) -> sa.ScalarSelect[Any]:
        return sa.select(facts.c.value).where(facts.c.key == key).scalar_subquery()

    return sa.select(
        sa.select(sa.func.coalesce(sa.func.max(v.c.version), 0)).scalar_subquery(),
        kept("embedding_model"),
        sa.cast(kept("embedding_dimensions"), sa.Integer),
        sa.select(sa.func.coalesce(sa.func.max(e.c.memory_pk), 0)).scalar_subquery(),
    )


@prepared
def _add() -> sa.Insert:
    names = ("vector", "model", "dimensions", "visibility")
    columns = {name: value(name) for name in ("memory_pk", *names)}
    row = insert(tables.embeddings).values(columns | {"state": EmbeddingState.READY})
    changed = {name: row.excluded[name] for name in (*names, "state")} | {"error_code": sa.null()}
    return row.on_conflict_do_update(index_elements=["memory_pk"], set_=changed)


def _facts(m: sa.FromClause) -> tuple[Column, ...]:
    return m.c.scope, m.c.scope_id, m.c.status, m.c.sensitivity


@prepared
def _facts_of(key: str) -> sa.Select[Any]:
    m = tables.memories
    return sa.select(m.c.pk, *_facts(m)).where(among(m.c[key], "keys"))


def _ready(e: sa.FromClause, m: sa.FromClause, *columns: Column) -> sa.Select[Any]:
    query = sa.select(*columns).select_from(e.join(m, m.c.pk == e.c.memory_pk))
    return query.where(e.c.state == EmbeddingState.READY).order_by(e.c.memory_pk)


@prepared
def _place() -> sa.Update:
    e = tables.embeddings
    conditions = (e.c.memory_pk == value("pk"), e.c.state == EmbeddingState.READY)
    return sa.update(e).where(*conditions).values(visibility=value("mark"))


@prepared
def _add_change() -> sa.Insert:
    names = ("first_pk", "last_pk")
    return sa.insert(tables.vector_changes).values({name: value(name) for name in names})


@prepared
def _forget_changes() -> sa.Delete:
    v = tables.vector_changes
    newest = sa.select(sa.func.max(v.c.version)).scalar_subquery()
    return sa.delete(v).where(v.c.version <= newest - VERSIONS_KEPT)


@prepared
def _changes() -> sa.Select[Any]:
    v = tables.vector_changes.c
    query = sa.select(v.first_pk, v.last_pk, v.version).where(v.version > value("version"))
    return query.order_by(v.version)


def is_searched(e: sa.FromClause) -> Column:
    """Return the condition that a vector is searched: ready, and of the current model."""
    dimensions = value("dimensions")
    return sa.and_(
        e.c.state == EmbeddingState.READY,
        e.c.model.is_not_distinct_from(value("model")),
        e.c.dimensions == dimensions,
        sa.func.length(e.c.vector) == dimensions,
    )


@prepared
def _vectors() -> sa.Select[Any]:
    f, e = listed("pks", "f", numbers=True), tables.embeddings.alias("e")
    query = sa.select(f.c.key, e.c.vector)
    is_vector = e.c.memory_pk == f.c.value
    return query.select_from(ordered(f, (e, is_vector))).where(is_searched(e))


class VectorFault(StrEnum):
    """A fault of a stored vector."""

    DAMAGED = "damaged"
    VISIBILITY = "visibility"


class FaultyVector(NamedTuple):
    """A finding of ``VectorIndex.check``."""

    pk: int
    memory_id: str
    fault: VectorFault


class _Search(NamedTuple):
    """A search over the cache, and its result: a recall may ask for the first of them again."""

    query: NDArray[np.float32]
    visibilities: tuple[int, ...]
    limit: int
    keys: list[int]

    def answers(self, visibilities: Collection[int], limit: int) -> bool:
        return limit <= self.limit and tuple(visibilities) == self.visibilities


class VectorIndex(ABC):
    """The vectors of one database, on one snapshot or in one transaction.

    Vectors have unit norm. They are quantized when stored, so reading returns slightly different
    ones. Only vectors of the database's current model, with its number of dimensions, are searched.
    ``visibility`` is the integer in which ``memgraph.store.embeddings.visibility`` encodes a
    memory's scope, status and sensitivity. The engines read and compare rows in their own way.

    Args:
        cache: the vectors of this database that the process has cached; None: no cache.
    """

    def __init__(self, snapshot: Snapshot, cache: HeldVectors | None = None) -> None:
        self._snapshot = snapshot
        self._held = cache
        self._last: _Search | None = None

    @property
    def _transaction(self) -> Transaction:
        """The snapshot as a transaction, for the methods that write."""
        return cast("Transaction", self._snapshot)

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a vector."""
        return self._stamp.dimensions

    def add(self, pks: Sequence[int], vectors: NDArray[np.float32], model: str) -> None:
        """Store the vectors of memories, which are no longer pending afterwards.

        Args:
            pks: the keys of n stored memories.
            vectors: shape (n, any number of dimensions), finite, without zero vectors.
            model: the model that made them.
        """
        rows = _facts_of("pk").rows(self._snapshot, keys=pks)
        visibilities = {pk: visibility(*facts) for pk, *facts in rows}
        codes = quantized(vectors)
        _add().write_all(
            self._transaction,
            [
                {
                    "memory_pk": pk,
                    "vector": row.tobytes(),
                    "model": model,
                    "dimensions": vectors.shape[1],
                    "visibility": visibilities[pk],
                }
                for pk, row in zip(pks, codes, strict=True)
            ],
        )
        self._note(pks)

    def remove(self, pks: Sequence[int]) -> int:
        """Remove the vectors of memories, which are pending again afterwards.

        Their bytes are overwritten if the engine overwrites deleted data.

        Returns:
            The number of memories that have a row in the index.
        """
        e = tables.embeddings
        cleared = dict.fromkeys(("vector", "model", "dimensions", "error_code"), sa.null())
        pending = {"state": EmbeddingState.PENDING, "visibility": -1}
        pending |= {"next_attempt_at": 0, "attempts": 0}
        removed = sa.update(e).where(among(e.c.memory_pk, pks)).values(cleared | pending)
        changed = self._transaction.write(removed)
        self._note(pks)
        return changed

    def refresh(self, memory_ids: Sequence[str]) -> None:
        """Update the index after a change of the scope, status or sensitivity of memories."""
        rows = _facts_of("memory_id").rows(self._snapshot, keys=memory_ids)
        self._place([(visibility(*facts), pk) for pk, *facts in rows])

    @property
    def is_loaded(self) -> bool:
        """True if nothing is left to load."""
        return self._held is None or self._held.has(self._stamp)

    def load(self) -> None:
        """Load the vectors into the cache of the process, if there is one.

        The first call in a process reads all vectors (1 s for a million), later calls read changes.
        After an interruption by a deadline the next call continues.
        """
        _ = self._state

    def search(
        self,
        query: NDArray[np.float32],
        limit: int,
        *,
        visibilities: Collection[int],
        among: Collection[int] | None = None,
    ) -> list[int]:
        """Return the keys of the nearest vectors by descending cosine, then by key.

        Args:
            query: shape (dimensions,), unit norm.
            limit: the maximum number of keys.
            visibilities: only memories with one of these visibilities.
            among: only these keys; None: all.
        """
        state = self._state
        if state is None:
            return self._nearest_of_rows(query, limit, visibilities, among)
        if among is not None:
            return state.nearest(query, limit, visibilities, among)
        last = self._last
        if last is None or last.query is not query or not last.answers(visibilities, limit):
            keys = state.nearest(query, limit, visibilities, None)
            last = self._last = _Search(query, tuple(visibilities), limit, keys)
        return last.keys[:limit]

    def vectors(self, pks: Sequence[int]) -> NDArray[np.float32]:
        """Return a vector for each key, shape (n, dimensions), with zeros for missing ones."""
        import numpy as np

        # Use the cache only if it is loaded: reading a few rows is faster than loading it.
        state: VectorState | None = self.__dict__.get("_state")
        if state is not None:
            return state.vectors(pks)
        result = np.zeros((len(pks), self.dimensions), np.float32)
        rows = _vectors().rows(self._snapshot, self._searched, pks=pks)
        if rows:
            codes = np.frombuffer(b"".join(vector for _, vector in rows), np.int8)
            vectors = unit_vectors(codes.reshape(len(rows), -1))
            result[[place for place, _ in rows]] = vectors
        return result

    def rebuild(self, dimensions: int | None = None) -> int:
        """Rebuild the derived data; return the number of vectors that are searched.

        Args:
            dimensions: the number of dimensions to search from now on; None: as before.
        """
        if dimensions is not None:
            metadata.put(self._transaction, "embedding_dimensions", str(dimensions))
        after = -1
        e, m = tables.embeddings.alias("e"), tables.memories.alias("m")
        query = _ready(e, m, e.c.memory_pk, e.c.visibility, *_facts(m))
        query = query.where(e.c.memory_pk > value("after")).limit(_BATCH)
        while rows := self._snapshot.rows(query, after=after):
            expected = [(visibility(*facts), pk, stored) for pk, stored, *facts in rows]
            self._place([(mark, pk) for mark, pk, stored in expected if mark != stored])
            after = rows[-1][0]
        # Make every cache reload, whatever was wrong with the rows.
        self._note_ranges([(0, _LAST_KEY)])
        e = tables.embeddings
        count = sa.select(sa.func.count()).select_from(e).where(is_searched(e))
        return int(self._snapshot.scalar(count, self._searched))

    def check(self) -> Iterator[FaultyVector]:
        """Yield every vector that is damaged or has an outdated visibility."""
        e, m = tables.embeddings.alias("e"), tables.memories.alias("m")
        columns = (e.c.memory_pk, m.c.memory_id, e.c.vector, e.c.dimensions, e.c.visibility)
        for rows in self._snapshot.pages(_ready(e, m, *columns, *_facts(m)), _BATCH):
            bad = set(damaged([(row[2], row[3]) for row in rows]))
            for place, (pk, memory_id, _, _, stored, *facts) in enumerate(rows):
                if place in bad:
                    yield FaultyVector(pk, memory_id, VectorFault.DAMAGED)
                elif not _fits(facts, stored):
                    yield FaultyVector(pk, memory_id, VectorFault.VISIBILITY)

    @cached_property
    def _bounds(self) -> tuple[VectorStamp, int]:
        """The stamp of the snapshot's vectors, and their highest key."""
        from memgraph.store.vector_cache import VectorStamp

        *stamp, last_key = _stamp().row(self._snapshot)
        return VectorStamp(*stamp), int(last_key)

    @property
    def _stamp(self) -> VectorStamp:
        return self._bounds[0]

    @property
    def _searched(self) -> dict[str, Any]:
        """The values that ``is_searched`` binds."""
        return {"model": self._stamp.model, "dimensions": self._stamp.dimensions}

    @property
    def _keys_at_once(self) -> int:
        return max(_BYTES_AT_ONCE // self.dimensions, 1)

    @cached_property
    def _state(self) -> VectorState | None:
        if self._held is None:
            return None
        return self._held.state(*self._bounds, self._read_after, self._changed_since)

    def _read_after(self, key: int) -> tuple[VectorRows, int]:
        last = key + self._keys_at_once
        return self._read(key + 1, last), last

    def _changed_since(self, version: int) -> Iterator[tuple[int, int, VectorRows]] | None:
        changes = _changes().rows(self._snapshot, version=version)
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

    @abstractmethod
    def _read(self, first: int, last: int) -> VectorRows:
        """Return the searched vectors with keys from ``first`` to ``last``."""

    @abstractmethod
    def _nearest_of_rows(
        self,
        query: NDArray[np.float32],
        limit: int,
        visibilities: Collection[int],
        among: Collection[int] | None,
    ) -> list[int]:
        """Search without the cache; see ``search``."""

    def _place(self, rows: Sequence[tuple[int, int]]) -> None:
        """Set the visibility of vectors, from rows of (visibility, pk)."""
        _place().write_all(self._transaction, [{"mark": mark, "pk": pk} for mark, pk in rows])
        self._note([pk for _, pk in rows])

    def _note(self, pks: Sequence[int]) -> None:
        """Record which keys changed, for the caches of all processes."""
        if not pks:
            return
        self._note_ranges(_runs(pks))

    def _note_ranges(self, ranges: Sequence[tuple[int, int]]) -> None:
        _add_change().write_all(
            self._transaction, [{"first_pk": first, "last_pk": last} for first, last in ranges]
        )
        _forget_changes().write(self._transaction)
        self._last = None
        for name in ("_bounds", "_state"):
            self.__dict__.pop(name, None)


def _runs(pks: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last key of each run of consecutive keys, or of all keys if too many."""
    ordered = sorted(set(pks))
    starts = [at for at in range(len(ordered)) if not at or ordered[at] != ordered[at - 1] + 1]
    if len(starts) > MOST_RUNS:
        return [(ordered[0], ordered[-1])]
    ends = [*starts[1:], len(ordered)]
    return [(ordered[at], ordered[end - 1]) for at, end in zip(starts, ends, strict=True)]


def _fits(facts: Sequence[Any], stored: Any) -> bool:
    try:
        return bool(visibility(*facts) == stored)
    except KeyError:  # an unknown status or sensitivity
        return False
