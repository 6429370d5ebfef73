"""The vector index: a vec0 table with one bit per dimension, derived and rebuildable.

A bit is the sign of a number; the canonical float32 vectors in ``memory_embeddings`` rescore the
few that the bits find. Beside each vector stands its ``visibility``, one integer made of scope,
status and sensitivity, so that what a reader may not see is left out before anything is ranked.

vec0's own KNN costs n x k. `nearest` reads the chunks of the same table and counts differing bits
over whole arrays, which costs n whatever k is, and lets a set of keys narrow the search.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from memgraph.model.enums import MemoryStatus, Scope, Sensitivity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FLOAT_BYTES = 4
_BATCH = 5_000
# Chunks are read in runs, so that a million vectors need a few megabytes at a time.
_CHUNKS_PER_RUN = 64
_FEW = 16
_ALL_VALID = b"\xff"
_STATUS = {status.value: number for number, status in enumerate(MemoryStatus)}
_LEVEL = {sensitivity.value: sensitivity.level for sensitivity in Sensitivity}

_INSERT = (
    "INSERT INTO memory_vectors (memory_pk, embedding, visibility)"
    " VALUES (?, vec_quantize_binary(?), ?)"
)
_FACTS = (
    "SELECT pk, scope, scope_id, status, sensitivity FROM memories"
    " WHERE pk IN (SELECT value FROM json_each(?))"
)


def create_index(connection: Any, dimensions: int) -> None:
    """Make the empty index for vectors of ``dimensions`` numbers; takes a driver connection."""
    connection.execute(
        f"CREATE VIRTUAL TABLE memory_vectors USING vec0("
        f"memory_pk INTEGER PRIMARY KEY, embedding bit[{_bits(dimensions)}], visibility INTEGER)"
    )
    connection.execute(
        "INSERT OR REPLACE INTO memory_metadata (key, value) VALUES ('embedding_dimensions', ?)",
        (str(dimensions),),
    )


def recreate_index(connection: sa.Connection, dimensions: int) -> None:
    """Drop the index and make an empty one, for vectors of other dimensions."""
    connection.exec_driver_sql("DROP TABLE memory_vectors")
    create_index(connection.connection.driver_connection, dimensions)


def add(connection: sa.Connection, rows: Sequence[tuple[int, bytes]]) -> None:
    """Index vectors; one that is there already is replaced.

    Args:
        rows: the memory's ``pk`` and its canonical vector, little-endian float32. The memories
            are stored already; all vectors have the dimensions of the index.
    """
    for batch in _batches(rows):
        visibilities = _visibilities(connection, [pk for pk, _ in batch])
        remove(connection, [pk for pk, _ in batch])
        connection.exec_driver_sql(
            _INSERT, [(pk, _padded(vector), visibilities[pk]) for pk, vector in batch]
        )


def remove(connection: sa.Connection, pks: Sequence[int]) -> None:
    """Take memories out of the index; those that are not in it are passed over."""
    if pks:
        connection.exec_driver_sql(
            "DELETE FROM memory_vectors WHERE memory_pk = ?", [(pk,) for pk in pks]
        )


def refresh(connection: sa.Connection, memory_ids: Sequence[str]) -> None:
    """Bring the index up to date after a change of status, sensitivity or scope."""
    found = connection.exec_driver_sql(
        "SELECT pk, scope, scope_id, status, sensitivity FROM memories"
        " WHERE memory_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(memory_ids)),),
    )
    changes = [(visibility(*facts), pk) for pk, *facts in found]
    if changes:
        connection.exec_driver_sql(
            "UPDATE memory_vectors SET visibility = ? WHERE memory_pk = ?", changes
        )


def rebuild(connection: sa.Connection) -> int:
    """Make the index anew from the canonical vectors; gives how many it holds.

    Vectors of other dimensions than the index has are left out: their memories await embedding.
    """
    dimensions = indexed_dimensions(connection)
    recreate_index(connection, dimensions)
    ready = connection.exec_driver_sql(
        "SELECT memory_pk, vector FROM memory_embeddings"
        " WHERE state = 'ready' AND dimensions = ? ORDER BY memory_pk",
        (dimensions,),
    )
    done = 0
    for batch in _batches((pk, vector) for pk, vector in ready):
        visibilities = _visibilities(connection, [pk for pk, _ in batch])
        connection.exec_driver_sql(
            _INSERT, [(pk, _padded(vector), visibilities[pk]) for pk, vector in batch]
        )
        done += len(batch)
    return done


def indexed_dimensions(connection: sa.Connection) -> int:
    """How many numbers the vectors of the index have."""
    driver: Any = connection.connection.driver_connection
    [(value,)] = driver.execute(
        "SELECT value FROM memory_metadata WHERE key = 'embedding_dimensions'"
    )
    return int(value)


def entries(
    connection: sa.Connection,
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
    """The whole index by ascending key: keys, bits (a row of bytes each), visibilities."""
    import numpy as np

    width = _bits(indexed_dimensions(connection)) // 8
    runs = [(np.empty(0, np.int64), np.empty((0, width), np.uint8), np.empty(0, np.int64))]
    runs.extend(_runs(connection, width))
    pks, packed, marks = (np.concatenate(part) for part in zip(*runs, strict=True))
    order = np.argsort(pks, kind="stable")
    return pks[order], packed[order], marks[order]


def visibility(scope: str, scope_id: str | None, status: str, sensitivity: str) -> int:
    """Scope, status and sensitivity as one integer: 48 bits of scope, 2 of each of the others.

    Two scope ids may share their 48 bits, so a memory that passes is checked again by its row.
    """
    if scope == Scope.GLOBAL.value:
        key = 0
    else:
        digest = hashlib.blake2b(f"{scope}\0{scope_id}".encode(), digest_size=6).digest()
        key = int.from_bytes(digest, "little")
    return key << 4 | _STATUS[status] << 2 | _LEVEL[sensitivity]


def nearest(
    connection: sa.Connection,
    query: NDArray[np.float32],
    limit: int,
    *,
    visibilities: Collection[int],
    among: Collection[int] | None = None,
) -> list[int]:
    """Keys of the ``limit`` vectors that differ from the query in the fewest bits.

    Args:
        query: shape (dimensions,).
        visibilities: only vectors whose visibility is one of these.
        among: only these keys; None: all.

    Returns:
        At most ``limit`` keys, fewest differing bits first, equal ones by key.
    """
    import numpy as np

    bits = _packed(query)
    wanted = None if among is None else np.fromiter(among, dtype=np.int64, count=len(among))
    keys = np.empty(0, dtype=np.int64)
    distances = np.empty(0, dtype=np.uint16)
    for pks, vectors, marks in _runs(connection, len(bits)):
        keep = _is_any(marks, visibilities)
        if wanted is not None:
            keep &= np.isin(pks, wanted)
        if not keep.all():
            pks, vectors = pks[keep], vectors[keep]
        differing = _differing_bits(vectors, bits)
        keys, distances = _best(
            np.concatenate([keys, pks]), np.concatenate([distances, differing]), limit
        )
    return [int(key) for key in keys]


def nearest_exact(connection: sa.Connection, query: NDArray[np.float32], limit: int) -> list[int]:
    """Keys of the ``limit`` canonical vectors with the highest cosine, whoever may see them.

    Reads every vector: the measure of `nearest`, not its rival.
    """
    import numpy as np

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


class Vectors:
    """Canonical vectors with the dimensions of the index, each read once; for one snapshot."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._dimensions = indexed_dimensions(connection)
        self._read: dict[int, bytes | None] = {}

    def of(self, pks: Sequence[int]) -> tuple[list[int], NDArray[np.float32]]:
        """The vectors of those of ``pks`` that have one.

        Returns:
            The keys in ascending order, and an array of shape (len(keys), dimensions).
        """
        import numpy as np

        self._fetch([pk for pk in pks if pk not in self._read])
        keys = sorted(pk for pk in set(pks) if self._read[pk] is not None)
        joined = b"".join(self._read[pk] or b"" for pk in keys)
        return keys, np.frombuffer(joined, dtype="<f4").reshape(len(keys), self._dimensions)

    def _fetch(self, pks: Sequence[int]) -> None:
        driver: Any = self._connection.connection.driver_connection
        found = driver.execute(
            "SELECT e.memory_pk, e.vector FROM json_each(?) f"
            " CROSS JOIN memory_embeddings e ON e.memory_pk = f.value"
            " WHERE e.state = 'ready' AND e.dimensions = ?",
            (json.dumps(sorted(pks)), self._dimensions),
        ).fetchall()
        self._read.update(dict.fromkeys(pks))
        self._read.update(found)


