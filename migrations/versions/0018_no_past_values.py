"""Former values of memories and edges are no longer stored"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

KEEP_REVISION = """
    CREATE TRIGGER memory_revisions_keep
    AFTER UPDATE OF importance, confidence, decay_rate, valid_until, tags, attributes ON memories
    WHEN old.importance IS NOT new.importance OR old.confidence IS NOT new.confidence
        OR old.decay_rate IS NOT new.decay_rate OR old.tags IS NOT new.tags
        OR (old.valid_until IS NOT new.valid_until AND NOT (old.updated_at = new.updated_at
            AND coalesce(old.valid_until < new.valid_until, 0)))
        OR (old.attributes IS NOT new.attributes
            AND json_remove(old.attributes, '$.enriched_at', '$.enriched_names')
            IS NOT json_remove(new.attributes, '$.enriched_at', '$.enriched_names'))
    BEGIN
        INSERT INTO memory_revisions
            (memory_id, until, importance, confidence, decay_rate, valid_until, tags, attributes)
        VALUES (old.memory_id, new.updated_at, old.importance, old.confidence, old.decay_rate,
            old.valid_until, old.tags, old.attributes);
    END
"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TRIGGER memory_revisions_keep ON memories")
        op.execute("DROP FUNCTION memory_revisions_keep()")
    else:
        op.execute("DROP TRIGGER memory_revisions_keep")
    op.drop_table("memory_edge_revisions")
    op.drop_table("memory_revisions")


def downgrade() -> None:
    op.create_table(
        "memory_revisions",
        sa.Column("revision_id", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("until", sa.Integer(), nullable=False),
        sa.Column("importance", sa.Integer(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("decay_rate", sa.Float(), nullable=False),
        sa.Column("valid_until", sa.Integer(), nullable=True),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("attributes", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.memory_id"], name=op.f("fk_memory_revisions_memory_id")
        ),
        sa.PrimaryKeyConstraint("revision_id", name=op.f("pk_memory_revisions")),
    )
    op.create_index(
        "ix_memory_revisions_memory_id", "memory_revisions", ["memory_id", "until", "revision_id"]
    )
    op.create_index("ix_memory_revisions_until", "memory_revisions", ["until", "memory_id"])
    op.execute(KEEP_REVISION)
    op.create_table(
        "memory_edge_revisions",
        sa.Column("revision_id", sa.Integer(), nullable=False),
        sa.Column("edge_id", sa.Text(), nullable=False),
        sa.Column("until", sa.Integer(), nullable=False),
        sa.Column("partial", sa.Boolean(), nullable=False),
        sa.Column("resolved_at", sa.Integer(), nullable=True),
        sa.Column("resolution", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["edge_id"], ["memory_edges.edge_id"], name=op.f("fk_memory_edge_revisions_edge_id")
        ),
        sa.PrimaryKeyConstraint("revision_id", name=op.f("pk_memory_edge_revisions")),
    )
    op.create_index(
        "ix_memory_edge_revisions_edge_id",
        "memory_edge_revisions",
        ["edge_id", "until", "revision_id"],
    )
    op.create_index("ix_memory_edge_revisions_until", "memory_edge_revisions", ["until", "edge_id"])
