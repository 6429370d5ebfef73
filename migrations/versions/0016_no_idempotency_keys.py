"""Requests have no keys: every write is idempotent by itself"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("idempotency_keys")


def downgrade() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("key_sha256", sa.Text(), nullable=False),
        sa.Column("request_sha256", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("memory_ids", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("key_sha256", name=op.f("pk_idempotency_keys")),
        sa.CheckConstraint("json_valid(memory_ids)", name=op.f("ck_idempotency_keys_memory_ids")),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
