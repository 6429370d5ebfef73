"""The embedding outbox and the canonical vectors.

A memory enters as ``pending`` in the transaction that stores it. A worker takes what is due,
embeds it outside any transaction, and writes the vectors back; so neither a crash nor a failing
provider can lose a memory, and what failed is due again later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from memgraph.model.enums import EmbeddingState
from memgraph.storage import metadata, tables
from memgraph.storage.statements import Insert, driver

_enqueue = Insert("memory_embeddings", ("memory_pk", "state"), values="(?, 'pending')")
_add_ready = Insert(
    "memory_embeddings",
    ("memory_pk", "vector", "model", "dimensions", "state"),
    values="(?, ?, ?, ?, 'ready')",
)
_STILL_PENDING = (
    "SELECT memory_pk FROM memory_embeddings"
    " WHERE memory_pk IN (SELECT value FROM json_each(?)) AND state = 'pending'"
)
_MARK_READY = (
    "UPDATE memory_embeddings SET vector = ?, model = ?, dimensions = ?, state = 'ready',"
    " error_code = NULL WHERE memory_pk = ?"
)
# The index of the outbox is partial: the planner needs to see its condition, or every batch reads
# the whole table, vectors and all.
_DUE = (
    "SELECT e.memory_pk, m.source_role, m.content, e.attempts"
    " FROM memory_embeddings e JOIN memories m ON m.pk = e.memory_pk"
    " WHERE e.state = 'pending' AND e.state <> 'ready' AND e.next_attempt_at <= ?"
    " ORDER BY e.next_attempt_at, e.memory_pk LIMIT ?"
)


# Counts how often a stored vector was taken back; while it stays, a key's vector stays the same.
GENERATION_KEY = "vector_generation"
# Of a memory without any word in it.
NOTHING_TO_EMBED = "embedding.nothing_to_embed"


@dataclass(frozen=True, slots=True)
class DueEmbedding:
    memory_pk: int
    content: str
    attempts: int


def enqueue(connection: sa.Connection, pks: Sequence[int]) -> None:
    _enqueue(connection, [(pk,) for pk in pks])


def embedded_text(source_role: str | None, content: str) -> str:
    """What is embedded of a memory: a turn is found better when its vector knows who said it."""
    return content if source_role is None else f"{source_role}: {content}"


def add_ready(
    connection: sa.Connection, vectors: Sequence[tuple[int, bytes]], model: str, dimensions: int
) -> None:
    """New memories with their canonical vectors, which never waited."""
    _add_ready(connection, [(pk, vector, model, dimensions) for pk, vector in vectors])


def due(connection: sa.Connection, now_ms: int, limit: int) -> list[DueEmbedding]:
    """What waits to be embedded and is not put off, oldest first."""
    found = driver(connection).execute(_DUE, (now_ms, limit))
    return [
        DueEmbedding(pk, embedded_text(role, content), attempts)
        for pk, role, content, attempts in found
    ]


def still_pending(connection: sa.Connection, pks: Sequence[int]) -> set[int]:
    """Those that no other worker has finished meanwhile."""
    return set(connection.exec_driver_sql(_STILL_PENDING, (json.dumps(list(pks)),)).scalars())


def mark_ready(
    connection: sa.Connection, vectors: Mapping[int, bytes], model: str, dimensions: int
) -> None:
    """Store canonical vectors: little-endian float32, unit norm."""
    if vectors:
        connection.exec_driver_sql(
            _MARK_READY, [(vector, model, dimensions, pk) for pk, vector in vectors.items()]
        )


def mark_failed(connection: sa.Connection, pks: Sequence[int], error_code: str) -> None:
    """Give up on these until they are asked for again; what is finished meanwhile stays so."""
    if pks:
        connection.execute(
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


def put_off(connection: sa.Connection, pks: Sequence[int], until_ms: int, error_code: str) -> None:
    """Try these again later; what is finished meanwhile stays so."""
    if pks:
        connection.execute(
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


def reset_failed(connection: sa.Connection) -> int:
    """Failed and put-off ones are due at once; gives how many there are."""
    changed = connection.execute(
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


def forget(connection: sa.Connection, pks: Sequence[int]) -> None:
    """Remove the vectors of these for ever: there is nothing left to embed."""
    reset(connection, pks)
    mark_failed(connection, pks, NOTHING_TO_EMBED)


def reset_foreign(connection: sa.Connection, model: str, dimensions: int, limit: int) -> int:
    """Vectors of another model become pending again, ``limit`` at a time; gives how many."""
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
    return _reset(connection, tables.embeddings.c.memory_pk.in_(chosen))


def reset(connection: sa.Connection, pks: Sequence[int]) -> int:
    """These become pending again; gives how many there are."""
    return _reset(connection, tables.embeddings.c.memory_pk.in_(pks)) if pks else 0


def enqueue_missing(connection: sa.Connection) -> int:
    """Queue memories that are in no state at all; gives how many."""
    lost = sa.select(tables.memories.c.pk).where(
        ~sa.exists().where(tables.embeddings.c.memory_pk == tables.memories.c.pk)
    )
    pks = list(connection.execute(lost.order_by(tables.memories.c.pk)).scalars())
    enqueue(connection, pks)
    return len(pks)


def error_counts(connection: sa.Connection) -> dict[str, int]:
    """Why memories failed or were put off, and how many for each reason."""
    # As text: whoever asks how a store does need not wait until all tables are made.
    statement = (
        "SELECT error_code, count(*) FROM memory_embeddings"
        " WHERE state <> 'ready' AND error_code IS NOT NULL GROUP BY error_code ORDER BY error_code"
    )
    return {str(code): count for code, count in connection.exec_driver_sql(statement)}


def oldest_pending(connection: sa.Connection) -> int | None:
    """When the memory was stored that waits longest, in milliseconds; None: none waits."""
    statement = (
        sa.select(sa.func.min(tables.memories.c.created_at))
        .join(tables.embeddings, tables.embeddings.c.memory_pk == tables.memories.c.pk)
        .where(
            tables.embeddings.c.state == sa.literal_column("'pending'"),
            # The index of the outbox is partial: the planner needs to see its condition.
            tables.embeddings.c.state != sa.literal_column("'ready'"),
        )
    )
    found = connection.execute(statement).scalar()
    return None if found is None else int(found)


def state_counts(connection: sa.Connection) -> dict[str, int]:
    """How many memories are in each state; every state is named."""
    found = dict.fromkeys((state.value for state in EmbeddingState), 0)
    statement = sa.select(tables.embeddings.c.state, sa.func.count()).group_by(
        tables.embeddings.c.state
    )
    found.update((state.value, count) for state, count in connection.execute(statement))
    return found


def has_pending(connection: sa.Connection) -> bool:
    """Cheap: reads the outbox index only."""
    # The index is partial: the planner needs to see its condition.
    statement = (
        "SELECT 1 FROM memory_embeddings WHERE state = 'pending' AND state <> 'ready' LIMIT 1"
    )
    return connection.exec_driver_sql(statement).first() is not None


def pending_count(connection: sa.Connection) -> int:
    """How many wait; reads the outbox index only."""
    statement = (
        "SELECT count(*) FROM memory_embeddings WHERE state = 'pending' AND state <> 'ready'"
    )
    return int(connection.exec_driver_sql(statement).scalar_one())


def _reset(connection: sa.Connection, which: sa.ColumnElement[bool]) -> int:
    # What a process keeps of the vectors is no longer theirs.
    _next_generation(connection)
    changed = connection.execute(
        sa.update(tables.embeddings)
        .where(which)
        .values(
            state=EmbeddingState.PENDING,
            vector=None,
            model=None,
            dimensions=None,
            next_attempt_at=0,
            attempts=0,
            error_code=None,
        )
    )
    return int(changed.rowcount)


def _next_generation(connection: sa.Connection) -> None:
    generation = int(metadata.get(connection, GENERATION_KEY) or 0) + 1
    metadata.put(connection, GENERATION_KEY, str(generation))
