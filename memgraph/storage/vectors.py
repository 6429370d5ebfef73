"""The vector index: a vec0 table with one bit per dimension, derived and rebuildable.

A bit is the sign of a number; the canonical float32 vectors in ``memory_embeddings`` rescore the
few that the bits find. Beside each vector stands its ``visibility``, one integer made of scope,
status and sensitivity, so that what a reader may not see is left out before anything is ranked.

This module writes the index; ``vector_search`` reads it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import sqlalchemy as sa

from memgraph.model.enums import MemoryStatus, Scope, Sensitivity
from memgraph.storage.statements import Insert, driver

_FLOAT_BYTES = 4
_BATCH = 5_000
_STATUS = {status.value: number for number, status in enumerate(MemoryStatus)}
_LEVEL = {sensitivity.value: sensitivity.level for sensitivity in Sensitivity}

_insert = Insert(
    "memory_vectors",
    ("memory_pk", "embedding", "visibility"),
    values="(?, vec_quantize_binary(?), ?)",
)
# The table is vec0's own: its keys.
_INDEXED = (
    "SELECT r.rowid FROM json_each(?) f CROSS JOIN memory_vectors_rowids r ON r.rowid = f.value"
)
_PLACES = (
    "SELECT r.chunk_id, r.chunk_offset FROM json_each(?) f"
    " CROSS JOIN memory_vectors_rowids r ON r.rowid = f.value"
)
_CHUNK = "SELECT vectors FROM memory_vectors_vector_chunks00 WHERE rowid = ?"
_PUT_CHUNK = "UPDATE memory_vectors_vector_chunks00 SET vectors = ? WHERE rowid = ?"
_FACTS = (
    "SELECT pk, scope, scope_id, status, sensitivity FROM memories"
    " WHERE pk IN (SELECT value FROM json_each(?))"
)


def create_index(connection: Any, dimensions: int) -> None:
    """Make the empty index for vectors of ``dimensions`` numbers; takes a driver connection."""
    connection.execute(
        f"CREATE VIRTUAL TABLE memory_vectors USING vec0("
        f"memory_pk INTEGER PRIMARY KEY, embedding bit[{index_bits(dimensions)}],"
        " visibility INTEGER)"
    )
    connection.execute(
        "INSERT OR REPLACE INTO memory_metadata (key, value) VALUES ('embedding_dimensions', ?)",
        (str(dimensions),),
    )


def recreate_index(connection: sa.Connection, dimensions: int) -> None:
    """Drop the index and make an empty one, for vectors of other dimensions."""
    connection.exec_driver_sql("DROP TABLE memory_vectors")
    _tell_change(connection)
    create_index(connection.connection.driver_connection, dimensions)


def add(connection: sa.Connection, rows: Sequence[tuple[int, bytes]]) -> None:
    """Index vectors; one that is there already is replaced.

    Args:
        rows: the memory's ``pk`` and its canonical vector, little-endian float32. The memories
            are stored already; all vectors have the dimensions of the index.
    """
    for batch in _batches(rows):
        visibilities = _visibilities(connection, [pk for pk, _ in batch])
        remove(connection, _indexed(connection, [pk for pk, _ in batch]))
        add_new(connection, [(pk, vector, visibilities[pk]) for pk, vector in batch])


def add_new(connection: sa.Connection, rows: Sequence[tuple[int, bytes, int]]) -> None:
    """Index vectors of memories that are not in the index yet, each with its visibility."""
    if rows:
        _tell_change(connection)
    _insert(connection, [(pk, _padded(vector), mark) for pk, vector, mark in rows])


def _indexed(connection: sa.Connection, pks: Sequence[int]) -> list[int]:
    """Those that are in the index: to delete one that is not takes vec0 6 µs."""
    found = driver(connection).execute(_INDEXED, (json.dumps(list(pks)),))
    return [pk for (pk,) in found]


def remove(connection: sa.Connection, pks: Sequence[int]) -> None:
    """Take memories out of the index; those that are not in it are passed over."""
    if pks:
        _tell_change(connection)
        connection.exec_driver_sql(
            "DELETE FROM memory_vectors WHERE memory_pk = ?", [(pk,) for pk in pks]
        )


def wipe(connection: sa.Connection, pks: Sequence[int]) -> None:
    """Take memories out of the index, and their bits with them: vec0 leaves those of a removed
    row where they are.
    """
    execute = driver(connection).execute
    places: dict[int, list[int]] = {}
    for chunk, offset in execute(_PLACES, (json.dumps(list(pks)),)).fetchall():
        places.setdefault(chunk, []).append(offset)
    remove(connection, _indexed(connection, pks))
    width = index_bits(indexed_dimensions(connection)) // 8
    for chunk, offsets in places.items():
        # One without any row may be gone.
        for (packed,) in execute(_CHUNK, (chunk,)).fetchall():
            left = bytearray(packed)
            for offset in offsets:
                left[offset * width : (offset + 1) * width] = bytes(width)
            execute(_PUT_CHUNK, (bytes(left), chunk))


def refresh(connection: sa.Connection, memory_ids: Sequence[str]) -> None:
    """Bring the index up to date after a change of status, sensitivity or scope."""
    found = connection.exec_driver_sql(
        "SELECT pk, scope, scope_id, status, sensitivity FROM memories"
        " WHERE memory_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(memory_ids)),),
    )
    place(connection, [(pk, *facts) for pk, *facts in found])


def place(connection: sa.Connection, rows: Sequence[tuple[int, str, str | None, str, str]]) -> None:
    """Bring the index up to date with what memories are: rows of pk, scope, scope_id, status,
    sensitivity.
    """
    if rows:
        _tell_change(connection)
        driver(connection).executemany(
            "UPDATE memory_vectors SET visibility = ? WHERE memory_pk = ?",
            [(visibility(*row[1:]), row[0]) for row in rows],
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
        add_new(connection, [(pk, vector, visibilities[pk]) for pk, vector in batch])
        done += len(batch)
    return done


def indexed_dimensions(connection: sa.Connection) -> int:
    """How many numbers the vectors of the index have."""
    driver: Any = connection.connection.driver_connection
    [(value,)] = driver.execute(
        "SELECT value FROM memory_metadata WHERE key = 'embedding_dimensions'"
    )
    return int(value)


def _tell_change(connection: sa.Connection) -> None:
    """What a process keeps of the index is no longer it."""
    driver(connection).execute(
        "INSERT INTO memory_metadata (key, value) VALUES ('vector_index_version', '1')"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(value + 1 AS TEXT)"
    )


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


def _visibilities(connection: sa.Connection, pks: Sequence[int]) -> dict[int, int]:
    found = connection.exec_driver_sql(_FACTS, (json.dumps(list(pks)),))
    return {pk: visibility(*facts) for pk, *facts in found}


def index_bits(dimensions: int) -> int:
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
