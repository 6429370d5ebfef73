"""The settings of receipts: what is recorded of hand-outs, and how long."""

from __future__ import annotations

from pydantic import Field

from memgraph.config.fields import Group


class ReceiptSettings(Group):
    query_text: bool = Field(
        default=False,
        description="Whether a receipt keeps what was asked; else only its SHA-256.",
    )
    keep: int = Field(
        default=50_000, ge=0, le=10_000_000, description="Receipts kept, the newest ones."
    )
    keep_days: float = Field(
        default=366.0, ge=0.0, le=100_000.0, description="Older receipts are removed, days."
    )
