"""Who said of what type an entity is, and how sure that is"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("entities", sa.Column("type_provider", sa.Text(), nullable=True))
    op.add_column("entities", sa.Column("type_confidence", sa.Float(), nullable=True))


def downgrade() -> None:
    op.drop_column("entities", "type_confidence")
    op.drop_column("entities", "type_provider")
