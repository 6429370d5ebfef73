"""The vector index as vec0 keeps it: the chunks of its shadow tables, whole arrays at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from memgraph.storage.vectors import index_bits, indexed_dimensions

if TYPE_CHECKING:
    from numpy.typing import NDArray

Run = tuple["NDArray[np.int64]", "NDArray[np.uint8]", "NDArray[np.int64]"]
"""Keys, packed vectors (a row of bytes each) and visibilities."""

# Chunks are read in runs, so that a million vectors need a few megabytes at a time.
_CHUNK = 1_024
_CHUNKS_PER_RUN = 64
_ALL_VALID = b"\xff"


def room(connection: sa.Connection) -> int:
    """How many vectors the chunks of the index have room for."""
    driver: Any = connection.connection.driver_connection
    [(chunks,)] = driver.execute("SELECT count(*) FROM memory_vectors_chunks")
    return int(chunks) * _CHUNK


def whole(connection: sa.Connection) -> Run:
    """The whole index in its order."""
    width = index_bits(indexed_dimensions(connection)) // 8
    none = (np.empty(0, np.int64), np.empty((0, width), np.uint8), np.empty(0, np.int64))
    pks, packed, marks = (
        np.concatenate(part) for part in zip(none, *runs(connection), strict=True)
    )
    return pks, packed, marks


# The layout of the chunks is vec0's own (its shadow tables); a test holds it against vec0's KNN.
def runs(connection: sa.Connection) -> Iterator[Run]:
    """The whole index in its order, a run of chunks at a time."""
    width = index_bits(indexed_dimensions(connection)) // 8
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
        valid = _valid(validity)
        if valid is None:
            yield pks, packed, seen
        else:
            yield pks[valid], packed[valid], seen[valid]


def _valid(validity: bytes) -> NDArray[np.bool_] | None:
    """Which slots of some chunks are taken; None: all of them."""
    if validity.count(_ALL_VALID) == len(validity):
        return None
    return np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").view(bool)