def _runs(
    connection: sa.Connection, width: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]]:
    """Keys, packed vectors and visibilities of the whole index, a run of chunks at a time."""
    import numpy as np

    # The layout is vec0's own (its shadow tables); a test holds it against vec0's KNN.
    driver: Any = connection.connection.driver_connection
    found = driver.execute(
        "SELECT c.validity, c.rowids, v.vectors, m.data FROM memory_vectors_chunks c"
        " JOIN memory_vectors_vector_chunks00 v ON v.rowid = c.chunk_id"
        " JOIN memory_vectors_metadatachunks00 m ON m.rowid = c.chunk_id ORDER BY c.chunk_id"
    )
    while run := found.fetchmany(_CHUNKS_PER_RUN):
        validity, rowids, vectors, marks = (b"".join(part) for part in zip(*run, strict=True))
        pks = np.frombuffer(rowids, "<i8")
        packed = np.frombuffer(vectors, np.uint8).reshape(-1, width)
        seen = np.frombuffer(marks, "<i8")
        if validity.count(_ALL_VALID) == len(validity):
            yield pks, packed, seen
        else:
            valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").view(bool)
            yield pks[valid], packed[valid], seen[valid]


def _differing_bits(vectors: NDArray[np.uint8], bits: NDArray[np.uint8]) -> NDArray[np.uint16]:
    import numpy as np

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
    import numpy as np

    if len(wanted) > _FEW:
        return np.isin(marks, np.fromiter(wanted, dtype=np.int64, count=len(wanted)))
    found = np.zeros(len(marks), dtype=np.bool_)
    for mark in wanted:
        found |= marks == mark
    return found


