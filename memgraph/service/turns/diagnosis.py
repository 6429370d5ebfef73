"""Diagnoses: collect evidence from the graph, and store findings in it."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final, TypeAlias, Unpack

from memgraph.errors import InvalidInput
from memgraph.graph.subgraph import subgraph
from memgraph.graph.trace import MAX_DEPTH
from memgraph.graph.walk import Walk
from memgraph.ids import short_id
from memgraph.model.columns import DEFAULT_IMPORTANCE
from memgraph.model.context import BlockFormat
from memgraph.model.enums import CapturedBy, EdgeType, Scope, Sensitivity, SourceType
from memgraph.model.recall import RecallRequest
from memgraph.model.receipts import Receipt, ReceiptItem
from memgraph.model.turns import (
    MAX_EVIDENCE,
    DiagnosisFinding,
    EvidenceBundle,
    EvidenceItem,
    FindingsInput,
    InquiryInput,
    RejectedPart,
    TurnFields,
    TurnInput,
    WriteBackResult,
)
from memgraph.model.values import Edge, EdgeInput, Memory, MemoryInput
from memgraph.operations.context.block import new_mark
from memgraph.operations.read.recall import answer
from memgraph.operations.tools.rules import sensitivity_of
from memgraph.rules.budget import token_cost
from memgraph.rules.evidence import BASIS_EDGES
from memgraph.rules.lifecycle import contradiction_state, is_change_mark
from memgraph.rules.lines import in_time, line_of, render
from memgraph.rules.proposals import MAX_CONFIDENCE, MAX_IMPORTANCE
from memgraph.rules.scope import Viewer
from memgraph.rules.similarity import MEMORY_ID
from memgraph.rules.sources import citation
from memgraph.rules.workflow import DEFAULT_CONFIDENCE
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.service.turns.base import query_of, unfit
from memgraph.service.turns.write_back import WriteBackHooks, stored
from memgraph.store import sources
from memgraph.store.graph import Direction, visible_memories
from memgraph.store.receipts import NewReceipt
from memgraph.store.visibility import STANDING, View

PURPOSE = "on_diagnostics"
_ASKED: Final = {*TurnInput.model_fields, "memory_ids"} - {"deadline_ms"}
RELATIONS = "Relations of these records, by id:"
_CITED = re.compile(rf"\b{MEMORY_ID}\b|(?<=#)\w+")
_WIDTH = (Scope.SESSION, Scope.PROJECT, Scope.GLOBAL)

Finding: TypeAlias = str | DiagnosisFinding | Mapping[str, Any]


def gather(
    opened: OpenOrchestrator, viewer: Viewer, inquiry: InquiryInput
) -> tuple[EvidenceBundle, Receipt]:
    """Return the evidence for a question, and a receipt of it.

    The evidence is the requested memories and those of the run, what they depend on, the best
    matches of the question, and the neighbours of all of these, in this order.
    """
    settings, at = opened.settings.memory, opened.clock.now_ms()
    asked = _asked(opened, viewer, inquiry)
    # The other half of the places is for the requested memories and their neighbours.
    top_n = min(settings.retrieval.top_n, max(inquiry.max_nodes // 2, 1))
    question = query_of(inquiry.question)
    bundle, _ = answer(opened, viewer, RecallRequest(query=question, top_n=top_n))
    recalled = {item.memory.memory_id: item for item in bundle.items if question.strip()}
    ids = list(dict.fromkeys([*asked, *recalled]))
    with opened.database.read() as snapshot:
        view = View(viewer, None, STANDING)
        around = subgraph(snapshot, view, ids, max_nodes=inquiry.max_nodes)
    sources_by_id = {source.source_id: source for source in around.sources}
    items = [
        EvidenceItem(memory=memory, source=source, citation=citation(memory, source))
        for memory in around.nodes
        for source in [sources_by_id[memory.source_id]]
    ]
    budget = inquiry.budget_tokens
    if budget is None:
        budget = settings.context.budget_tokens
    mark, zone = new_mark(opened.ids), opened.zone
    items, text = _within(budget, items, around.edges, mark, zone)
    shown = [item.memory.memory_id for item in items]
    # A diagnosis requests only the best matches, so reaching ``top_n`` is no cut.
    cut = {*around.cut_reasons, *bundle.cut_reasons} - {"top_n"}
    if len(items) < len(around.nodes):
        cut.add("budget_tokens")
    evidence = EvidenceBundle(
        question=inquiry.question,
        items=tuple(items),
        edges=tuple(edge for edge in around.edges if {edge.from_id, edge.to_id} <= {*shown}),
        missing=tuple(each for each in inquiry.memory_ids if each not in asked),
        cut_reasons=tuple(sorted(cut)),
        text=text,
        token_cost=token_cost(text),
        degraded=bundle.degraded,
        receipt_id=bundle.receipt_id,
    )
    request = inquiry.model_dump(mode="json", exclude_defaults=True, include=_ASKED)
    digest = hashlib.sha256(text.encode()).hexdigest()
    receipt = Receipt(
        receipt_id=bundle.receipt_id,
        at=at,
        query=question,
        asked={**request, "purpose": PURPOSE, "sha256": digest},
        items=tuple(
            ReceiptItem.of(recalled[each]) if each in recalled else ReceiptItem(each, 0.0)
            for each in shown
        ),
        change_seq=bundle.account.change_seq,
        left_out=bundle.account.left_out,
    )
    return evidence, receipt


def _asked(opened: OpenOrchestrator, viewer: Viewer, inquiry: InquiryInput) -> list[str]:
    """Return the visible ids of the requested memories and the run's, then of their evidence."""
    view, run_id = View(viewer, None, STANDING), inquiry.workflow_run_id
    with opened.database.read() as snapshot:
        run: list[str] = []
        if run_id is not None:
            run = sources.of_run(snapshot, run_id, view, limit=inquiry.max_nodes + 1)
        visible = list(visible_memories(snapshot, [*inquiry.memory_ids, *run], view))
        behind = Walk(snapshot, view, BASIS_EDGES, MAX_DEPTH, MAX_EVIDENCE, derivations=True)
        return visible + [link.memory_id for link in behind.links(visible, Direction.OUT)]


