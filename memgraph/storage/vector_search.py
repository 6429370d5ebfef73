"""Reading the vector index: the nearest vectors to a query that a reader may see.

vec0's own KNN costs n x k. Here the chunks of its table are read and compared over whole arrays,
which costs n whatever k is, and lets a set of keys narrow the search. Where the vectors are few
they are compared as they are, from a copy kept between recalls. Where they are many, three looks
follow one another, each closer and at fewer: how many bits differ, what the query itself says to
the bits, and what it says to the canonical vectors.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import sqlalchemy as sa

from memgraph.storage.vector_cache import HeldVectors, IndexCopy, Met
from memgraph.storage.vector_chunks import Run, room, runs, whole
from memgraph.storage.vectors import index_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

Number = TypeVar("Number", np.uint16, np.float32)
# Bits tell near from far only roughly: so many times the limit are compared exactly, and so many
# times those with the query's numbers instead of its signs.
OVERSAMPLING = 16
LOOKED_AT_TWICE = 6
# Where a reader sees so few, and no larger share than this, fewer need to be compared.
FEW_SEEN, FEW_OF_MANY, OVERSAMPLING_OF_FEW = 20_480, 0.25, 8
# The nearest of a million lie closer together: of many vectors at least these shares.
_SHARE_COMPARED, _SHARE_LOOKED_AT_TWICE = 0.003, 0.05
# Up to so many vectors (twenty chunks of vec0's) the exact comparison is the faster one.
COMPARED_EXACTLY = 20_480
_BATCH = 5_000
_FLOAT_BYTES = 4
_PART = 65_536
# Of those that one search reads where nothing is kept.
KEPT_BY_ONE = 4_096
_FEW = 16
# Shape (8, 256): +1 or -1 for each bit of each byte.
_SIGNS = (
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    .astype(np.float32)
    .T
    * 2
    - 1
)
_FACTS = (
    "SELECT key, value FROM memory_metadata WHERE key IN"
    " ('embedding_dimensions', 'vector_generation', 'vector_index_version')"
)


class Vectors:
    """The vectors of one snapshot; the canonical ones that are asked for are read once.

    Args:
        held: vectors kept from one recall to the next; None: nothing is kept.
    """

    def __init__(self, connection: sa.Connection, held: HeldVectors | None = None) -> None:
        self._connection = connection
        driver: Any = connection.connection.driver_connection
        found = dict(driver.execute(_FACTS).fetchall())
        self._dimensions = int(found["embedding_dimensions"])
        self._generation = found.get("vector_generation", "0")
        self._version = found.get("vector_index_version", "0")
        self._held = held
        # Where nothing is kept from recall to recall, one still reads nothing twice.
        self._met = Met(self._generation, self._dimensions, KEPT_BY_ONE if held is None else 0)
        self._seen: dict[tuple[int, ...], NDArray[np.intp]] = {}

    def nearest(
        self,
        query: NDArray[np.float32],
        limit: int,
        *,
        visibilities: Collection[int],
        among: Collection[int] | None = None,
    ) -> list[int]:
        """Keys of the ``OVERSAMPLING`` x ``limit`` nearest, by cosine, equal ones by key.

        Args:
            query: shape (dimensions,), unit norm.
            visibilities: only vectors whose visibility is one of these.
            among: only these keys; None: all.
        """
        wide = OVERSAMPLING * limit
        size = room(self._connection)
        index = self._kept_index(size)
        if self._held is not None and index is not None and size <= COMPARED_EXACTLY:
            found = self._nearest_held(self._held, index, query, wide, visibilities, among)
            if found is not None:
                return found
        if index is not None and among is None:
            few = self._seen_of(index, visibilities)
            if len(few) <= min(FEW_SEEN, int(FEW_OF_MANY * len(index.pks))):
                return self._nearest_of_few(index, few, query, limit)
        twice = max(LOOKED_AT_TWICE * wide, int(size * _SHARE_LOOKED_AT_TWICE))
        parts = runs(self._connection) if index is None else _cut(index)
        pks, packed = nearest_by_bits(parts, query, twice, visibilities=visibilities, among=among)
        closely = max(wide, int(size * _SHARE_COMPARED))
        closer, _ = _best(pks, -agreement(packed, query), closely)
        return self.compared(closer.tolist(), query)[:wide]

    def seen(self, visibilities: Collection[int]) -> NDArray[np.int64] | None:
        """Keys of all vectors of some visibilities; None: no copy of the index is kept."""
        index = self._kept_index(room(self._connection))
        return None if index is None else index.pks[self._seen_of(index, visibilities)]

    def _seen_of(self, index: IndexCopy, visibilities: Collection[int]) -> NDArray[np.intp]:
        """Places in the index."""
        key = tuple(visibilities)
        if key not in self._seen:
            self._seen[key] = np.flatnonzero(_is_any(index.marks, visibilities))
        return self._seen[key]

    def _nearest_of_few(
        self, index: IndexCopy, few: NDArray[np.intp], query: NDArray[np.float32], limit: int
    ) -> list[int]:
        """As ``nearest`` where a reader sees few of many: each is looked at twice, and fewer are
        compared.
        """
        closely = OVERSAMPLING_OF_FEW * limit
        # ``take`` gathers rows in an eighth of the time of an index.
        packed, bits = index.packed.take(few, axis=0), _packed(query)
        looked_at = LOOKED_AT_TWICE * closely
        best = _smallest(index.pks[few], _differing_bits(packed, bits), looked_at)
        keys, _ = _best(index.pks[few[best]], -agreement(packed.take(best, axis=0), query), closely)
        return self.compared(keys.tolist(), query)

    def nearest_of_all(self, query: NDArray[np.float32], limit: int) -> list[int]:
        """As ``nearest``, from the canonical vectors alone and whoever may see them."""
        return nearest_exact(self._connection, query, OVERSAMPLING * limit)

    def compared(self, pks: Sequence[int], query: NDArray[np.float32]) -> list[int]:
        """Those of ``pks`` that have a vector, by cosine, equal ones by key."""
        rows, there = self._rows(pks)
        keys = np.array(pks, dtype=np.int64)
        if not there.all():
            rows, keys = rows[there], keys[there]
        scores = np.vecdot(rows, query)
        found: list[int] = keys[np.lexsort((keys, -scores))].tolist()
        return found

    def of(self, pks: Sequence[int]) -> NDArray[np.float32]:
        """The vector of each of ``pks``: a row of zeros where it is still to come."""
        if self._held is not None:
            known = self._held.of(self._generation, pks)
            if known is not None:
                return known
        return self._rows(pks)[0]

    def _rows(self, pks: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The canonical vectors of ``pks``, and which of them there are; the others are zeros."""

        def fetch(lacking: list[int]) -> list[tuple[int, bytes]]:
            return canonical(self._connection, lacking, self._dimensions)

        if self._held is not None:
            return self._held.met(self._generation, self._dimensions, pks, fetch)
        return self._met.of(pks, fetch)

    def _kept_index(self, size: int) -> IndexCopy | None:
        if self._held is None:
            return None
        width = index_bits(self._dimensions) // 8
        return self._held.index(
            self._version, size * (width + 16), lambda: IndexCopy(*whole(self._connection))
        )

    def _nearest_held(
        self,
        held: HeldVectors,
        index: IndexCopy,
        query: NDArray[np.float32],
        limit: int,
        visibilities: Collection[int],
        among: Collection[int] | None,
    ) -> list[int] | None:
        pks, marks = index.pks, index.marks
        stored = held.aligned(
            self._generation,
            pks,
            self._dimensions,
            lambda lacking: canonical(self._connection, lacking, self._dimensions),
        )
        if stored is None:
            return None
        keep = _kept(pks, marks, visibilities, among)
        scores = np.vecdot(stored, query)
        if not keep.all():
            pks, scores = pks[keep], scores[keep]
        keys, _ = _best(pks, -scores, limit)
        found: list[int] = keys.tolist()
        return found


