"""The embedding outbox, and the vector index of a snapshot.

A memory enters the outbox as ``pending`` in the transaction that stores it. A worker takes the
memories that are due, embeds them outside any transaction, and adds the vectors to the index.
Neither a crash nor a failing provider loses a memory; failures are retried later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from memgraph.model.enums import STORED_STATUSES, EmbeddingState, Scope, Sensitivity
from memgraph.store import tables
from memgraph.store.snapshot import InsertRows, Snapshot, Transaction
from memgraph.store.statements import among, bound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.vector_cache import HeldVectors
    from memgraph.store.vector_index import VectorIndex


# The vector index of a snapshot, the quantization of vectors, and their visibility codes.


_LARGEST: Final = 127
_STATUS = {status.value: number for number, status in enumerate(STORED_STATUSES)}
_LEVEL = {sensitivity.value: sensitivity.level for sensitivity in Sensitivity}


def index(snapshot: Snapshot, cache: HeldVectors | None = None) -> VectorIndex:
    """Return the vector index on a snapshot or in a transaction.

    Args:
        cache: this database's vectors in the process's memory; None: a search reads all vectors,
            and compares them exactly.
    """
    return snapshot.engine.vectors(snapshot, cache)


@lru_cache(maxsize=4_096)
def visibility(scope: str, scope_id: str | None, status: str, sensitivity: str) -> int:
    """Encode scope, status and sensitivity as one integer: 48 bits of scope, 2 bits for each other.

    Two scope ids may share their 48 bits, so the row of a match must be checked again.
    """
    if scope == Scope.GLOBAL.value:
        key = 0
    else:
        digest = hashlib.blake2b(f"{scope}\0{scope_id}".encode(), digest_size=6).digest()
        key = int.from_bytes(digest, "little")
    return key << 4 | _STATUS[status] << 2 | _LEVEL[sensitivity]


def quantized(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Scale vectors to integers from -127 to 127; no row may be zero.

    The largest absolute value of each row becomes 127.
    """
    import numpy as np

    largest = np.abs(vectors).max(axis=1, keepdims=True)
    codes: NDArray[np.int8] = np.rint(vectors * (_LARGEST / largest)).astype(np.int8)
    return codes


def unit_vectors(codes: NDArray[np.int8]) -> NDArray[np.float32]:
    """Scale rows of integers to unit vectors; rows of zeros stay zero."""
    import numpy as np

    numbers = codes.astype(np.float32)
    norms = np.sqrt(np.vecdot(numbers, numbers))
    vectors: NDArray[np.float32] = numbers / np.maximum(norms, 1.0)[:, None]
    return vectors


def damaged(blobs: Sequence[tuple[Any, Any]]) -> list[int]:
    """Return the positions of damaged vectors among pairs of (vector, dimensions)."""
    return [
        place
        for place, (blob, dimensions) in enumerate(blobs)
        if not isinstance(blob, bytes) or len(blob) != dimensions or not _is_scaled(blob)
    ]


def _is_scaled(blob: bytes) -> bool:
    """Return True if the largest absolute value in the bytes is 127."""
    return (b"\x7f" in blob or b"\x81" in blob) and b"\x80" not in blob


_enqueue = InsertRows("memory_embeddings", ("memory_pk", "state"), values="(?, 'pending')")


