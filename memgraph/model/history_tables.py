"""The tables of what was: values that memories and edges had, and how far a source is trusted.

Times are milliseconds since 1970, UTC.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlmodel import SQLModel

from memgraph.model.columns import choice, column, memory_ref
from memgraph.model.enums import SourceName, TrustTier


class RevisionRow(SQLModel, table=True):
    """The values that a memory had until ``until``; written by a trigger when one of them changes.

    At a time T they are those of the first row with ``until`` > T, else those of ``memories``.
    """

    __tablename__ = "memory_revisions"
    __table_args__ = (
        sa.Index("ix_memory_revisions_memory_id", "memory_id", "until", "revision_id"),
        # What changed since a time.
        sa.Index("ix_memory_revisions_until", "until", "memory_id"),
    )

    revision_id: int = column(sa.Integer, primary_key=True)
    memory_id: str = memory_ref(nullable=False)
    until: int = column(sa.Integer, nullable=False)
    importance: int = column(sa.Integer, nullable=False)
    confidence: float = column(sa.Float, nullable=False)
    decay_rate: float = column(sa.Float, nullable=False)
    valid_until: int | None = column(sa.Integer)
    tags: str = column(sa.Text, nullable=False)
    attributes: str = column(sa.Text, nullable=False)


class EdgeRevisionRow(SQLModel, table=True):
    """How an edge was until ``until``: whether it was partial, and how it was resolved."""

    __tablename__ = "memory_edge_revisions"
    __table_args__ = (
        sa.Index("ix_memory_edge_revisions_edge_id", "edge_id", "until", "revision_id"),
        sa.Index("ix_memory_edge_revisions_until", "until", "edge_id"),
    )

    revision_id: int = column(sa.Integer, primary_key=True)
    edge_id: str = column(sa.Text, sa.ForeignKey("memory_edges.edge_id"), nullable=False)
    until: int = column(sa.Integer, nullable=False)
    partial: bool = column(sa.Boolean, nullable=False)
    resolved_at: int | None = column(sa.Integer)
    resolution: str | None = column(sa.Text)


class SourceTrustRow(SQLModel, table=True):
    """What an operator said of a source: how far it is trusted, and how much it may store."""

    __tablename__ = "source_trust"
    __table_args__ = (sa.CheckConstraint("max_memories >= 0", name="max_memories"),)

    kind: SourceName = column(choice(SourceName, "kind"), primary_key=True)
    name: str = column(sa.Text, primary_key=True)
    tier: TrustTier = column(choice(TrustTier, "tier"), nullable=False)
    max_memories: int | None = column(sa.Integer)
    set_at: int = column(sa.Integer, nullable=False)
    actor: str = column(sa.Text, nullable=False)
    reason: str = column(sa.Text, nullable=False)
