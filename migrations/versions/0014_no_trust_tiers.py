"""Sources have no trust tiers"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("source_trust")


def downgrade() -> None:
    kinds = ("path", "conversation", "run", "content")
    tiers = ("low", "standard", "high")
    op.create_table(
        "source_trust",
        sa.Column(
            "kind",
            sa.Enum(*kinds, name="kind", native_enum=False, create_constraint=True),
            nullable=False,
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "tier",
            sa.Enum(*tiers, name="tier", native_enum=False, create_constraint=True),
            nullable=False,
        ),
        sa.Column("max_memories", sa.Integer(), nullable=True),
        sa.Column("set_at", sa.Integer(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.CheckConstraint("max_memories >= 0", name=op.f("ck_source_trust_max_memories")),
        sa.PrimaryKeyConstraint("kind", "name", name=op.f("pk_source_trust")),
    )
