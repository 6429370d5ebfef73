"""Events are no longer stored"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("event_failures", "event_cursors", "events"):
        op.drop_table(table)


def downgrade() -> None:
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
        sa.CheckConstraint("json_valid(payload)", name=op.f("ck_events_payload")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "event_cursors",
        sa.Column("subscriber", sa.Text(), nullable=False),
        sa.Column("delivered_seq", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_attempt_at", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("subscriber", name=op.f("pk_event_cursors")),
    )
    op.create_table(
        "event_failures",
        sa.Column("subscriber", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("error_code", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("subscriber", "seq", name=op.f("pk_event_failures")),
    )