def _best(
    keys: NDArray[np.int64], distances: NDArray[np.uint16], limit: int
) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """The ``limit`` smallest by distance, then by key."""
    import numpy as np

    if len(keys) > limit:
        bound = np.partition(distances, limit - 1)[limit - 1]
        close = distances <= bound
        keys, distances = keys[close], distances[close]
    order = np.lexsort((keys, distances))[:limit]
    return keys[order], distances[order]


def _visibilities(connection: sa.Connection, pks: Sequence[int]) -> dict[int, int]:
    found = connection.exec_driver_sql(_FACTS, (json.dumps(list(pks)),))
    return {pk: visibility(*facts) for pk, *facts in found}


def _packed(query: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The query as vec_quantize_binary would store it."""
    import numpy as np

    return np.packbits(query > 0, bitorder="little")


def _bits(dimensions: int) -> int:
    """vec0 takes whole bytes of bits."""
    return -(-int(dimensions) // 8) * 8


def _padded(vector: bytes) -> bytes:
    lacking = -(len(vector) // _FLOAT_BYTES) % 8
    return vector + bytes(_FLOAT_BYTES * lacking)


def _batches(
    rows: Iterable[tuple[int, bytes]],
) -> Iterator[list[tuple[int, bytes]]]:
    source = iter(rows)
    while batch := list(islice(source, _BATCH)):
        yield batch
