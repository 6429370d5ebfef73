"""What was handed out and why, as it is kept: of recalls, and of contexts put into prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.values import Millis


@dataclass(frozen=True, slots=True)
class ReceiptItem:
    """One memory that was handed out. ``legs`` and ``modifiers`` are those of ``RecallItem``,
    ``reasons`` those of ``PackedItem`` and ``shortened``; a recall has none.
    """

    memory_id: str
    score: float
    legs: Mapping[str, int] = field(default_factory=dict)
    modifiers: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one reader was given.

    Attributes:
        receipt_id: begins with ``rcl_``.
        at: milliseconds.
        query: what was asked; it may be empty.
        asked: the request as JSON values, and for whom it was: what a person may want to know
            later.
        items: in the order in which they were handed out.
        counts: whether it is an access to the memories; who asks how it was then makes none.
    """

    receipt_id: str
    at: Millis
    query: str
    asked: Mapping[str, Any]
    items: tuple[ReceiptItem, ...]
    counts: bool = True

    @staticmethod
    def of(request: RecallRequest, bundle: Bundle) -> Receipt:
        """The receipt of a recall."""
        return Receipt(
            receipt_id=bundle.receipt_id,
            at=bundle.at,
            query=bundle.query,
            asked=request.model_dump(mode="json", exclude_defaults=True, exclude={"query"}),
            items=tuple(
                ReceiptItem(item.memory.memory_id, item.score, item.legs, item.modifiers)
                for item in bundle.items
            ),
            counts=request.as_of is None,
        )


@dataclass(frozen=True, slots=True)
class ReceiptList:
    """Receipts, newest first. ``cut``: there are more, or older ones that were not looked at."""

    receipts: tuple[Receipt, ...]
    cut: bool
