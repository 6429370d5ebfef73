"""Build the block of memories for a message; promote and evict context items."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from memgraph.context.assembly import ConfirmationCallback, confirmed
from memgraph.context.blocks import render
from memgraph.context.items import RECORD, RESERVED, source_of
from memgraph.errors import Conflict, InvalidInput
from memgraph.ids import IdSource
from memgraph.model.context import BlockFormat, BlockLine, ContextBlock
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType, Scope
from memgraph.model.recall import MAX_TOP_N, Bundle, RecallItem, RecallRequest
from memgraph.model.receipts import Receipt, ReceiptItem
from memgraph.model.values import Memory, MemoryInput, Source, StoredSource
from memgraph.operations.read.recall import answer
from memgraph.operations.read.receipts import ReceiptContext, behind
from memgraph.rules.access import question_about
from memgraph.rules.blocks import MARK_DIGITS
from memgraph.rules.budget import select_within, token_cost
from memgraph.rules.decay import confidence_at
from memgraph.rules.lifecycle import EVICTED, excess
from memgraph.rules.namespaces import is_item
from memgraph.rules.scope import Viewer
from memgraph.rules.similarity import content_hash
from memgraph.rules.sources import short_citation
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import decay, graph, items, memories
from memgraph.store.graph import sources_of
from memgraph.store.items import ItemPlace
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot
from memgraph.store.visibility import View

PURPOSE = "get_context"
# The number of extra memories to recall, to replace those that repeat the query or each other.
SURPLUS = 25


def new_mark(ids: IdSource) -> str:
    """Return 16 unpredictable hexadecimal digits for the fence of a block."""
    return hashlib.sha256(ids.new("mark_").encode()).hexdigest()[:MARK_DIGITS]


def context_for(
    opened: OpenOrchestrator,
    viewer: Viewer,
    request: RecallRequest,
    *,
    format: BlockFormat,  # noqa: A002  the name in requests and settings
    include_insight: bool,
) -> tuple[ContextBlock, Receipt, ReceiptContext]:
    """Build the block of memories for a request; return it with its receipt and their data.

    Raises:
        AccessDenied: the request exceeds the viewer's permissions.
        StorageError: the database cannot be read.
    """
    settings = opened.settings.memory.context
    if request.min_relevance is None:
        request = request.model_copy(update={"min_relevance": settings.min_relevance})
    limit = request.top_n or settings.facts
    candidates = min(limit + SURPLUS, MAX_TOP_N)
    wide_request = request.model_copy(update={"top_n": candidates})
    bundle = answer(opened, viewer, wide_request)
    reflection = opened.reflections.latest(viewer) if include_insight else None
    items = _new_items(bundle, reflection, limit)
    mark = new_mark(opened.ids)
    text = render(
        [_item_line(item) for item in items],
        format,
        mark=mark,
        insight=None if reflection is None else _insight(opened, reflection, bundle.at),
    )
    format_fields = {"format": format.value, "mark": mark, "insight": include_insight}
    receipt = _receipt(request, bundle, items, reflection, format_fields, text)
    block = ContextBlock(
        text=text,
        format=format,
        memory_ids=tuple(memory.memory_id for memory in receipt.items),
        receipt_id=receipt.receipt_id,
        token_cost=token_cost(text),
        degraded=bundle.degraded,
    )
    return block, receipt, replace(behind(viewer, wide_request, bundle), bundle=None)


def _new_items(bundle: Bundle, reflection: Memory | None, limit: int) -> list[RecallItem]:
    """Return the first items of the bundle that repeat neither the query nor each other.

    Of a turn and a fact with the same text, the fact is kept.
    """
    seen_hashes = {content_hash(bundle.query)}
    if reflection is not None:
        seen_hashes.add(reflection.content_hash)
    by_text: dict[str, RecallItem] = {}
    for item in bundle.items:
        text = item.memory.content_hash
        first = by_text.get(text)
        better = first is not None and first.memory.kind is MemoryKind.EPISODE
        if text not in seen_hashes and (
            first is None or (better and item.memory.kind is MemoryKind.FACT)
        ):
            by_text[text] = item
    items = {item.memory.memory_id: item for item in by_text.values()}
    sides = {memory_id: item.contradicted_by for memory_id, item in items.items()}
    chosen = select_within(((memory_id, 1) for memory_id in items), limit, sides).chosen
    return [items[memory_id] for memory_id in chosen]


def _item_line(item: RecallItem) -> BlockLine:
    return _block_line(item.memory, item.source, item.effective_confidence, item.mark)


def _insight(opened: OpenOrchestrator, memory: Memory, at: int) -> BlockLine:
    with opened.database.read() as snapshot:
        [source] = sources_of(snapshot, [memory])
    exponent = opened.settings.memory.decay.exponent
    return _block_line(memory, source, confidence_at(memory, at, exponent))


def _block_line(
    memory: Memory, source: StoredSource, confidence: float, mark: str = ""
) -> BlockLine:
    return BlockLine(
        memory_id=memory.memory_id,
        kind=memory.kind,
        text=memory.content,
        at=memory.created_at if memory.event_time is None else memory.event_time,
        citation=short_citation(memory, source),
        confidence=confidence,
        mark=mark,
    )


def _receipt(
    request: RecallRequest,
    bundle: Bundle,
    items: list[RecallItem],
    reflection: Memory | None,
    format_fields: Mapping[str, Any],
    text: str,
) -> Receipt:
    """Return the receipt of the bundle, with the reflection as its last item (score 0)."""
    last = () if reflection is None else (ReceiptItem(reflection.memory_id, 0.0),)
    recalled = Receipt.of(request, bundle.model_copy(update={"items": tuple(items)}))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Receipt(
        receipt_id=recalled.receipt_id,
        at=recalled.at,
        query=recalled.query,
        asked={**recalled.asked, "purpose": PURPOSE, **format_fields, "sha256": digest},
        items=(*recalled.items, *last),
        counts=recalled.counts,
        change_seq=recalled.change_seq,
        left_out=recalled.left_out,
    )


HIGH_RISK: Final = frozenset({MemoryType.PREFERENCE, MemoryType.IDENTITY})
"""Memory types whose promotion to global requires a person's consent."""

