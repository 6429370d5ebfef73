"""Files that are stored in several transactions"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ingest_parts",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("outcomes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", "part", name=op.f("pk_ingest_parts")),
        sa.CheckConstraint("json_valid(outcomes)", name=op.f("ck_ingest_parts_outcomes")),
    )
    op.create_index(
        "ix_ingest_files_rejected",
        "ingest_files",
        ["recorded_at"],
        sqlite_where=sa.text("status = 'rejected'"),
    )


def downgrade() -> None:
    op.drop_index("ix_ingest_files_rejected", table_name="ingest_files")
    op.drop_table("ingest_parts")