def _within(
    budget: int, items: list[EvidenceItem], edges: Sequence[Edge], mark: str, zone: tzinfo
) -> tuple[list[EvidenceItem], str]:
    """Return as many of the items as the budget allows, and their text, which grows with each."""

    def text_of(number: int) -> str:
        return _text(items[:number], edges, mark, zone)

    sizes = range(1, len(items) + 1)
    number = bisect_right(sizes, budget, key=lambda size: token_cost(text_of(size)))
    return items[:number], text_of(number)


def _text(items: Sequence[EvidenceItem], edges: Sequence[Edge], mark: str, zone: tzinfo) -> str:
    """Render the records in order of time, and below them the edges by the numbers of their lines.

    Each line ends in the short id by which a finding cites its memory.
    """
    lines = in_time(
        line_of(item.memory, item.source, handle=short_id(item.memory.memory_id)) for item in items
    )
    text = render(lines, BlockFormat.FENCED, mark=mark, zone=zone)
    numbers = {line.memory_id: number for number, line in enumerate(lines, start=1)}
    relations = []
    for edge in edges:
        is_mark = is_change_mark(edge)
        if not {edge.from_id, edge.to_id} <= numbers.keys() or (is_mark and edge.resolved_at):
            continue
        state = " (probably)" if is_mark else ""
        if edge.edge_type is EdgeType.CONTRADICTS:
            state = f" ({contradiction_state(edge.resolution)})"
        ends = numbers[edge.from_id], numbers[edge.to_id]
        relations.append(f"- [{ends[0]}] {edge.edge_type} [{ends[1]}]{state}\n")
    return "".join((text, "\n", RELATIONS, "\n", *relations)) if relations else text


