"""The embedding outbox, and the vector index of a snapshot.

A memory enters as ``pending`` in the transaction that stores it. A worker takes what is due,
embeds it outside any transaction, and gives the vectors to the index; so neither a crash nor a
failing provider can lose a memory, and what failed is due again later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from memgraph.model.enums import STORED_STATUSES, EmbeddingState, Scope, Sensitivity
from memgraph.store import tables
from memgraph.store.ports import VectorIndex
from memgraph.store.snapshot import InsertRows, Snapshot, Transaction
from memgraph.store.statements import among, prepared, value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.ports import HeldVectors


# The vector index of a snapshot; how vectors are rounded, and the visibility beside each.


_LARGEST: Final = 127
_STATUS = {status.value: number for number, status in enumerate(STORED_STATUSES)}
_LEVEL = {sensitivity.value: sensitivity.level for sensitivity in Sensitivity}


def index(snapshot: Snapshot, cache: HeldVectors | None = None) -> VectorIndex:
    """Return the vector index on a snapshot or in a transaction.

    Args:
        cache: the vectors of this database that the process keeps; None: a search reads all of
            them, and compares them exactly.
    """
    return snapshot.engine.vectors(snapshot, cache)


@lru_cache(maxsize=4_096)
def visibility(scope: str, scope_id: str | None, status: str, sensitivity: str) -> int:
    """Return scope, status and sensitivity as one integer: 48 bits of scope, 2 of each other.

    Two scope ids may share their 48 bits, so a memory that passes is checked again by its row.
    """
    if scope == Scope.GLOBAL.value:
        key = 0
    else:
        digest = hashlib.blake2b(f"{scope}\0{scope_id}".encode(), digest_size=6).digest()
        key = int.from_bytes(digest, "little")
    return key << 4 | _STATUS[status] << 2 | _LEVEL[sensitivity]


def quantized(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return vectors as integers of -127..127, the largest of each 127; no row may be zero."""
    import numpy as np

    largest = np.abs(vectors).max(axis=1, keepdims=True)
    codes: NDArray[np.int8] = np.rint(vectors * (_LARGEST / largest)).astype(np.int8)
    return codes


def damaged(blobs: Sequence[tuple[Any, Any]]) -> list[int]:
    """Return the indexes of invalid pairs (vector, dimensions)."""
    return [
        place
        for place, (blob, dimensions) in enumerate(blobs)
        if not isinstance(blob, bytes) or len(blob) != dimensions or not _is_scaled(blob)
    ]


def _is_scaled(blob: bytes) -> bool:
    """Return whether the largest absolute value is 127."""
    return (b"\x7f" in blob or b"\x81" in blob) and b"\x80" not in blob


_enqueue = InsertRows("memory_embeddings", ("memory_pk", "state"), values="(?, 'pending')")


