"""The audit of embeddings: canonical vectors, and the index that is made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import sqlalchemy as sa

from memgraph.audit.findings import Code, VerifyReport
from memgraph.storage import integrity, vectors

_BATCH = 2_000
_NORM_TOLERANCE = 1e-3


def check_vectors(connection: sa.Connection, report: VerifyReport) -> None:
    """Ready vectors are whole, finite and of norm 1; the index holds them and nothing else."""
    import numpy as np

    from memgraph.storage import vector_search

    keys, packed, visibilities = vector_search.entries(connection)
    expected = np.zeros(len(keys), dtype=bool)
    number = 0
    source: Iterator[Any] = integrity.rows(connection, integrity.VECTORS)
    while batch := list(islice(source, _BATCH)):
        number += len(batch)
        bad = set(damaged([(row[2], row[3]) for row in batch]))
        at = np.searchsorted(keys, np.array([row[0] for row in batch], dtype=np.int64))
        bits = _bits([row[2] for place, row in enumerate(batch) if place not in bad])
        for place, (row, position) in enumerate(zip(batch, at.tolist(), strict=True)):
            pk, memory_id, _, dimensions, *facts = row
            indexed = position < len(keys) and keys[position] == pk
            if indexed:
                expected[position] = True
            said = None if place in bad else next(bits)
            if said is None:
                message = "the vector has a wrong length, norm or number"
                report.add(Code.VECTOR_DAMAGED, message, memory_id, dimensions=dimensions)
            elif not indexed:
                report.add(Code.VECTOR_INDEX_MISSING, "the vector is not in the index", memory_id)
            elif said != packed[position].tobytes():
                message = "the index says something else than the vector"
                report.add(Code.VECTOR_INDEX_WRONG, message, memory_id)
            elif vectors.visibility(*facts) != visibilities[position]:
                message = "the index has an outdated scope, status or sensitivity"
                report.add(Code.VECTOR_INDEX_STRAY, message, memory_id)
    report.checked["vectors"] = number
    for pk in keys[~expected].tolist():
        message = "the vector index holds an entry without a vector"
        report.add(Code.VECTOR_INDEX_STRAY, message, pk)
    for (memory_id,) in integrity.rows(connection, integrity.WITHOUT_VECTOR):
        report.add(Code.VECTOR_MISSING, "the memory is not queued for embedding", memory_id)


def damaged(blobs: Sequence[tuple[Any, Any]]) -> list[int]:
    """Places of those (vector, dimensions) that cannot be what was stored: length, norm, NaN."""
    import numpy as np

    bad = []
    by_length: dict[int, list[int]] = {}
    for place, (blob, dimensions) in enumerate(blobs):
        if not isinstance(blob, bytes) or not blob or len(blob) != 4 * (dimensions or 0):
            bad.append(place)
        else:
            by_length.setdefault(len(blob), []).append(place)
    for places in by_length.values():
        joined = b"".join(blobs[place][0] for place in places)
        table = np.frombuffer(joined, "<f4").reshape(len(places), -1).astype(np.float64)
        # A damaged float may be as large as 1e38: its square is finite in float64.
        with np.errstate(invalid="ignore"):
            norms = np.sqrt((table * table).sum(axis=1))
        sound = np.abs(norms - 1.0) <= _NORM_TOLERANCE  # false for NaN
        bad.extend(place for place, good in zip(places, sound, strict=True) if not good)
    return sorted(bad)


def _bits(blobs: Sequence[bytes]) -> Iterator[bytes]:
    """What the index should hold for each of these vectors: the signs, eight to a byte."""
    import numpy as np

    if len({len(blob) for blob in blobs}) > 1:
        # Of two models, while one takes the other's place.
        for blob in blobs:
            yield from _bits([blob])
    elif blobs:
        table = np.frombuffer(b"".join(blobs), "<f4").reshape(len(blobs), -1)
        for row in np.packbits(table > 0, axis=1, bitorder="little"):
            yield row.tobytes()
