"""An index of the edges that lead to what a memory stands on"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_memory_edges_grounds",
        "memory_edges",
        ["from_memory_id", "to_memory_id", "edge_type", "edge_id", "created_at"],
        sqlite_where=sa.text("edge_type IN ('CausedBy', 'PartOf')"),
    )


def downgrade() -> None:
    op.drop_index("ix_memory_edges_grounds", table_name="memory_edges")