_NARROWER: Final = {Scope.PROJECT: Scope.SESSION, Scope.GLOBAL: Scope.PROJECT}
_COPIED_FIELDS: Final = (
    "content",
    "summary",
    "kind",
    "type",
    "importance",
    "confidence",
    "sensitivity",
    "agent_id",
    "session_id",
    "source_role",
    "event_time",
    "valid_until",
    "decay_rate",
    "tags",
)


class PromotionTarget(NamedTuple):
    """The scope to which a memory is promoted; ``scope_id`` is None for global."""

    scope: Scope
    scope_id: str | None


def target_of(to: Scope | str, scope_id: str | None) -> PromotionTarget:
    """Return the target of a promotion. Raises InvalidInput if it is not valid."""
    if to not in _NARROWER:
        raise InvalidInput("a memory can be promoted to 'project' or 'global'", field="to")
    scope = Scope(to)
    if (scope is Scope.GLOBAL) != (scope_id is None):
        raise InvalidInput("a project requires an id; global has none", field="scope_id")
    return PromotionTarget(scope, scope_id)


def promote(
    opened: OpenOrchestrator,
    memory_id: str,
    target: PromotionTarget,
    *,
    view: View,
    actor: str,
    reason: str,
    callback: ConfirmationCallback | None,
) -> str | None:
    """Promote a memory and return the new id, or None if the person declined."""
    with opened.database.read() as snapshot:
        memory = _promotable(snapshot, memory_id, target, view, opened.clock.now_ms())
        existing_id = _existing_copy(snapshot, memory_id, target)
        [source] = graph.sources_of(snapshot, [memory])
    if existing_id is not None:
        return existing_id
    # No transaction is open while a person decides.
    if not _consented(memory, target, callback):
        return None
    source_fields = Source(**source.model_dump(exclude={"source_id"}))
    prepared = opened.writer.prepare(_promotion(memory, target, source_fields))
    with opened.transaction(actor) as transaction:
        # Check again: it may have been promoted or retracted in the meantime.
        _promotable(transaction, memory_id, target, view, transaction.at)
        existing_id = _existing_copy(transaction, memory_id, target)
        if existing_id is not None:
            return existing_id
        written = opened.writer.store(transaction, [prepared], [], view=view)
        if written.errors:
            raise written.errors[0]
        if written.memories[0].outcome != "stored":
            raise Conflict("another item with the same text and name exists")
        transaction.record(written.entries)
        return _record_promotion(
            opened,
            transaction,
            written.memories[0].memory_id or "",
            memory,
            target,
            view=view,
            reason=reason,
        )


