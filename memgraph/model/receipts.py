"""Receipts of recalls, bulletins and contexts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from memgraph.model.recall import Bundle, Degraded, RecallItem, RecallRequest
from memgraph.model.values import Count, Millis, Value

ASKED_FOR: Final = ("purpose", "workflow_run_id", "step_id", "query_sha256", "sha256")
"""The keys of ``Receipt.asked`` that are also fields, in addition to ``conversation_id``."""


_OWN_FIELDS: Final = {"query", "for_conversation_id", "for_workflow_run_id", "for_step_id"}
"""The fields of a recall request that a receipt has as its own fields."""
RECALL: Final = "recall"
"""The purpose of a plain recall."""
CONSOLE: Final = "console"
"""The step id of the console's own recalls, which were given to no agent."""


@dataclass(frozen=True, slots=True)
class ReceiptItem:
    """A delivered memory.

    Attributes:
        legs, modifiers: as in ``RecallItem``.
        reasons: as in ``PackedItem``, and ``shortened``. In a recall only ``beside:<memory id>``,
            for a memory that was added because of another (``RecallItem.brought_by``).
    """

    memory_id: str
    score: float
    legs: Mapping[str, int] = field(default_factory=dict)
    modifiers: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    @staticmethod
    def of(item: RecallItem) -> ReceiptItem:
        """Return the receipt item for an item of a recall."""
        return ReceiptItem(
            item.memory.memory_id,
            item.score,
            item.legs,
            item.modifiers,
            () if item.brought_by is None else (f"beside:{item.brought_by}",),
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt of a delivery to one reader. A field is None if it does not apply or is unknown.

    Attributes:
        receipt_id: begins with ``rcl_``.
        at: milliseconds.
        query: the query; empty if there was none, or if only its digest is stored.
        asked: the request as JSON values, its receiver, and the codes of missing parts as
            ``degraded``.
        items: in the order of delivery.
        counts: whether it counts as an access. Requests about the past do not; nor do bulletins,
            which count as a use for decay.
        purpose: ``recall``, ``bulletin``, ``get_context``, ``ask``, ``build_context``, ``on_step``
            or another.
        actor: the caller.
        conversation_id, workflow_run_id, step_id: the recipient.
        query_sha256: the digest of the query, 64 hexadecimal digits.
        change_seq: the last journal entry that was visible to the answer.
        viewer: the view of the caller: the fields of ``rules.scope.Viewer``, without ids that a
            reader of the receipt was not granted.
        left_out: the number of matches that were not delivered, by reason: ``scope`` and
            ``clearance`` (hidden from the caller, among the newest matches), ``status``
            (superseded), ``budget`` (tokens) and ``top_n``. Readers get only numbers of visible
            memories; None if not counted, or if the caller saw more than the reader.
        sha256: the digest of the delivered bytes: a text as UTF-8, or ``bundle_bytes``; for an
            answer, that of its block.
        same_as: the receipt with the items, if the same bytes were delivered before.
        bulletin_id: the delivered bulletin.
        answer: of a question to a model: ``text``, ``answered``, ``model``, ``block`` with the
            ``text`` that it read, and ``citations``, pairs of a line's number and a memory's id.
    """

    receipt_id: str
    at: Millis
    query: str
    asked: Mapping[str, Any]
    items: tuple[ReceiptItem, ...]
    counts: bool = True
    purpose: str | None = None
    actor: str | None = None
    conversation_id: str | None = None
    workflow_run_id: str | None = None
    step_id: str | None = None
    query_sha256: str | None = None
    change_seq: int | None = None
    viewer: Mapping[str, Any] | None = None
    left_out: Mapping[str, int] | None = None
    sha256: str | None = None
    same_as: str | None = None
    bulletin_id: str | None = None
    answer: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # receipts are frozen
        for name, text in context_fields(self.asked).items():
            if getattr(self, name) is None:
                set_field(self, name, text)

    @staticmethod
    def of(request: RecallRequest, bundle: Bundle) -> Receipt:
        """Return the receipt of a recall."""
        account = bundle.account
        return Receipt(
            receipt_id=bundle.receipt_id,
            at=bundle.at,
            query=bundle.query,
            asked=request.model_dump(mode="json", exclude_defaults=True, exclude=_OWN_FIELDS)
            | degraded_field(bundle.degraded),
            items=tuple(ReceiptItem.of(item) for item in bundle.items),
            counts=request.as_of is None,
            purpose=RECALL,
            conversation_id=request.for_conversation_id or request.exclude_session_id,
            workflow_run_id=request.for_workflow_run_id,
            step_id=request.for_step_id,
            change_seq=account.change_seq,
            left_out=account.left_out,
        )


def degraded_field(degraded: Iterable[Degraded]) -> dict[str, list[str]]:
    """Return the field ``degraded`` of ``Receipt.asked``."""
    codes = [item.code for item in degraded]
    return {"degraded": codes} if codes else {}


def context_fields(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a receipt that ``Receipt.asked`` implies."""
    fields = {name: request[name] for name in ASKED_FOR if request.get(name) is not None}
    # In a recall the conversation is a filter, not the recipient.
    conversation_id = request.get("conversation_id") or request.get("exclude_session_id")
    if "purpose" in fields and conversation_id is not None:
        fields["conversation_id"] = conversation_id
    return fields


def bundle_bytes(bundle: Bundle) -> bytes:
    """Return a bundle as compact UTF-8 JSON, without receipt id and (redundant) marks."""
    text = bundle.model_dump_json(exclude={"receipt_id": True, "items": {"__all__": {"mark"}}})
    return text.encode()


@dataclass(frozen=True, slots=True)
class ReceiptList:
    """Receipts, newest first. ``cut`` is True if there may be more."""

    receipts: tuple[Receipt, ...]
    cut: bool


class BulletinEntry(Value):
    """A delivered bulletin.

    Attributes:
        created_at: the time of the first delivery, in milliseconds.
        change_seq: the last journal entry that it reflects.
        sha256: the digest of its text as UTF-8.
        receipts: the number of its stored receipts.
    """

    bulletin_id: str
    created_at: Millis
    change_seq: Count
    sha256: str
    receipts: Count


class BulletinHistory(Value):
    """Bulletins, newest first. ``cut`` is True if there may be more."""

    bulletins: tuple[BulletinEntry, ...]
    cut: bool


class StoredBulletin(BulletinEntry):
    """A delivered bulletin with its text and the cited memories, in order."""

    memory_ids: tuple[str, ...]
    body: str