def _is_waiting(e: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition on pending rows, in the form that the query planner needs.

    The index of the outbox is partial. Without repeating its condition every batch would read the
    whole table, including vectors.
    """
    return sa.and_(e.c.state == EmbeddingState.PENDING, e.c.state != EmbeddingState.READY)


# The error code for a memory that contains no words.
NOTHING_TO_EMBED = "embedding.nothing_to_embed"
ERASED: Final = "embedding.erased"
"""Marks a memory without text; it is in no count."""


@dataclass(frozen=True, slots=True)
class DueEmbedding:
    memory_pk: int
    content: str
    attempts: int


def enqueue(transaction: Transaction, pks: Sequence[int]) -> None:
    _enqueue(transaction, [(pk,) for pk in pks])


def embedded_text(source_role: str | None, content: str, attributes: Mapping[str, Any]) -> str:
    """Return the text to embed.

    Turns include their speaker, and lines of a file the headings above them, which improves recall.
    """
    context = attributes.get("section") if source_role is None else source_role
    return f"{context}: {content}" if isinstance(context, str) and context else content


def due(snapshot: Snapshot, now_ms: int, limit: int) -> list[DueEmbedding]:
    """Return embeddings that are due at ``now_ms``, longest overdue first."""
    e, m = tables.embeddings.alias("e"), tables.memories.alias("m")
    query = (
        sa.select(e.c.memory_pk, m.c.source_role, m.c.content, m.c.attributes, e.c.attempts)
        .select_from(e.join(m, m.c.pk == e.c.memory_pk))
        .where(_is_waiting(e), e.c.next_attempt_at <= bound(now_ms))
        .order_by(e.c.next_attempt_at, e.c.memory_pk)
        .limit(bound(limit))
    )
    return [
        DueEmbedding(
            pk,
            embedded_text(role, content, {} if attributes == "{}" else json.loads(attributes)),
            attempts,
        )
        for pk, role, content, attributes, attempts in snapshot.rows(query)
    ]


def still_pending(snapshot: Snapshot, pks: Sequence[int]) -> set[int]:
    """Return the keys that are still pending, not finished by another worker."""
    e = tables.embeddings
    pending = e.c.state == EmbeddingState.PENDING
    query = sa.select(e.c.memory_pk).where(among(e.c.memory_pk, pks), pending)
    return set(snapshot.column(query))


def _retry_later(
    transaction: Transaction, pks: Sequence[int], error_code: str, **changed: Any
) -> None:
    e = tables.embeddings
    changed |= {"attempts": e.c.attempts + 1, "error_code": bound(error_code)}
    pending = e.c.state == EmbeddingState.PENDING
    transaction.write(sa.update(e).where(among(e.c.memory_pk, pks), pending).values(changed))


def mark_failed(transaction: Transaction, pks: Sequence[int], error_code: str) -> None:
    """Mark pending embeddings as failed; they stay so until ``reset_failed``."""
    _retry_later(transaction, pks, error_code, state=EmbeddingState.FAILED)


def put_off(transaction: Transaction, pks: Sequence[int], until_ms: int, error_code: str) -> None:
    """Postpone pending embeddings until a time in milliseconds."""
    _retry_later(transaction, pks, error_code, next_attempt_at=bound(until_ms))


def reset_failed(transaction: Transaction) -> int:
    """Make failed and postponed embeddings due at once; return their number."""
    e = tables.embeddings
    was_put_off = (e.c.state == EmbeddingState.PENDING) & (e.c.next_attempt_at > 0)
    anew = {"state": EmbeddingState.PENDING, "next_attempt_at": 0, "attempts": 0}
    has_failed = (e.c.state == EmbeddingState.FAILED) & _is_counted(e)
    failed = sa.update(e).where(has_failed | was_put_off)
    return transaction.write(failed.values(anew | {"error_code": sa.null()}))


def forget(transaction: Transaction, pks: Sequence[int]) -> None:
    """Remove the vectors of erased memories, and do not count these any more."""
    index(transaction).remove(pks)
    mark_failed(transaction, pks, ERASED)


def reset_foreign(snapshot: Snapshot, model: str, dimensions: int, limit: int) -> int:
    """Make up to ``limit`` vectors of other models pending again; return their number."""
    e = tables.embeddings
    others = (e.c.model != bound(model)) | (e.c.dimensions != bound(dimensions))
    foreign = sa.select(e.c.memory_pk).where(e.c.state == EmbeddingState.READY, others)
    pks = snapshot.column(foreign.order_by(e.c.memory_pk).limit(bound(limit)))
    return index(snapshot).remove(pks)


def enqueue_missing(transaction: Transaction) -> int:
    """Queue memories that are missing in the outbox; return their number."""
    m, e = tables.memories, tables.embeddings
    is_queued = sa.exists().where(e.c.memory_pk == m.c.pk)
    pks = transaction.column(sa.select(m.c.pk).where(~is_queued).order_by(m.c.pk))
    enqueue(transaction, pks)
    return len(pks)


def error_counts(snapshot: Snapshot) -> dict[str, int]:
    """Return the number of failed and postponed memories by error code."""
    e = tables.embeddings
    query = sa.select(e.c.error_code, sa.func.count()).group_by(e.c.error_code)
    is_failed = (e.c.state != EmbeddingState.READY, e.c.error_code.is_not(None), _is_counted(e))
    failed = query.where(*is_failed)
    return dict(snapshot.rows(failed.order_by(e.c.error_code)))


def oldest_pending(snapshot: Snapshot) -> int | None:
    """Return when the oldest pending memory was stored, in milliseconds; None if none waits."""
    e, m = tables.embeddings, tables.memories
    query = sa.select(sa.func.min(m.c.created_at)).where(_is_waiting(e))
    oldest: int | None = snapshot.scalar(query.select_from(m.join(e, e.c.memory_pk == m.c.pk)))
    return oldest


def state_counts(snapshot: Snapshot) -> dict[str, int]:
    """Return the number of memories with a text by state, with 0 for states without any."""
    none = dict.fromkeys((state.value for state in EmbeddingState), 0)
    e = tables.embeddings
    query = sa.select(e.c.state, sa.func.count()).where(_is_counted(e)).group_by(e.c.state)
    return none | dict(snapshot.rows(query))


def _is_counted(e: sa.FromClause) -> sa.ColumnElement[bool]:
    return e.c.error_code.is_distinct_from(ERASED)


def has_pending(snapshot: Snapshot) -> bool:
    """Return True if any embedding is pending; reads only the index of the outbox."""
    query = sa.select(tables.embeddings.c.memory_pk).where(_is_waiting(tables.embeddings)).limit(1)
    return snapshot.row(query) is not None


def pending_count(snapshot: Snapshot) -> int:
    """Return the number of pending embeddings; reads only the index of the outbox."""
    e = tables.embeddings
    query = sa.select(sa.func.count()).select_from(e).where(_is_waiting(e))
    return int(snapshot.scalar(query))
