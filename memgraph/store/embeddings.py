"""The embedding outbox: which memories wait for a vector; ``vectors`` holds those that have one.

A memory enters as ``pending`` in the transaction that stores it. A worker takes what is due,
embeds it outside any transaction, and gives the vectors to the index; so neither a crash nor a
failing provider can lose a memory, and what failed is due again later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from memgraph.model.enums import EmbeddingState, MemoryStatus, Scope, Sensitivity
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
_STATUS = {status.value: number for number, status in enumerate(MemoryStatus)}
_LEVEL = {sensitivity.value: sensitivity.level for sensitivity in Sensitivity}


def index(snapshot: Snapshot, held: HeldVectors | None = None) -> VectorIndex:
    """Return the vector index on a snapshot or in a transaction.

    Args:
        held: the vectors of this database that the process keeps; None: a search reads all of
            them, and compares them exactly.
    """
    return snapshot.engine.vectors(snapshot, held)


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
    """Return the places of those (vector, dimensions) that cannot be what was stored."""
    return [
        place
        for place, (blob, dimensions) in enumerate(blobs)
        if not isinstance(blob, bytes) or len(blob) != dimensions or not _is_scaled(blob)
    ]


def _is_scaled(blob: bytes) -> bool:
    """Return whether the largest number is 127 or -127, and none is below that."""
    return (b"\x7f" in blob or b"\x81" in blob) and b"\x80" not in blob


_enqueue = InsertRows("memory_embeddings", ("memory_pk", "state"), values="(?, 'pending')")


def _is_waiting(e: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition on what waits, as the planner needs to see it.

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
    """Return what is embedded: a turn is found better when its vector knows who said it."""
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
    """Return what waits to be embedded and is not put off, oldest first."""
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
    """Return those that no other worker has finished meanwhile."""
    return set(_still_pending().column(snapshot, pks=json.dumps(list(pks))))


def mark_failed(transaction: Transaction, pks: Sequence[int], error_code: str) -> None:
    """Give up on these until they are asked for again; what is finished meanwhile stays so."""
    if pks:
        transaction.execute(
            sa.update(tables.embeddings)
            .where(
                tables.embeddings.c.memory_pk.in_(pks),
                tables.embeddings.c.state == EmbeddingState.PENDING,
            )
            .values(
                state=EmbeddingState.FAILED,
                attempts=tables.embeddings.c.attempts + 1,
                error_code=error_code,
            )
        )


def put_off(transaction: Transaction, pks: Sequence[int], until_ms: int, error_code: str) -> None:
    """Try these again later; what is finished meanwhile stays so."""
    if pks:
        transaction.execute(
            sa.update(tables.embeddings)
            .where(
                tables.embeddings.c.memory_pk.in_(pks),
                tables.embeddings.c.state == EmbeddingState.PENDING,
            )
            .values(
                attempts=tables.embeddings.c.attempts + 1,
                next_attempt_at=until_ms,
                error_code=error_code,
            )
        )


def reset_failed(transaction: Transaction) -> int:
    """Make failed and put-off ones due at once; gives how many there are."""
    changed = transaction.execute(
        sa.update(tables.embeddings)
        .where(
            sa.or_(
                tables.embeddings.c.state == EmbeddingState.FAILED,
                sa.and_(
                    tables.embeddings.c.state == EmbeddingState.PENDING,
                    tables.embeddings.c.next_attempt_at > 0,
                ),
            )
        )
        .values(state=EmbeddingState.PENDING, next_attempt_at=0, attempts=0, error_code=None)
    )
    return int(changed.rowcount)


def forget(transaction: Transaction, pks: Sequence[int]) -> None:
    """Remove the vectors of these for ever: there is nothing left to embed."""
    index(transaction).remove(pks)
    mark_failed(transaction, pks, NOTHING_TO_EMBED)


def reset_foreign(snapshot: Snapshot, model: str, dimensions: int, limit: int) -> int:
    """Make vectors of another model pending again, ``limit`` at a time; gives how many."""
    chosen = (
        sa.select(tables.embeddings.c.memory_pk)
        .where(
            tables.embeddings.c.state == EmbeddingState.READY,
            sa.or_(
                tables.embeddings.c.model != model,
                tables.embeddings.c.dimensions != dimensions,
            ),
        )
        .order_by(tables.embeddings.c.memory_pk)
        .limit(limit)
    )
    return index(snapshot).remove(list(snapshot.execute(chosen).scalars()))


def enqueue_missing(transaction: Transaction) -> int:
    """Queue memories that are in no state at all; gives how many."""
    lost = sa.select(tables.memories.c.pk).where(
        ~sa.exists().where(tables.embeddings.c.memory_pk == tables.memories.c.pk)
    )
    pks = list(transaction.execute(lost.order_by(tables.memories.c.pk)).scalars())
    enqueue(transaction, pks)
    return len(pks)


@prepared
def _error_counts() -> sa.Select[Any]:
    e = tables.embeddings
    found = sa.select(e.c.error_code, sa.func.count()).group_by(e.c.error_code)
    failed = found.where(e.c.state != EmbeddingState.READY, e.c.error_code.is_not(None))
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


def state_counts(snapshot: Snapshot) -> dict[str, int]:
    """Return how many memories are in each state; every state is named."""
    found = dict.fromkeys((state.value for state in EmbeddingState), 0)
    statement = sa.select(tables.embeddings.c.state, sa.func.count()).group_by(
        tables.embeddings.c.state
    )
    found.update((state.value, count) for state, count in snapshot.execute(statement))
    return found


@prepared
def _any_pending() -> sa.Select[Any]:
    return sa.select(tables.embeddings.c.memory_pk).where(_is_waiting(tables.embeddings)).limit(1)


def has_pending(snapshot: Snapshot) -> bool:
    """Return whether any waits; reads the outbox index only."""
    return _any_pending().row(snapshot) is not None


@prepared
def _pending_count() -> sa.Select[Any]:
    e = tables.embeddings
    return sa.select(sa.func.count()).select_from(e).where(_is_waiting(e))


def pending_count(snapshot: Snapshot) -> int:
    """Return how many wait; reads the outbox index only."""
    return int(_pending_count().scalar(snapshot))
