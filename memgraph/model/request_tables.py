"""The table of requests that are done once."""

from __future__ import annotations

import sqlalchemy as sa
from sqlmodel import SQLModel

from memgraph.model.columns import column


class IdempotencyKeyRow(SQLModel, table=True):
    """A write that a client may send again: written in the transaction of the write itself.

    ``key_sha256``: of who asked and the key that they gave; ``request_sha256``: of what they asked.
    ``status`` and ``answer`` follow when it is known what was answered.
    """

    __tablename__ = "idempotency_keys"
    __table_args__ = (
        sa.CheckConstraint("json_valid(memory_ids)", name="memory_ids"),
        sa.Index("ix_idempotency_keys_created_at", "created_at"),
    )

    key_sha256: str = column(sa.Text, primary_key=True)
    request_sha256: str = column(sa.Text, nullable=False)
    created_at: int = column(sa.Integer, nullable=False)
    memory_ids: str = column(sa.Text, nullable=False)
    status: int | None = column(sa.Integer)
    answer: str | None = column(sa.Text)
