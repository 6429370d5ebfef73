"""The block of memories before a message: relevant memories, and the week's reflection."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from memgraph.context.blocks import render
from memgraph.ids import IdSource
from memgraph.model.context import BlockFormat, BlockLine, ContextBlock
from memgraph.model.enums import MemoryKind
from memgraph.model.recall import MAX_TOP_N, Bundle, RecallItem, RecallRequest, ReplayMoment
from memgraph.model.receipts import Receipt, ReceiptItem
from memgraph.model.values import Memory, StoredSource
from memgraph.operations.read.recall import answer
from memgraph.operations.read.receipts import ReceiptContext, behind
from memgraph.retrieval.citation import short_citation
from memgraph.rules.blocks import MARK_DIGITS
from memgraph.rules.budget import select_within, token_cost
from memgraph.rules.decay import confidence_at
from memgraph.rules.dedup import content_hash
from memgraph.rules.scope import Viewer
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store.graph import sources_of

PURPOSE = "get_context"
# So many more are recalled: what repeats the question, or one another, gives its place to others.
SURPLUS = 25


class EarlierBlock(NamedTuple):
    """The moment and the fence mark of a block that is built again."""

    then: ReplayMoment
    mark: str


def new_mark(ids: IdSource) -> str:
    """Return 16 random hexadecimal digits for the fence of one block."""
    return hashlib.sha256(ids.new("mark_").encode()).hexdigest()[:MARK_DIGITS]


def context_for(
    opened: OpenOrchestrator,
    viewer: Viewer,
    request: RecallRequest,
    *,
    format: BlockFormat,  # noqa: A002  the word that requests and settings have for it
    include_insight: bool,
    before: EarlierBlock | None = None,
) -> tuple[ContextBlock, Receipt, ReceiptContext]:
    """Return the block of what a request recalls, its receipt, and the texts behind it.

    Args:
        before: the block as it was handed out then.

    Raises:
        AccessDenied: the request reaches further than the viewer.
        StorageError: the database cannot be read.
    """
    settings = opened.settings.memory.context
    if before is None and request.min_relevance is None:
        request = request.model_copy(update={"min_relevance": settings.min_relevance})
    limit = request.top_n or settings.facts
    most = min(limit + SURPLUS, MAX_TOP_N)
    wide = request.model_copy(update={"top_n": most})
    then = None if before is None else before.then
    bundle = answer(opened, viewer, wide, then=then)
    as_of = None if then is None else then.known
    reflection = opened.reflections.latest(viewer, as_of) if include_insight else None
    items = _informative(bundle, reflection, limit)
    mark = new_mark(opened.ids) if before is None else before.mark
    text = render(
        [_line(item) for item in items],
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
    return block, receipt, replace(behind(viewer, wide, bundle), bundle=None)


def _informative(bundle: Bundle, reflection: Memory | None, limit: int) -> list[RecallItem]:
    """Return the first items of the bundle that are new: neither the question nor a repetition.

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


def _line(item: RecallItem) -> BlockLine:
    return _of(item.memory, item.source, item.effective_confidence, item.mark)


def _insight(opened: OpenOrchestrator, memory: Memory, at: int) -> BlockLine:
    with opened.database.read() as snapshot:
        [source] = sources_of(snapshot, [memory])
    exponent = opened.settings.memory.decay.exponent
    return _of(memory, source, confidence_at(memory, at, exponent))


def _of(memory: Memory, source: StoredSource, confidence: float, mark: str = "") -> BlockLine:
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
    """Return the receipt of the bundle, with the reflection as last item: not recalled, it scores
    0.
    """
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
