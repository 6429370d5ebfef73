"""The tables of whom and what memories name."""

from __future__ import annotations

import sqlalchemy as sa
from sqlmodel import SQLModel

from memgraph.model.columns import choice, column
from memgraph.model.enums import EntityType


class EntityRow(SQLModel, table=True):
    __tablename__ = "entities"
    __table_args__ = (
        sa.UniqueConstraint("name_key", "type"),
        sa.CheckConstraint("mention_count >= 0", name="mention_count"),
        sa.Index(
            "ix_entities_merged_into",
            "merged_into",
            sqlite_where=sa.text("merged_into IS NOT NULL"),
        ),
    )

    pk: int = column(sa.Integer, primary_key=True)
    entity_id: str = column(sa.Text, nullable=False, unique=True)
    canonical_name: str = column(sa.Text, nullable=False)
    name_key: str = column(sa.Text, nullable=False)
    type: EntityType = column(choice(EntityType, "type"), nullable=False)
    summary: str | None = column(sa.Text)
    mention_count: int = column(sa.Integer, nullable=False, server_default="0")
    protected: bool = column(sa.Boolean, nullable=False, server_default="0")
    created_at: int = column(sa.Integer, nullable=False)
    # The id of the entity that is meant by this name; then nothing is linked to this one.
    merged_into: str | None = column(sa.Text)
    # Who said of what type it is, and how sure that is, 0..1; None: from before schema 0007.
    type_provider: str | None = column(sa.Text)
    type_confidence: float | None = column(sa.Float)


class EntityAliasRow(SQLModel, table=True):
    __tablename__ = "entity_aliases"

    alias_key: str = column(sa.Text, primary_key=True)
    entity_pk: int = column(sa.Integer, sa.ForeignKey("entities.pk"), primary_key=True)
    alias: str = column(sa.Text, nullable=False)


class MemoryEntityRow(SQLModel, table=True):
    __tablename__ = "memory_entities"
    __table_args__ = (
        sa.Index("ix_memory_entities_memory_pk", "memory_pk"),
        {"sqlite_with_rowid": False},
    )

    entity_pk: int = column(sa.Integer, sa.ForeignKey("entities.pk"), primary_key=True)
    memory_pk: int = column(sa.Integer, sa.ForeignKey("memories.pk"), primary_key=True)
