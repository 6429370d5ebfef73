"""The outbox of facts that are to be compared with the stored ones"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "memory_comparisons",
        sa.Column("memory_pk", sa.Integer(), nullable=False),
        sa.Column(
            "stage",
            sa.Enum("rules", "model", name="stage", native_enum=False, create_constraint=True),
            nullable=False,
        ),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_attempt_at", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_memory_comparisons_attempts")),
        sa.ForeignKeyConstraint(
            ["memory_pk"], ["memories.pk"], name=op.f("fk_memory_comparisons_memory_pk")
        ),
        sa.PrimaryKeyConstraint("memory_pk", name=op.f("pk_memory_comparisons")),
    )


def downgrade() -> None:
    op.drop_table("memory_comparisons")
