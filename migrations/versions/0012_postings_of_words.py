"""The postings by which texts are ranked, beside the full-text index"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# What postings are made of. A row that changes in one of these is read anew until the segment that
# holds its key is written anew.
INDEXED = ("content", "source_role", "tags", "search_terms", "scope", "scope_id", "sensitivity")
CHANGED = " OR ".join(f"old.{column} IS NOT new.{column}" for column in INDEXED)
TRIGGERS = (
    f"""
    CREATE TRIGGER text_changes_update AFTER UPDATE OF {", ".join(INDEXED)} ON memories
    WHEN {CHANGED} BEGIN
        INSERT OR REPLACE INTO text_changes (pk) VALUES (new.pk);
    END
    """,
    """
    CREATE TRIGGER text_changes_delete AFTER DELETE ON memories BEGIN
        INSERT OR REPLACE INTO text_changes (pk) VALUES (old.pk);
    END
    """,
)


def upgrade() -> None:
    op.create_table(
        "text_segments",
        sa.Column("segment", sa.Integer(), nullable=False),
        sa.Column("stamp", sa.Integer(), nullable=False),
        sa.Column("first_pk", sa.Integer(), nullable=False),
        sa.Column("documents", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("lengths", sa.LargeBinary(), nullable=False),
        sa.Column("marks", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("segment", name=op.f("pk_text_segments")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "text_postings",
        sa.Column("segment", sa.Integer(), nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("postings", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("segment", "term", name=op.f("pk_text_postings")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "text_changes",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_text_changes")),
        sa.UniqueConstraint("pk", name=op.f("uq_text_changes_pk")),
        sqlite_autoincrement=True,
    )
    for statement in TRIGGERS:
        op.execute(statement)


def downgrade() -> None:
    for name in ("text_changes_update", "text_changes_delete"):
        op.execute(f"DROP TRIGGER {name}")
    for table in ("text_changes", "text_postings", "text_segments"):
        op.drop_table(table)
