"""Receipts of recalls, bulletins and contexts, and their replays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import Field

from memgraph.model.recall import Bundle, Degraded, Query, RecallItem, RecallRequest
from memgraph.model.values import Millis, Value

Count = Annotated[int, Field(ge=0)]

ASKED_FOR: Final = ("purpose", "workflow_run_id", "step_id", "query_sha256", "sha256")
"""What ``Receipt.asked`` says of for whom and of what, beside ``conversation_id``."""


_APART: Final = {"query", "for_conversation_id", "for_workflow_run_id", "for_step_id"}
"""What a receipt of a recall says in fields of its own."""
RECALL: Final = "recall"
"""The purpose of a recall that was asked for by itself."""
CONSOLE: Final = "console"
"""The step of recalls that the console makes for its readers: no agent was given these."""
ANSWERS: Final = "answers"
"""Where ``Receipt.asked`` says how many answers an agent asked for, see ``agents.recall_shown``."""


@dataclass(frozen=True, slots=True)
class ReceiptItem:
    """A delivered memory. ``legs`` and ``modifiers`` are those of ``RecallItem``, ``reasons`` those
    of ``PackedItem`` and ``shortened``; in a recall ``beside:<memory id>`` alone, for a memory
    brought in beside another (``RecallItem.brought_by``).

    Attributes:
        access_count, last_accessed_at: the accesses before, with the last one in milliseconds, as
            far as they were visible to the answer; None and None: not stored.
    """

    memory_id: str
    score: float
    legs: Mapping[str, int] = field(default_factory=dict)
    modifiers: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    access_count: int | None = None
    last_accessed_at: Millis | None = None

    @staticmethod
    def of(item: RecallItem) -> ReceiptItem:
        """Return the item of a recall."""
        memory = item.memory
        return ReceiptItem(
            memory.memory_id,
            item.score,
            item.legs,
            item.modifiers,
            () if item.brought_by is None else (f"beside:{item.brought_by}",),
            access_count=memory.access_count,
            last_accessed_at=memory.last_accessed_at,
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt of a delivery to one reader. None: it does not apply or is not known.

    Attributes:
        receipt_id: begins with ``rcl_``.
        at: milliseconds.
        query: the query; empty if there was none, or if only its digest is stored.
        asked: the request as JSON values, its receiver, and the codes of missing parts as
            ``degraded``.
        items: in the order of delivery.
        counts: whether it counts as an access; a request about the past does not. A bulletin does
            not count, and is a use all the same.
        purpose: ``recall``, ``bulletin``, ``get_context``, ``build_context``, ``on_step`` or
            another.
        actor: the caller.
        conversation_id, workflow_run_id, step_id: the receiver.
        query_sha256: of the query, 64 hexadecimal digits.
        change_seq: the last journal entry that was visible to the answer.
        viewer: the view of the caller: the fields of ``rules.scope.Viewer``, without ids that a
            reader of the receipt was not granted.
        settings_sha256: of the settings that an answer depends on.
        left_out: the number of matches that were not delivered, by reason: ``scope`` and
            ``clearance`` (hidden from the caller; of the newest with the words of the query),
            ``status`` (superseded), ``budget`` (tokens) and ``top_n``. A reader gets the numbers
            of memories that it may see; None: not counted, or the caller saw more than the reader.
        sha256: of the delivered bytes: of a text as UTF-8, of a bundle as ``bundle_bytes``.
        same_as: the receipt with the items, if the same bytes were delivered before.
        bulletin_id: the delivered bulletin.
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
    settings_sha256: str | None = None
    left_out: Mapping[str, int] | None = None
    sha256: str | None = None
    same_as: str | None = None
    bulletin_id: str | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__  # the class's own refuses: receipts are frozen
        for name, text in context_fields(self.asked).items():
            if getattr(self, name) is None:
                put(self, name, text)

    @staticmethod
    def of(request: RecallRequest, bundle: Bundle) -> Receipt:
        """Return the receipt of a recall."""
        account = bundle.account
        return Receipt(
            receipt_id=bundle.receipt_id,
            at=bundle.at,
            query=bundle.query,
            asked=request.model_dump(mode="json", exclude_defaults=True, exclude=_APART)
            | degraded_field(bundle.degraded),
            items=tuple(ReceiptItem.of(item) for item in bundle.items),
            counts=request.as_of is None,
            purpose=RECALL,
            conversation_id=request.for_conversation_id,
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
    # Of a recall it is a filter: whose memories are asked for, not who asks.
    talk = request.get("conversation_id") or request.get("exclude_session_id")
    if "purpose" in fields and talk is not None:
        fields["conversation_id"] = talk
    return fields


def bundle_bytes(bundle: Bundle) -> bytes:
    """Return a bundle as compact JSON in UTF-8, without the receipt's id and the marks, which
    repeat ``contradicted_by``.
    """
    text = bundle.model_dump_json(exclude={"receipt_id": True, "items": {"__all__": {"mark"}}})
    return text.encode()


@dataclass(frozen=True, slots=True)
class ReceiptList:
    """Receipts, newest first. ``cut``: there are more, or older ones were not scanned."""

    receipts: tuple[Receipt, ...]
    cut: bool


class BulletinEntry(Value):
    """A delivered bulletin.

    Attributes:
        created_at: the first delivery, milliseconds.
        change_seq: the last journal entry that it reflects.
        sha256: of its text as UTF-8.
        receipts: the number of deliveries, as far as receipts are kept.
    """

    bulletin_id: str
    created_at: Millis
    change_seq: Count
    sha256: str
    receipts: Count


class BulletinHistory(Value):
    """Bulletins, newest first. ``cut``: there are older ones, or some were not scanned."""

    bulletins: tuple[BulletinEntry, ...]
    cut: bool


class StoredBulletin(BulletinEntry):
    """A delivered bulletin. ``memory_ids``: the cited memories, in its order."""

    memory_ids: tuple[str, ...]
    body: str


class ReplayRequest(Value):
    """A request to replay a receipt. ``query``: where the receipt keeps its digest alone."""

    query: Query | None = None


class JournalEntry(Value):
    """An entry of the journal that may have made a difference."""

    seq: Count
    at: Millis
    actor: str
    action: str
    subject: str


class Difference(Value):
    """The difference of one memory in a replay.

    Attributes:
        rank, rank_now: from 1; None: it is not among the items.
        because: entries of the journal since the receipt that are about it, the first ones.
    """

    memory_id: str
    rank: int | None
    rank_now: int | None
    because: tuple[JournalEntry, ...] = ()


WHY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "settings": "the settings have changed",
        "model": "the vectors come from another model",
        "embeddings": "some memories were not embedded yet, then or now",
        "degraded": "one of the two answers had to do without something else",
        "index": "what was stored or erased since changes how words weigh",
    }
)
"""What ``Replay.because`` may say, and what it means."""


class Replay(Value):
    """The replay of a request, as of its first time.

    Attributes:
        same: whether it gives the same memories in the same order.
        same_digest: whether it gives the same bytes; None: unknown.
        differences: memories that came, went or moved, in the order of the receipt and then of
            the replay.
        because: codes of other differences, see ``WHY``.
        cut: not all entries of the journal were examined.
    """

    receipt_id: str
    at: Millis
    change_seq: Count | None
    same: bool
    same_digest: bool | None
    differences: tuple[Difference, ...]
    because: tuple[str, ...]
    cut: bool = False
