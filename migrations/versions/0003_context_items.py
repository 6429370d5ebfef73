"""Items of a context: what their owner calls them, and what a scope or an agent holds"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("memories", sa.Column("item_id", sa.Text(), nullable=True))
    op.create_index(
        "ix_memories_scope",
        "memories",
        [
            "scope",
            "scope_id",
            "status",
            "importance",
            "created_at",
            "pk",
            "type",
            "sensitivity",
            "agent_id",
        ],
        sqlite_where=sa.text("scope <> 'global' AND kind <> 'episode'"),
    )
    op.create_index(
        "ix_memories_item_id",
        "memories",
        ["item_id"],
        sqlite_where=sa.text("item_id IS NOT NULL"),
    )
    op.create_index(
        "ix_memories_agent_id",
        "memories",
        ["agent_id", "status", "pk"],
        sqlite_where=sa.text("agent_id IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_memories_agent_id", table_name="memories")
    op.drop_index("ix_memories_item_id", table_name="memories")
    op.drop_index("ix_memories_scope", table_name="memories")
    op.drop_column("memories", "item_id")