class DiagnosisHooks(WriteBackHooks):
    """The part of ``MemoryHooks`` for diagnoses."""

    def on_diagnostics(
        self,
        question: str,
        *,
        memory_ids: Iterable[str] = (),
        max_nodes: int = 50,
        budget_tokens: int | None = None,
        **turn: Unpack[TurnFields],
    ) -> EvidenceBundle:
        """Return the evidence that the memory has about a question, with all sources.

        Args:
            memory_ids, max_nodes, budget_tokens, turn: see ``InquiryInput``.

        Raises:
            InvalidInput: a field is invalid.
        """
        fields = {"memory_ids": memory_ids, "max_nodes": max_nodes, "budget_tokens": budget_tokens}
        call = self._begin("on_diagnostics", InquiryInput, turn, question=question, **fields)
        if call.denied:
            return EvidenceBundle(question=question, warnings=call.denied)

        def gathered() -> EvidenceBundle:
            viewer = self._viewer(call.turn)
            with self._service.opened(self.name) as opened:
                evidence, receipt = gather(opened, viewer, call.turn)
                self._handle(viewer)._keep_receipt(opened, NewReceipt(receipt))
            return evidence

        task = self._contexts.submit(gathered)
        evidence, warnings = self._read("diagnostics", task, call.until)
        return evidence or EvidenceBundle(question=question, warnings=warnings)

    def record_findings(
        self,
        findings: Iterable[Finding],
        *,
        evidence: EvidenceBundle | Sequence[Memory] = (),
        **turn: Unpack[TurnFields],
    ) -> WriteBackResult:
        """Store the findings of a diagnosis, with their evidence.

        A finding is derived from all memories of the evidence, and caused by those in its
        ``caused_by``, or else by those that it cites. It has the narrowest scope and the highest
        sensitivity of its evidence, so that it is hidden from readers who may not see the evidence.

        Args:
            findings: up to 100; each a text, a ``DiagnosisFinding``, or its fields.
            evidence: as ``on_diagnostics`` returned it, or memories.
            turn: the fields of ``TurnInput``.

        Raises:
            InvalidInput: a finding is invalid, or is an Identity, which only a person may state;
                the evidence belongs to another project or task, or contains another agent's
                private memories.
        """
        call = self._begin("record_findings", FindingsInput, turn, findings=findings)
        place = call.turn
        if isinstance(evidence, EvidenceBundle):
            evidence = [item.memory for item in evidence.items]
        memories = tuple(evidence)
        shelter = _restrictions(memories, place.scope, self._granted.agent_id)
        # It sees what it stores in the shelter, to recognise duplicates.
        inside = {f"{shelter['scope'].tier}_id": shelter["scope_id"]} if shelter["scope_id"] else {}
        handle = self._handle(self._viewer(place.model_copy(update=inside), self._writing))
        kept: dict[str, DiagnosisFinding] = {}
        rejected: list[RejectedPart] = []
        for number, finding in enumerate(place.findings):
            if unfit(finding.content) is None:
                kept[f"f{number}"] = finding
            else:
                rejected.append(RejectedPart(locator=f"/{number}", code="content"))

        def work() -> WriteBackResult:
            # Evidence that was erased in the meantime is left out.
            visible = handle.visible({memory.memory_id for memory in memories})
            grounds = tuple(each.memory_id for each in memories if each.memory_id in visible)
            source = place.source(SourceType.DIAGNOSTICS, CapturedBy.EXTRACTOR)
            fields = {**shelter, "source": source, "derived_from": grounds}
            inputs = [_memory(key, finding, fields) for key, finding in kept.items()]
            links = [
                EdgeInput(from_id=f"#{key}", to_id=cause, edge_type=EdgeType.CAUSED_BY)
                for key, finding in kept.items()
                for cause in _causes(finding, memories)
            ]
            return stored(handle, inputs, links)

        written = self._write(call, work, WriteBackResult(acknowledged=False))
        return written.model_copy(update={"rejected": (*rejected, *written.rejected)})


def _memory(key: str, finding: DiagnosisFinding, fields: Mapping[str, Any]) -> MemoryInput:
    chosen, confidence = finding.importance, finding.confidence
    importance = DEFAULT_IMPORTANCE[finding.type] if chosen is None else chosen
    return MemoryInput(
        key=key,
        content=finding.content.strip(),
        type=finding.type,
        importance=min(importance, MAX_IMPORTANCE),
        confidence=min(DEFAULT_CONFIDENCE if confidence is None else confidence, MAX_CONFIDENCE),
        tags=finding.tags,
        **fields,
    )


def _causes(finding: DiagnosisFinding, grounds: Sequence[Memory]) -> tuple[str, ...]:
    """Return the ids of a finding's causes: its own, or the evidence that it cites."""
    if finding.caused_by is not None:
        return tuple(dict.fromkeys(finding.caused_by))
    ids = [memory.memory_id for memory in grounds]
    known = {name: each for each in ids for name in (each, short_id(each))}
    cited = [name if name in known else name.lower() for name in _CITED.findall(finding.content)]
    return tuple(dict.fromkeys(known[name] for name in cited if name in known))


def _restrictions(
    grounds: Sequence[Memory], scope: Mapping[str, Any], agent_id: str | None
) -> dict[str, Any]:
    """Return the scope, sensitivity and agent of a finding, as narrow as its evidence.

    Raises:
        InvalidInput: the evidence is from two projects or tasks, which no reader may see together,
            or contains another agent's private memories.
    """
    own_place = (Scope(scope["scope"]), scope.get("scope_id"))
    places = [own_place, *((memory.scope, memory.scope_id) for memory in grounds)]
    for width in (Scope.PROJECT, Scope.SESSION):
        if len({scope_id for scope, scope_id in places if scope is width}) > 1:
            raise InvalidInput("the evidence belongs to another project or task", field="evidence")
    narrowest, scope_id = min(places, key=lambda item: _WIDTH.index(item[0]))
    agents = {memory.agent_id for memory in grounds if memory.agent_id is not None}
    if not agents <= {agent_id}:
        raise InvalidInput("the evidence belongs to another agent", field="evidence")
    return {
        "scope": narrowest,
        "scope_id": scope_id,
        "sensitivity": sensitivity_of(Sensitivity.INTERNAL, grounds),
        "agent_id": agent_id if agents else None,
    }