def entries(
    connection: sa.Connection,
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
    """The whole index by ascending key: keys, bits (a row of bytes each), visibilities."""
    pks, packed, marks = whole(connection)
    order = np.argsort(pks, kind="stable")
    return pks[order], packed[order], marks[order]


def nearest_by_bits(
    parts: Iterable[Run],
    query: NDArray[np.float32],
    limit: int,
    *,
    visibilities: Collection[int],
    among: Collection[int] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The vectors that differ from the query in the fewest bits.

    Args:
        query: shape (dimensions,).
        visibilities: only vectors whose visibility is one of these.
        among: only these keys; None: all.

    Returns:
        Keys, those with the fewest differing bits first, equal ones by key; and their bits.
    """
    bits = _packed(query)
    keys = np.empty(0, dtype=np.int64)
    packed = np.empty((0, len(bits)), dtype=np.uint8)
    distances = np.empty(0, dtype=np.uint16)
    for pks, vectors, marks in parts:
        keep = _kept(pks, marks, visibilities, among)
        if not keep.all():
            pks, vectors = pks[keep], vectors[keep]
        differing = _differing_bits(vectors, bits)
        if len(keys) == limit:
            # Most of a run is farther away than all that were kept.
            close = np.flatnonzero(differing <= distances[-1])
            pks, vectors, differing = pks[close], vectors[close], differing[close]
        keys, packed = np.concatenate([keys, pks]), np.concatenate([packed, vectors])
        distances = np.concatenate([distances, differing])
        order = _smallest(keys, distances, limit)
        keys, packed, distances = keys[order], packed[order], distances[order]
    return keys, packed


def agreement(packed: NDArray[np.uint8], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The inner product of a query and vectors of which only the signs are known, as +1 and -1.

    Source: Gordo, Perronnin, "Asymmetric distances for binary embeddings", CVPR 2011.

    Args:
        packed: shape (n, bytes), a bit for each dimension, the lowest first.
        query: shape (dimensions,).

    Returns:
        Shape (n,).
    """
    padded = np.zeros(packed.shape[1] * 8, dtype=np.float32)
    padded[: len(query)] = query
    # What each of the 256 bytes says in each place: looked up, not multiplied out.
    told = padded.reshape(-1, 8) @ _SIGNS
    out = np.zeros(len(packed), dtype=np.float32)
    for place, table in enumerate(told):
        out += table[packed[:, place]]
    return out


def nearest_exact(connection: sa.Connection, query: NDArray[np.float32], limit: int) -> list[int]:
    """Keys of the ``limit`` canonical vectors with the highest cosine, whoever may see them.

    Reads every vector: the measure of `nearest`, not its rival.
    """
    driver: Any = connection.connection.driver_connection
    found = driver.execute(
        "SELECT memory_pk, vector FROM memory_embeddings WHERE state = 'ready' AND dimensions = ?"
        " ORDER BY memory_pk",
        (len(query),),
    )
    best: list[tuple[float, int]] = []
    while run := found.fetchmany(_BATCH):
        vectors = np.frombuffer(b"".join(vector for _, vector in run), "<f4")
        scores = vectors.reshape(len(run), len(query)) @ query
        best.extend(zip((-scores).tolist(), (pk for pk, _ in run), strict=True))
        best = sorted(best)[:limit]
    return [pk for _, pk in best]


def canonical(
    connection: sa.Connection, pks: Sequence[int], dimensions: int
) -> list[tuple[int, bytes]]:
    """(key, little-endian float32) of those of ``pks`` that have a vector, in their order."""
    driver: Any = connection.connection.driver_connection
    found: list[tuple[int, bytes]] = driver.execute(
        "SELECT e.memory_pk, e.vector FROM json_each(?) f"
        " CROSS JOIN memory_embeddings e ON e.memory_pk = f.value"
        " WHERE e.state = 'ready' AND e.dimensions = ?",
        (json.dumps(pks), dimensions),
    ).fetchall()
    return found


def _cut(index: IndexCopy) -> Iterator[Run]:
    """A copy in parts that fit a processor's cache."""
    for start in range(0, len(index.pks), _PART):
        part = slice(start, start + _PART)
        yield index.pks[part], index.packed[part], index.marks[part]


def _kept(
    pks: NDArray[np.int64],
    marks: NDArray[np.int64],
    visibilities: Collection[int],
    among: Collection[int] | None,
) -> NDArray[np.bool_]:
    keep = _is_any(marks, visibilities)
    if among is not None:
        keep &= np.isin(pks, np.fromiter(among, dtype=np.int64, count=len(among)))
    return keep


def _differing_bits(vectors: NDArray[np.uint8], bits: NDArray[np.uint8]) -> NDArray[np.uint16]:
    # Eight bytes at a time where the width allows it, four times as fast.
    unit = np.dtype(np.uint64 if vectors.shape[1] % 8 == 0 else np.uint8)
    differing = np.bitwise_count(np.ascontiguousarray(vectors).view(unit) ^ bits.view(unit))
    # Column by column: to sum rows of a few bytes each takes ten times as long.
    counts = np.zeros(len(differing), dtype=np.uint16)
    for column in range(differing.shape[1]):
        counts += differing[:, column]
    return counts


def _is_any(marks: NDArray[np.int64], wanted: Collection[int]) -> NDArray[np.bool_]:
    """Where a mark is one of a few; ``isin`` is made for many."""
    if len(wanted) > _FEW:
        return np.isin(marks, np.fromiter(wanted, dtype=np.int64, count=len(wanted)))
    found = np.zeros(len(marks), dtype=np.bool_)
    for mark in wanted:
        found |= marks == mark
    return found


def _best(
    keys: NDArray[np.int64], distances: NDArray[Number], limit: int
) -> tuple[NDArray[np.int64], NDArray[Number]]:
    """The ``limit`` smallest by distance, then by key."""
    order = _smallest(keys, distances, limit)
    return keys[order], distances[order]


def _smallest(keys: NDArray[np.int64], distances: NDArray[Number], limit: int) -> NDArray[np.intp]:
    """Places of the ``limit`` smallest by distance, then by key."""
    if len(keys) <= limit:
        return np.lexsort((keys, distances))
    bound = np.partition(distances, limit - 1)[limit - 1]
    close = np.flatnonzero(distances <= bound)
    return close[np.lexsort((keys[close], distances[close]))[:limit]]


def _packed(query: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The query as vec_quantize_binary would store it."""
    return np.packbits(query > 0, bitorder="little")
