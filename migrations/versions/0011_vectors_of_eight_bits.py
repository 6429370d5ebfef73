"""Keep vectors with eight bits a number and their visibility beside them, without a vec0 table"""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

BATCH = 5_000
OUTBOX = "ix_memory_embeddings_outbox"
LEVELS = {
    "status": ("active", "superseded", "retracted"),
    "sensitivity": ("Public", "Internal", "Confidential", "Restricted"),
}
FACTS = """
    SELECT e.memory_pk, e.vector, e.model, e.dimensions, e.state, e.attempts, e.next_attempt_at,
        e.error_code, m.scope, m.scope_id, m.status, m.sensitivity
    FROM embeddings_before e JOIN memories m ON m.pk = e.memory_pk
    WHERE e.memory_pk > ? ORDER BY e.memory_pk LIMIT ?
"""
INSERT = """
    INSERT INTO memory_embeddings (memory_pk, vector, model, dimensions, state, attempts,
        next_attempt_at, error_code, visibility) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def upgrade() -> None:
    _replace(sa.Column("visibility", sa.Integer(), server_default="-1", nullable=False))
    op.create_table(
        "memory_vector_changes",
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("first_pk", sa.Integer(), nullable=False),
        sa.Column("last_pk", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_memory_vector_changes")),
    )
    connection = op.get_bind().connection.driver_connection
    after = -1
    while rows := connection.execute(FACTS, (after, BATCH)).fetchall():
        connection.executemany(
            INSERT,
            [
                (pk, eight_bits(vector), *rest, visibility(*facts))
                for pk, vector, *rest, facts in ((*row[:8], row[8:]) for row in rows)
            ],
        )
        after = rows[-1][0]
    op.drop_table("embeddings_before")
    op.execute("DROP TABLE IF EXISTS memory_vectors")
    op.execute(
        "DELETE FROM memory_metadata WHERE key IN ('vector_generation', 'vector_index_version')"
    )
    op.execute(
        "INSERT INTO memory_vector_changes (first_pk, last_pk) VALUES (0, 9223372036854775807)"
    )


def eight_bits(vector: bytes | None) -> bytes | None:
    """Return a float32 vector as integers of -127..127, the largest of them 127.

    Also called for the vectors of an export that an earlier schema made. A vector that is damaged
    stays as it is.
    """
    import numpy as np

    if vector is None or len(vector) % 4:
        return vector
    numbers = np.frombuffer(vector, "<f4")
    largest = np.abs(numbers).max(initial=0.0)
    if not np.isfinite(largest) or not largest:
        return vector
    return np.rint(numbers * (127.0 / float(largest))).astype(np.int8).tobytes()


def visibility(scope: str, scope_id: str | None, status: str, sensitivity: str) -> int:
    """Return scope, status and sensitivity as one integer, as the vec0 table held it."""
    key = 0
    if scope != "global":
        digest = hashlib.blake2b(f"{scope}\0{scope_id}".encode(), digest_size=6).digest()
        key = int.from_bytes(digest, "little")
    levels = LEVELS["status"].index(status) << 2 | LEVELS["sensitivity"].index(sensitivity)
    return key << 4 | levels


def _replace(*columns: sa.Column[Any]) -> None:
    """Make an empty ``memory_embeddings``; the rows are in ``embeddings_before``."""
    op.drop_index(OUTBOX, table_name="memory_embeddings")
    op.rename_table("memory_embeddings", "embeddings_before")
    op.create_table(
        "memory_embeddings",
        sa.Column("memory_pk", sa.Integer(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("dimensions", sa.Integer(), nullable=True),
        sa.Column(
            "state",
            sa.Enum(
                "pending",
                "ready",
                "failed",
                name="state",
                native_enum=False,
                create_constraint=True,
            ),
            nullable=False,
        ),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_attempt_at", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error_code", sa.Text(), nullable=True),
        *columns,
        sa.CheckConstraint(
            "(state = 'ready') = (vector IS NOT NULL)",
            name=op.f("ck_memory_embeddings_ready_has_vector"),
        ),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_memory_embeddings_attempts")),
        sa.ForeignKeyConstraint(
            ["memory_pk"], ["memories.pk"], name=op.f("fk_memory_embeddings_memory_pk")
        ),
        sa.PrimaryKeyConstraint("memory_pk", name=op.f("pk_memory_embeddings")),
    )
    op.create_index(
        OUTBOX,
        "memory_embeddings",
        ["state", "next_attempt_at"],
        unique=False,
        sqlite_where=sa.text("state <> 'ready'"),
    )


def downgrade() -> None:
    """Every memory waits to be embedded again: what eight bits left out is gone."""
    _replace()
    op.execute(
        "INSERT INTO memory_embeddings (memory_pk, state)"
        " SELECT memory_pk, 'pending' FROM embeddings_before"
    )
    op.drop_table("embeddings_before")
    op.drop_table("memory_vector_changes")
    found = op.get_bind().exec_driver_sql(
        "SELECT value FROM memory_metadata WHERE key = 'embedding_dimensions'"
    )
    for (dimensions,) in found.all():
        op.execute(
            "CREATE VIRTUAL TABLE memory_vectors USING vec0(memory_pk INTEGER PRIMARY KEY,"
            f" embedding bit[{-(-int(dimensions) // 8) * 8}], visibility INTEGER)"
        )