def _record_promotion(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    new_id: str,
    memory: Memory,
    target: PromotionTarget,
    *,
    view: View,
    reason: str,
) -> str:
    details = {"from": memory.memory_id, "to": target.scope.tier, "scope_id": target.scope_id}
    transaction.record([NewEntry("promote", new_id, details | {"reason": reason})])
    if target.scope is Scope.PROJECT:
        place = ItemPlace(
            scope=Scope.PROJECT,
            scope_id=target.scope_id,
            source=source_of(Scope.PROJECT, target.scope_id),
            view=View(view.viewer, statuses=frozenset({MemoryStatus.ACTIVE})),
            at=transaction.at,
        )
        limit = opened.settings.memory.context.max_project_items
        evict(transaction, place, limit, new=items.item_id_of(memory.memory_id))
    return new_id


def _promotable(
    snapshot: Snapshot, memory_id: str, target: PromotionTarget, view: View, at: int
) -> Memory:
    memory = memories.get(snapshot, memory_id, view)
    if memory.kind is not MemoryKind.FACT:
        raise InvalidInput(
            f"only facts can be promoted; this is a {memory.kind.value}",
            memory_id=memory_id,
        )
    if is_item(memory.item_id, memory.tags):
        raise InvalidInput("an item of a key-value store cannot be promoted", memory_id=memory_id)
    if memory.scope is not _NARROWER[target.scope]:
        raise Conflict(
            "a memory is promoted from a task to its project, and from a project to global;"
            f" this one has the scope {memory.scope.value}",
            memory_id=memory_id,
        )
    if memory.status is not MemoryStatus.ACTIVE:
        raise Conflict(
            f"only an active memory can be promoted; this one is {memory.status.value}",
            memory_id=memory_id,
        )
    if memory.valid_until is not None and memory.valid_until <= at:
        raise Conflict("the memory is no longer valid", memory_id=memory_id)
    return memory


def _existing_copy(snapshot: Snapshot, memory_id: str, target: PromotionTarget) -> str | None:
    """Return the id of the active memory to which this one was already promoted, or None.

    Raises:
        Conflict: that memory has been superseded, so the old text must not be promoted again.
    """
    pairs = items.promotions_of(snapshot, memory_id, target.scope, target.scope_id)
    for status_wanted in (MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED):
        match = next((memory for memory, status in pairs if status is status_wanted), None)
        if match is not None and status_wanted is MemoryStatus.SUPERSEDED:
            raise Conflict("it was promoted before, and that copy was superseded", memory_id=match)
        if match is not None:
            return match
    return None


def _consented(
    memory: Memory, target: PromotionTarget, callback: ConfirmationCallback | None
) -> bool:
    if target.scope is not Scope.GLOBAL or memory.type not in HIGH_RISK:
        return True
    return confirmed(callback, question_about(memory))


def _promotion(memory: Memory, target: PromotionTarget, source: Source) -> MemoryInput:
    """Return the memory to store in the wider scope."""
    fields: dict[str, Any] = {name: getattr(memory, name) for name in _COPIED_FIELDS}
    if target.scope is Scope.GLOBAL:
        # Like other global items, it does not decay.
        fields["decay_rate"] = 0.0
    attributes = {
        name: value for name, value in memory.attributes.items() if name not in RESERVED - {RECORD}
    }
    record = attributes.get(RECORD)
    if isinstance(record, dict):
        # The source of the item changes with its scope; its other fields stay.
        attributes[RECORD] = {name: value for name, value in record.items() if name != "source"}
    return MemoryInput(
        **fields,
        scope=target.scope,
        scope_id=target.scope_id,
        item_id=items.item_id_of(memory.memory_id),
        attributes=attributes,
        source=source,
        derived_from=(memory.memory_id,),
    )


def evict(
    transaction: JournalledTransaction, place: ItemPlace, max_items: int, *, new: str | None = None
) -> tuple[str, ...]:
    """Retract the excess items of a place with the reason ``evicted``; return their ids.

    Only items in the place's view are counted and evicted, so nobody evicts hidden items.
    ``memgraph.rules.lifecycle`` decides the order.

    Args:
        new: the item that was just added, which is not evicted.
    """
    number = excess(items.count(transaction, place), max_items)
    if number == 0:
        return ()
    evicted = items.next_to_evict(transaction, place, number, but=new)
    retract_all(transaction, [memory.memory_id for memory in evicted], EVICTED)
    return tuple(memory.item_id for memory in evicted)


def retract_all(transaction: JournalledTransaction, memory_ids: Sequence[str], reason: str) -> None:
    """Retract active memories with a few statements.

    ``changes.retract`` handles one memory at a time, and takes 0.3 s for a hundred.
    """
    decay.retire(transaction, memory_ids, reason=reason)
    transaction.record(
        [NewEntry("retract", memory_id, {"reason": reason}) for memory_id in memory_ids]
    )