def _is_waiting(e: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition on pending rows, as the planner needs it.

    The index of the outbox is partial: without its own condition every batch would read the whole
    table, vectors and all.
    """
    return sa.and_(e.c.state == EmbeddingState.PENDING, e.c.state != EmbeddingState.READY)


# Of a memory without any word in it.
NOTHING_TO_EMBED = "embedding.nothing_to_embed"


@dataclass(frozen=True, slots=True)
class DueEmbedding:
    memory_pk: int
    content: str
    attempts: int


def enqueue(transaction: Transaction, pks: Sequence[int]) -> None:
    _enqueue(transaction, [(pk,) for pk in pks])


def embedded_text(source_role: str | None, content: str) -> str:
    """Return the text to embed: a turn with its speaker is found better."""
    return content if source_role is None else f"{source_role}: {content}"


@prepared
def _due() -> sa.Select[Any]:
    e, m = tables.embeddings.alias("e"), tables.memories.alias("m")
    return (
        sa.select(e.c.memory_pk, m.c.source_role, m.c.content, e.c.attempts)
        .select_from(e.join(m, m.c.pk == e.c.memory_pk))
        .where(_is_waiting(e), e.c.next_attempt_at <= value("now"))
        .order_by(e.c.next_attempt_at, e.c.memory_pk)
        .limit(value("limit"))
    )


def due(snapshot: Snapshot, now_ms: int, limit: int) -> list[DueEmbedding]:
    """Return due embeddings, the oldest first."""
    return [
        DueEmbedding(pk, embedded_text(role, content), attempts)
        for pk, role, content, attempts in _due().rows(snapshot, now=now_ms, limit=limit)
    ]


@prepared
def _still_pending() -> sa.Select[Any]:
    e = tables.embeddings
    pending = e.c.state == EmbeddingState.PENDING
    return sa.select(e.c.memory_pk).where(among(e.c.memory_pk, "pks"), pending)


def still_pending(snapshot: Snapshot, pks: Sequence[int]) -> set[int]:
    """Return the keys that no other worker has finished meanwhile."""
    return set(_still_pending().column(snapshot, pks=pks))


@prepared
def _retry_later(failed: bool) -> sa.Update:
    e = tables.embeddings
    changed = {"attempts": e.c.attempts + 1, "error_code": value("code")}
    if failed:
        changed["state"] = sa.literal(EmbeddingState.FAILED.value)
    else:
        changed["next_attempt_at"] = value("until")
    pending = e.c.state == EmbeddingState.PENDING
    return sa.update(e).where(among(e.c.memory_pk, "pks"), pending).values(changed)


def mark_failed(transaction: Transaction, pks: Sequence[int], error_code: str) -> None:
    """Mark pending embeddings as failed, until they are requested again."""
    _retry_later(True).write(transaction, pks=pks, code=error_code)


def put_off(transaction: Transaction, pks: Sequence[int], until_ms: int, error_code: str) -> None:
    """Retry pending embeddings later."""
    _retry_later(False).write(transaction, pks=pks, until=until_ms, code=error_code)


@prepared
def _reset_failed() -> sa.Update:
    e = tables.embeddings
    was_put_off = (e.c.state == EmbeddingState.PENDING) & (e.c.next_attempt_at > 0)
    anew = {"state": EmbeddingState.PENDING, "next_attempt_at": 0, "attempts": 0}
    failed = sa.update(e).where((e.c.state == EmbeddingState.FAILED) | was_put_off)
    return failed.values(anew | {"error_code": sa.null()})


def reset_failed(transaction: Transaction) -> int:
    """Make failed and put-off embeddings due at once; return how many there are."""
    return _reset_failed().write(transaction)


def forget(transaction: Transaction, pks: Sequence[int]) -> None:
    """Remove the vectors of these for ever: there is nothing left to embed."""
    index(transaction).remove(pks)
    mark_failed(transaction, pks, NOTHING_TO_EMBED)


@prepared
def _foreign() -> sa.Select[Any]:
    e = tables.embeddings
    others = (e.c.model != value("model")) | (e.c.dimensions != value("dimensions"))
    foreign = sa.select(e.c.memory_pk).where(e.c.state == EmbeddingState.READY, others)
    return foreign.order_by(e.c.memory_pk).limit(value("limit"))


def reset_foreign(snapshot: Snapshot, model: str, dimensions: int, limit: int) -> int:
    """Make vectors of another model pending again, ``limit`` at a time; return how many."""
    pks = _foreign().column(snapshot, model=model, dimensions=dimensions, limit=limit)
    return index(snapshot).remove(pks)


@prepared
def _missing() -> sa.Select[Any]:
    m, e = tables.memories, tables.embeddings
    is_queued = sa.exists().where(e.c.memory_pk == m.c.pk)
    return sa.select(m.c.pk).where(~is_queued).order_by(m.c.pk)


def enqueue_missing(transaction: Transaction) -> int:
    """Queue memories that are in no state at all; return how many."""
    pks = _missing().column(transaction)
    enqueue(transaction, pks)
    return len(pks)


@prepared
def _error_counts() -> sa.Select[Any]:
    e = tables.embeddings
    query = sa.select(e.c.error_code, sa.func.count()).group_by(e.c.error_code)
    failed = query.where(e.c.state != EmbeddingState.READY, e.c.error_code.is_not(None))
    return failed.order_by(e.c.error_code)


def error_counts(snapshot: Snapshot) -> dict[str, int]:
    """Return why memories failed or were put off, and how many for each reason."""
    return dict(_error_counts().rows(snapshot))


@prepared
def _oldest_pending() -> sa.Select[Any]:
    e, m = tables.embeddings, tables.memories
    oldest = sa.select(sa.func.min(m.c.created_at)).where(_is_waiting(e))
    return oldest.select_from(m.join(e, e.c.memory_pk == m.c.pk))


def oldest_pending(snapshot: Snapshot) -> int | None:
    """Return when the memory was stored that waits longest, in milliseconds; None: none waits."""
    oldest: int | None = _oldest_pending().scalar(snapshot)
    return oldest


@prepared
def _state_counts() -> sa.Select[Any]:
    e = tables.embeddings
    return sa.select(e.c.state, sa.func.count()).group_by(e.c.state)


def state_counts(snapshot: Snapshot) -> dict[str, int]:
    """Return how many memories are in each state; every state is named."""
    none = dict.fromkeys((state.value for state in EmbeddingState), 0)
    return none | dict(_state_counts().rows(snapshot))


@prepared
def _any_pending() -> sa.Select[Any]:
    return sa.select(tables.embeddings.c.memory_pk).where(_is_waiting(tables.embeddings)).limit(1)


def has_pending(snapshot: Snapshot) -> bool:
    """Return whether any embedding is pending; reads the outbox index only."""
    return _any_pending().row(snapshot) is not None


@prepared
def _pending_count() -> sa.Select[Any]:
    e = tables.embeddings
    return sa.select(sa.func.count()).select_from(e).where(_is_waiting(e))


def pending_count(snapshot: Snapshot) -> int:
    """Return how many wait; reads the outbox index only."""
    return int(_pending_count().scalar(snapshot))
