"""Evidence for a diagnosis: requested memories, answers, what they depend on, contradictions.

Bounded by a number of memories and by tokens, and limited to what one reader sees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memgraph.context.blocks import render
from memgraph.graph.contradictions import describe
from memgraph.graph.subgraph import MAX_NODES_LIMIT, subgraph
from memgraph.graph.trace import trace
from memgraph.model.context import BlockFormat, BlockLine
from memgraph.model.enums import EdgeType
from memgraph.model.graph import Contradiction, Link
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.receipts import Receipt, ReceiptItem
from memgraph.model.turns import EvidenceBundle, EvidenceItem
from memgraph.model.values import Edge, Memory, StoredSource
from memgraph.operations.context.injection import new_mark
from memgraph.operations.read.recall import answer
from memgraph.retrieval.citation import citation, short_citation
from memgraph.rules.budget import token_cost
from memgraph.rules.decay import confidence_at
from memgraph.rules.lifecycle import contradiction_state
from memgraph.rules.scope import Viewer
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import sources as sources_rows
from memgraph.store.edges import contradictions
from memgraph.store.graph import sources_of, visible_memories
from memgraph.store.visibility import STANDING, View

PURPOSE = "on_diagnostics"
MAX_TRACED = 8
MAX_CONTRADICTIONS = 500
MAX_EDGES_SHOWN = 100
RELATIONS = "Relations of these records, by id:"


@dataclass(frozen=True, slots=True)
class DiagnosisRequest:
    """The request for a diagnosis.

    Attributes:
        memory_ids: what the question is about.
        workflow_run_id: include what this run left.
        max_nodes: memories at most; ``budget_tokens``: of the rendered block.
    """

    question: str
    memory_ids: tuple[str, ...]
    workflow_run_id: str | None
    max_nodes: int
    budget_tokens: int
    asked: Mapping[str, Any]


@dataclass(slots=True)
class _Found:
    """Memories by importance, each with the reason why it is there."""

    most: int
    memories: dict[str, Memory] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)

    def add(self, memory: Memory, reason: str) -> None:
        known = memory.memory_id in self.memories
        if not known and len(self.memories) >= self.most:
            self.cut.add("max_nodes")
            return
        self.memories[memory.memory_id] = memory
        reasons = self.reasons.setdefault(memory.memory_id, [])
        if reason not in reasons:
            reasons.append(reason)


def gather(
    opened: OpenOrchestrator, viewer: Viewer, inquiry: DiagnosisRequest
) -> tuple[EvidenceBundle, Receipt]:
    """Return the evidence, and the one receipt of all of it.

    Raises:
        StorageError: the database cannot be read.
    """
    found = _Found(inquiry.max_nodes)
    missing = _asked_for(opened, viewer, inquiry, found)
    asked = list(found.memories)
    grounds = _grounds(opened, viewer, asked, found)
    bundle = _recalled(opened, viewer, inquiry, found)
    edges = _around(opened, viewer, found)
    open_ones = _disagreeing(opened, viewer, found)
    now = opened.clock.now_ms()
    mark = new_mark(opened.ids)
    items = _items(opened, found, now)
    joins = {each.edge_id: each for each in (*edges, *(one.edge for one in open_ones))}
    evidence = _within(inquiry, items, list(joins.values()), open_ones, mark)
    shown = set(evidence.memory_ids)
    cut = found.cut | set(evidence.cut_reasons) | _cut_of(bundle)
    evidence = evidence.model_copy(
        update={
            "grounds": _between(grounds, shown),
            "missing": tuple(missing),
            "cut": bool(cut),
            "cut_reasons": tuple(sorted(cut)),
            "degraded": () if bundle is None else bundle.degraded,
            "receipt_id": opened.ids.new("rcl_"),
        }
    )
    return evidence, _receipt(inquiry, evidence, bundle, now)


def _asked_for(
    opened: OpenOrchestrator, viewer: Viewer, inquiry: DiagnosisRequest, found: _Found
) -> list[str]:
    """Add the requested memories; return the ids that do not exist."""
    view = View(viewer, None, STANDING)
    wanted = list(dict.fromkeys(inquiry.memory_ids))
    with opened.database.read() as snapshot:
        if inquiry.workflow_run_id is not None:
            most = inquiry.max_nodes + 1
            run = sources_rows.of_run(snapshot, inquiry.workflow_run_id, view, limit=most)
            wanted = list(dict.fromkeys((*wanted, *run)))
        there = visible_memories(snapshot, wanted, view)
    for each in there.values():
        found.add(each, "asked")
    return [each for each in inquiry.memory_ids if each not in there]


def _grounds(
    opened: OpenOrchestrator, viewer: Viewer, asked: Sequence[str], found: _Found
) -> dict[str, tuple[Link, ...]]:
    """Add what the requested memories depend on, step by step."""
    grounds: dict[str, tuple[Link, ...]] = {}
    for memory_id in asked[:MAX_TRACED]:
        traced = trace(opened.database, memory_id, viewer=viewer)
        if traced.cut:
            found.cut.add("grounds")
        if traced.grounds:
            grounds[memory_id] = traced.grounds
        for link in traced.grounds:
            ground = traced.memory_by_id[link.memory_id]
            if ground.status in STANDING:
                found.add(ground, f"ground:{memory_id}")
    if len(asked) > MAX_TRACED:
        found.cut.add("grounds")
    return grounds


def _recalled(
    opened: OpenOrchestrator, viewer: Viewer, inquiry: DiagnosisRequest, found: _Found
) -> Bundle | None:
    if not inquiry.question.strip():
        return None
    # What is asked for and its neighbours get the other half.
    most = max(inquiry.max_nodes // 2, 1)
    top_n = min(opened.settings.memory.retrieval.top_n, most)
    bundle = answer(opened, viewer, RecallRequest(query=inquiry.question, top_n=top_n))
    for rank, item in enumerate(bundle.items, start=1):
        found.add(item.memory, f"recall:{rank}")
    return bundle


def _around(opened: OpenOrchestrator, viewer: Viewer, found: _Found) -> tuple[Edge, ...]:
    """Add neighbours while there is room; return the edges among all of them."""
    if not found.memories:
        return ()
    # One more than there is room for, so that it shows.
    most = min(found.most + 1, MAX_NODES_LIMIT)
    around = subgraph(opened.database, list(found.memories), max_nodes=most, viewer=viewer)
    found.cut.update(around.cut_reasons)
    for node in around.nodes:
        distance = around.distances[node.memory_id]
        if distance:
            found.add(node, f"hop:{distance}")
    return around.edges


def _disagreeing(
    opened: OpenOrchestrator, viewer: Viewer, found: _Found
) -> tuple[Contradiction, ...]:
    """Return open contradictions of the memories; add the other sides while there is room."""
    view = View(viewer)
    with opened.database.read() as snapshot:
        edges = contradictions(snapshot, view, resolved=False, limit=MAX_CONTRADICTIONS)
        known = set(found.memories)
        edges = [each for each in edges if {each.from_id, each.to_id} & known]
        ends = {end for edge in edges for end in (edge.from_id, edge.to_id)}
        memories = visible_memories(snapshot, sorted(ends), view)
        sources = {each.source_id: each for each in sources_of(snapshot, memories.values())}
    for edge in edges:
        for one, other in ((edge.from_id, edge.to_id), (edge.to_id, edge.from_id)):
            if other in known:
                found.add(memories[one], f"contradicts:{other}")
    now = opened.clock.now_ms()
    return tuple(
        describe(edge, memories[edge.from_id], memories[edge.to_id], sources, now) for edge in edges
    )


def _items(opened: OpenOrchestrator, found: _Found, now: int) -> list[EvidenceItem]:
    with opened.database.read() as snapshot:
        sources = {each.source_id: each for each in sources_of(snapshot, found.memories.values())}
    exponent = opened.settings.memory.decay.exponent
    return [
        _item(memory, sources[memory.source_id], found.reasons[memory_id], now, exponent)
        for memory_id, memory in found.memories.items()
    ]


def _item(
    memory: Memory, source: StoredSource, reasons: Iterable[str], now: int, exponent: float
) -> EvidenceItem:
    return EvidenceItem(
        memory=memory,
        source=source,
        citation=citation(memory, source),
        effective_confidence=confidence_at(memory, now, exponent),
        reasons=tuple(reasons),
    )


def _within(
    inquiry: DiagnosisRequest,
    items: Sequence[EvidenceItem],
    edges: Sequence[Edge],
    open_ones: Sequence[Contradiction],
    mark: str,
) -> EvidenceBundle:
    """Return as many of the first items as fit the budget, and their edges. Pure."""

    def of(count: int) -> EvidenceBundle:
        taken = items[:count]
        ids = {each.memory.memory_id for each in taken}
        among = tuple(each for each in edges if each.from_id in ids and each.to_id in ids)
        shown = tuple(each for each in open_ones if {each.edge.from_id, each.edge.to_id} & ids)
        text = _text(taken, among, mark)
        return EvidenceBundle(
            question=inquiry.question,
            items=tuple(taken),
            edges=among,
            contradictions=shown,
            text=text,
            token_cost=token_cost(text),
        )

    low, high = 0, len(items)
    best = of(high)
    if best.token_cost <= inquiry.budget_tokens:
        return best
    # The text grows with every item.
    while low < high:
        middle = (low + high + 1) // 2
        if of(middle).token_cost <= inquiry.budget_tokens:
            low = middle
        else:
            high = middle - 1
    return of(low).model_copy(update={"cut_reasons": ("budget_tokens",)})


def _text(items: Sequence[EvidenceItem], edges: Sequence[Edge], mark: str) -> str:
    """Return the records, and below them the edges, by ids and types only, which are our own."""
    lines = [
        BlockLine(
            memory_id=each.memory.memory_id,
            kind=each.memory.kind,
            text=each.memory.content,
            at=each.memory.created_at if each.memory.event_time is None else each.memory.event_time,
            citation=short_citation(each.memory, each.source),
            confidence=each.effective_confidence,
        )
        for each in items
    ]
    block = render(lines, BlockFormat.FENCED, mark=mark)
    if not edges:
        return block
    joined = "\n".join(_relation(each) for each in edges[:MAX_EDGES_SHOWN])
    return f"{block}\n{RELATIONS}\n{joined}\n"


def _relation(edge: Edge) -> str:
    state = ""
    if edge.edge_type is EdgeType.CONTRADICTS:
        state = f" ({contradiction_state(edge.resolution)})"
    return f"- {edge.from_id} {edge.edge_type} {edge.to_id}{state}"


def _between(
    grounds: Mapping[str, tuple[Link, ...]], shown: set[str]
) -> dict[str, tuple[Link, ...]]:
    kept = {
        one: tuple(each for each in links if each.memory_id in shown and each.via_id in shown)
        for one, links in grounds.items()
        if one in shown
    }
    return {one: links for one, links in kept.items() if links}


def _cut_of(bundle: Bundle | None) -> set[str]:
    # That more would answer is no news: a diagnosis asks for the best.
    return set() if bundle is None else set(bundle.cut_reasons) - {"top_n"}


def _receipt(
    inquiry: DiagnosisRequest, evidence: EvidenceBundle, bundle: Bundle | None, now: int
) -> Receipt:
    recalled = {} if bundle is None else {each.memory.memory_id: each for each in bundle.items}
    items = []
    for memory_id in evidence.memory_ids:
        one = recalled.get(memory_id)
        items.append(
            ReceiptItem(memory_id, 0.0)
            if one is None
            else ReceiptItem(memory_id, one.score, one.legs, one.modifiers)
        )
    digest = hashlib.sha256(evidence.text.encode()).hexdigest()
    return Receipt(
        receipt_id=evidence.receipt_id or "",
        at=now,
        query=inquiry.question,
        asked={**inquiry.asked, "purpose": PURPOSE, "sha256": digest},
        items=tuple(items),
        change_seq=None if bundle is None else bundle.account.change_seq,
        left_out=None if bundle is None else bundle.account.left_out,
    )
