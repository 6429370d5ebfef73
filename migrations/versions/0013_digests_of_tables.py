"""Digests of tables, and the state that an entry of the journal seals"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# A downgrade leaves the states here, each with the seal that covers it.
KEPT = "audit_log_states"


def upgrade() -> None:
    op.add_column("audit_log", sa.Column("state", sa.Text(), nullable=True))
    op.create_table(
        "table_digests",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_table_digests")),
    )
    connection = op.get_bind()
    kept = connection.scalar(
        sa.text("SELECT value FROM memory_metadata WHERE key = :key"), {"key": KEPT}
    )
    if kept is not None:
        connection.execute(
            sa.text("UPDATE audit_log SET state = :state WHERE seq = :seq AND hash = :hash"),
            [{"seq": seq, "hash": seal, "state": state} for seq, seal, state in json.loads(kept)],
        )
        connection.execute(sa.text("DELETE FROM memory_metadata WHERE key = :key"), {"key": KEPT})


def downgrade() -> None:
    connection = op.get_bind()
    states = connection.execute(
        sa.text("SELECT seq, hash, state FROM audit_log WHERE state IS NOT NULL ORDER BY seq")
    )
    if kept := [tuple(row) for row in states]:
        connection.execute(
            sa.text("INSERT INTO memory_metadata (key, value) VALUES (:key, :value)"),
            {"key": KEPT, "value": json.dumps(kept)},
        )
    op.drop_table("table_digests")
    op.drop_column("audit_log", "state")
