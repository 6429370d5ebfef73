"""What was handed out is read from the receipts"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("echo_pending")
    op.drop_table("echo_lines")


def downgrade() -> None:
    op.create_table(
        "echo_lines",
        sa.Column("line_hash", sa.Integer(), nullable=False),
        sa.Column("first_at", sa.Integer(), nullable=False),
        sa.Column("last_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("line_hash", name=op.f("pk_echo_lines")),
    )
    op.create_table(
        "echo_pending",
        sa.Column("pending_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("recall_id", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(recall_id IS NULL) <> (text IS NULL)", name=op.f("ck_echo_pending_one_kind")
        ),
        sa.PrimaryKeyConstraint("pending_id", name=op.f("pk_echo_pending")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_echo_pending_texts",
        "echo_pending",
        ["pending_id"],
        sqlite_where=sa.text("text IS NOT NULL"),
    )
