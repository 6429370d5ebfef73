"""Diagnoses: collect evidence from the graph, and store findings in it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from memgraph.errors import InvalidInput
from memgraph.graph.cases import describe
from memgraph.graph.subgraph import MAX_NODES_LIMIT, subgraph
from memgraph.graph.trace import trace
from memgraph.ids import short_id
from memgraph.model.columns import DEFAULT_IMPORTANCE
from memgraph.model.context import BlockFormat
from memgraph.model.enums import (
    CapturedBy,
    EdgeType,
    MemoryType,
    Scope,
    Sensitivity,
    SourceType,
)
from memgraph.model.graph import Contradiction, Link
from memgraph.model.recall import MAX_QUERY_CHARS, Bundle, RecallRequest
from memgraph.model.receipts import Receipt, ReceiptItem
from memgraph.model.turns import (
    DiagnosisFinding,
    EvidenceBundle,
    EvidenceItem,
    RejectedPart,
    WriteBackResult,
)
from memgraph.model.values import (
    Edge,
    EdgeInput,
    Memory,
    MemoryInput,
    Name,
    StoredSource,
    Value,
    validated,
)
from memgraph.operations.context.block import new_mark
from memgraph.operations.read.recall import answer
from memgraph.rules.budget import token_cost
from memgraph.rules.decay import confidence_at
from memgraph.rules.lifecycle import contradiction_state, is_change_mark
from memgraph.rules.lines import in_time, line_of, render
from memgraph.rules.proposals import MAX_CONFIDENCE, MAX_IMPORTANCE
from memgraph.rules.scope import Viewer
from memgraph.rules.similarity import MEMORY_ID
from memgraph.rules.sources import citation
from memgraph.rules.workflow_candidates import DEFAULT_CONFIDENCE
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.service.turns.capture import (
    TurnPlace,
    checked_text,
    place_of,
    several,
    storable,
    unfit,
    warning_of,
)
from memgraph.service.turns.write_back import WriteBackHooks, scope_of, stored
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
        memory_ids: the memories that the question is about.
        workflow_run_id: include the memories that this run stored.
        max_nodes: the maximum number of memories.
        budget_tokens: the maximum size of the rendered block, in tokens.
        asked: the request's fields for the receipt.
    """

    question: str
    memory_ids: tuple[str, ...]
    workflow_run_id: str | None
    max_nodes: int
    budget_tokens: int
    asked: Mapping[str, Any]


@dataclass(slots=True)
class _GatheredMemories:
    """The memories collected so far, most relevant first, with the reasons for including them.

    Attributes:
        most: the maximum number of memories.
        cut: the limits that were reached.
    """

    most: int
    memories: dict[str, Memory] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)

    def add(self, memory: Memory, reason: str) -> None:
        is_known = memory.memory_id in self.memories
        if not is_known and len(self.memories) >= self.most:
            self.cut.add("max_nodes")
            return
        self.memories[memory.memory_id] = memory
        reasons = self.reasons.setdefault(memory.memory_id, [])
        if reason not in reasons:
            reasons.append(reason)


def gather(
    opened: OpenOrchestrator, viewer: Viewer, inquiry: DiagnosisRequest
) -> tuple[EvidenceBundle, Receipt]:
    """Return the evidence, and a single receipt that covers all of it.

    Raises:
        StorageError: the database cannot be read.
    """
    gathered = _GatheredMemories(inquiry.max_nodes)
    missing = _add_requested(opened, viewer, inquiry, gathered)
    memory_ids = list(gathered.memories)
    grounds = _add_evidence(opened, viewer, memory_ids, gathered)
    bundle = _add_recalled(opened, viewer, inquiry, gathered)
    edges = _add_neighbours(opened, viewer, gathered)
    open_contradictions = _add_contradicting(opened, viewer, gathered)
    now = opened.clock.now_ms()
    mark = new_mark(opened.ids)
    items = _items(opened, gathered, now)
    edges_by_id = {
        edge.edge_id: edge
        for edge in (*edges, *(contradiction.edge for contradiction in open_contradictions))
    }
    zone = ZoneInfo(opened.settings.memory.schedule.timezone)
    found = list(edges_by_id.values())
    evidence = _fit_budget(inquiry, items, found, open_contradictions, mark, zone)
    shown_ids = set(evidence.memory_ids)
    cut = gathered.cut | set(evidence.cut_reasons) | _cut_reasons(bundle)
    evidence = evidence.model_copy(
        update={
            "grounds": _shown_grounds(grounds, shown_ids),
            "missing": tuple(missing),
            "cut": bool(cut),
            "cut_reasons": tuple(sorted(cut)),
            "degraded": () if bundle is None else bundle.degraded,
            "receipt_id": opened.ids.new("rcl_"),
        }
    )
    return evidence, _receipt(inquiry, evidence, bundle, now)


def _add_requested(
    opened: OpenOrchestrator, viewer: Viewer, inquiry: DiagnosisRequest, gathered: _GatheredMemories
) -> list[str]:
    """Add the requested memories; return the ids that do not exist."""
    view = View(viewer, None, STANDING)
    memory_ids = list(dict.fromkeys(inquiry.memory_ids))
    with opened.database.read() as snapshot:
        if inquiry.workflow_run_id is not None:
            limit = inquiry.max_nodes + 1
            run = sources_rows.of_run(snapshot, inquiry.workflow_run_id, view, limit=limit)
            memory_ids = list(dict.fromkeys((*memory_ids, *run)))
        visible = visible_memories(snapshot, memory_ids, view)
    for memory in visible.values():
        gathered.add(memory, "asked")
    return [memory_id for memory_id in inquiry.memory_ids if memory_id not in visible]


def _add_evidence(
    opened: OpenOrchestrator, viewer: Viewer, memory_ids: Sequence[str], gathered: _GatheredMemories
) -> dict[str, tuple[Link, ...]]:
    """Add what the requested memories depend on, step by step."""
    grounds: dict[str, tuple[Link, ...]] = {}
    for memory_id in memory_ids[:MAX_TRACED]:
        traced = trace(opened.database, memory_id, viewer=viewer)
        if traced.cut:
            gathered.cut.add("grounds")
        if traced.grounds:
            grounds[memory_id] = traced.grounds
        for link in traced.grounds:
            ground = traced.memory_by_id[link.memory_id]
            if ground.status in STANDING:
                gathered.add(ground, f"ground:{memory_id}")
    if len(memory_ids) > MAX_TRACED:
        gathered.cut.add("grounds")
    return grounds


def _add_recalled(
    opened: OpenOrchestrator, viewer: Viewer, inquiry: DiagnosisRequest, gathered: _GatheredMemories
) -> Bundle | None:
    if not inquiry.question.strip():
        return None
    # The other half of the places is for the requested memories and their neighbours.
    limit = max(inquiry.max_nodes // 2, 1)
    top_n = min(opened.settings.memory.retrieval.top_n, limit)
    bundle = answer(opened, viewer, RecallRequest(query=inquiry.question, top_n=top_n))
    for rank, item in enumerate(bundle.items, start=1):
        gathered.add(item.memory, f"recall:{rank}")
    return bundle


def _add_neighbours(
    opened: OpenOrchestrator, viewer: Viewer, gathered: _GatheredMemories
) -> tuple[Edge, ...]:
    """Add neighbours while there is room; return the edges among all of them."""
    if not gathered.memories:
        return ()
    # Request one more than fits, so that the cut is noticed.
    limit = min(gathered.most + 1, MAX_NODES_LIMIT)
    around = subgraph(opened.database, list(gathered.memories), max_nodes=limit, viewer=viewer)
    gathered.cut.update(around.cut_reasons)
    for node in around.nodes:
        distance = around.distances[node.memory_id]
        if distance:
            gathered.add(node, f"hop:{distance}")
    return around.edges


def _add_contradicting(
    opened: OpenOrchestrator, viewer: Viewer, gathered: _GatheredMemories
) -> tuple[Contradiction, ...]:
    """Return open contradictions that involve the memories; add the other sides while they fit."""
    view = View(viewer)
    with opened.database.read() as snapshot:
        edges = contradictions(snapshot, view, resolved=False, limit=MAX_CONTRADICTIONS)
        known_ids = set(gathered.memories)
        edges = [edge for edge in edges if {edge.from_id, edge.to_id} & known_ids]
        end_ids = {end for edge in edges for end in (edge.from_id, edge.to_id)}
        memories = visible_memories(snapshot, sorted(end_ids), view)
        sources = {source.source_id: source for source in sources_of(snapshot, memories.values())}
    for edge in edges:
        for memory_id, other_id in ((edge.from_id, edge.to_id), (edge.to_id, edge.from_id)):
            if other_id in known_ids:
                gathered.add(memories[memory_id], f"contradicts:{other_id}")
    now = opened.clock.now_ms()
    return tuple(
        describe(edge, memories[edge.from_id], memories[edge.to_id], sources, now) for edge in edges
    )


def _items(opened: OpenOrchestrator, gathered: _GatheredMemories, now: int) -> list[EvidenceItem]:
    with opened.database.read() as snapshot:
        sources = {
            source.source_id: source for source in sources_of(snapshot, gathered.memories.values())
        }
    exponent = opened.settings.memory.decay.exponent
    return [
        _item(memory, sources[memory.source_id], gathered.reasons[memory_id], now, exponent)
        for memory_id, memory in gathered.memories.items()
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


def _fit_budget(
    inquiry: DiagnosisRequest,
    items: Sequence[EvidenceItem],
    edges: Sequence[Edge],
    open_contradictions: Sequence[Contradiction],
    mark: str,
    zone: tzinfo,
) -> EvidenceBundle:
    """Return evidence with as many of the first items as fit the budget. Pure."""

    def of(count: int) -> EvidenceBundle:
        kept_items = items[:count]
        ids = {item.memory.memory_id for item in kept_items}
        item_edges = tuple(edge for edge in edges if edge.from_id in ids and edge.to_id in ids)
        contradictions = tuple(
            contradiction
            for contradiction in open_contradictions
            if {contradiction.edge.from_id, contradiction.edge.to_id} & ids
        )
        text = _text(kept_items, item_edges, mark, zone)
        return EvidenceBundle(
            question=inquiry.question,
            items=tuple(kept_items),
            edges=item_edges,
            contradictions=contradictions,
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


def _text(items: Sequence[EvidenceItem], edges: Sequence[Edge], mark: str, zone: tzinfo) -> str:
    """Render the records in order of time, and below them the edges by the numbers of their lines.

    Each line ends in the short id by which a finding cites its memory.
    An edge shows only numbers and types, which are generated by us and need no escaping.
    """
    lines = in_time(
        replace(line_of(item.memory, item.source), handle=short_id(item.memory.memory_id))
        for item in items
    )
    block = render(lines, BlockFormat.FENCED, mark=mark, zone=zone)
    edges = [edge for edge in edges if not is_change_mark(edge) or edge.resolved_at is None]
    if not edges:
        return block
    numbers = {line.memory_id: number for number, line in enumerate(lines, start=1)}
    joined = "\n".join(_relation(edge, numbers) for edge in edges[:MAX_EDGES_SHOWN])
    return f"{block}\n{RELATIONS}\n{joined}\n"


def _relation(edge: Edge, numbers: Mapping[str, int]) -> str:
    state = ""
    if edge.edge_type is EdgeType.CONTRADICTS:
        state = f" ({contradiction_state(edge.resolution)})"
    elif is_change_mark(edge):
        state = " (probably)"
    return f"- [{numbers[edge.from_id]}] {edge.edge_type} [{numbers[edge.to_id]}]{state}"


def _shown_grounds(
    grounds: Mapping[str, tuple[Link, ...]], shown_ids: set[str]
) -> dict[str, tuple[Link, ...]]:
    visible_links = {
        memory_id: tuple(
            link for link in links if link.memory_id in shown_ids and link.via_id in shown_ids
        )
        for memory_id, links in grounds.items()
        if memory_id in shown_ids
    }
    return {memory_id: links for memory_id, links in visible_links.items() if links}


def _cut_reasons(bundle: Bundle | None) -> set[str]:
    # A diagnosis requests only the best matches, so reaching ``top_n`` is no cut.
    return set() if bundle is None else set(bundle.cut_reasons) - {"top_n"}


def _receipt(
    inquiry: DiagnosisRequest, evidence: EvidenceBundle, bundle: Bundle | None, now: int
) -> Receipt:
    recalled = {} if bundle is None else {item.memory.memory_id: item for item in bundle.items}
    items = []
    for memory_id in evidence.memory_ids:
        recall_item = recalled.get(memory_id)
        items.append(
            ReceiptItem(memory_id, 0.0)
            if recall_item is None
            else ReceiptItem(memory_id, recall_item.score, recall_item.legs, recall_item.modifiers)
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


MAX_NODES = 2_000
MAX_BUDGET_TOKENS = 10_000_000
MAX_FINDINGS = 100
MAX_CAUSES = 5
_CITED = re.compile(rf"\b{MEMORY_ID}\b|(?<=#)\w+")
_WIDTH = (Scope.SESSION, Scope.PROJECT, Scope.GLOBAL)


class _Ids(Value):
    memory_ids: tuple[Name, ...]


class DiagnosisHooks(WriteBackHooks):
    """The part of ``MemoryHooks`` for diagnoses."""

    def on_diagnostics(
        self,
        question: str,
        *,
        memory_ids: Iterable[str] = (),
        workflow_run_id: str | None = None,
        task_id: str | None = None,
        project_id: str | None = None,
        orchestrator: str | None = None,
        max_nodes: int = 50,
        budget_tokens: int | None = None,
        deadline_ms: int | None = None,
    ) -> EvidenceBundle:
        """Return the evidence that the memory has about a question, with all sources.

        Args:
            memory_ids: the memories that the question is about.
            workflow_run_id: include the memories that this run stored.
            task_id, project_id: include memories of this task and project besides global ones.
            max_nodes: the maximum number of memories, 1 to 2,000.
            budget_tokens: the maximum size of ``text``, 0 to 10,000,000; None: as configured in
                ``memory.context.budget_tokens``.

        Raises:
            InvalidInput: a limit is out of range, an id is empty or too long, or ``memory_ids`` is
                not a list.
        """
        until = self._until(deadline_ms)
        place = place_of(
            workflow_run_id=workflow_run_id,
            task_id=task_id,
            project_id=project_id,
            orchestrator=orchestrator,
        )
        checked_text(question, "question")
        ids = several(memory_ids, "memory_ids")
        checked_ids = validated(_Ids, {"memory_ids": tuple(ids)}).memory_ids
        _check_range("max_nodes", max_nodes, 1, MAX_NODES)
        if budget_tokens is not None:
            _check_range("budget_tokens", budget_tokens, 0, MAX_BUDGET_TOKENS)
        denied = self._denied(place, "on_diagnostics", until)
        if denied is not None:
            return EvidenceBundle(question=question, warnings=(denied,))
        try:
            ticket = self._contexts.submit(
                lambda: self._gathered(place, question, checked_ids, max_nodes, budget_tokens)
            )
            evidence = ticket.result(until)
        except Exception as error:  # noqa: BLE001 - becomes a warning: no turn fails for its memory
            self._conditions.note("diagnostics", error)
            return EvidenceBundle(question=question, warnings=(warning_of(error),))
        self._conditions.note("diagnostics", None)
        return evidence

    def record_findings(
        self,
        findings: str
        | DiagnosisFinding
        | Mapping[str, Any]
        | Iterable[str | DiagnosisFinding | Mapping[str, Any]],
        *,
        evidence: EvidenceBundle | Sequence[Memory] | None = None,
        workflow_run_id: str | None = None,
        step_id: str | None = None,
        conversation_id: str | None = None,
        task_id: str | None = None,
        project_id: str | None = None,
        orchestrator: str | None = None,
        deadline_ms: int | None = None,
    ) -> WriteBackResult:
        """Store the findings of a diagnosis, with their evidence.

        A finding is derived from all memories of the evidence. Its causes are the memories in its
        ``caused_by``; without that, the memories it cites, else the requested ones, else the first
        five recalled ones. It has the narrowest scope and the highest sensitivity of its evidence,
        so that it is hidden from readers who may not see the evidence.

        Args:
            findings: a text, a ``DiagnosisFinding``, its fields, or a list of up to 100 of these.
            evidence: as ``on_diagnostics`` returned it, or memories, none of which was requested or
                recalled.

        Raises:
            InvalidInput: a finding is invalid, or is an Identity, which only a person may state;
                the evidence belongs to another project or task, or contains another agent's
                private memories.
        """
        until = self._until(deadline_ms)
        place = place_of(
            workflow_run_id=workflow_run_id,
            step_id=step_id,
            conversation_id=conversation_id,
            task_id=task_id,
            project_id=project_id,
            orchestrator=orchestrator,
        )
        parsed = _findings(findings)
        if len(parsed) > MAX_FINDINGS:
            raise InvalidInput(f"at most {MAX_FINDINGS} findings are accepted", field="findings")
        denied = self._denied(place, "record_findings", until)
        if denied is not None:
            return WriteBackResult(warnings=(denied,), acknowledged=False)
        usual: tuple[str, ...] = ()
        if isinstance(evidence, EvidenceBundle):
            usual = _usual_causes(evidence)
            evidence = [item.memory for item in evidence.items]
        grounds = tuple(evidence or ())
        shelter = _restrictions(grounds, scope_of(place, None), self._granted.agent_id)
        accepted = [finding for finding in parsed if isinstance(finding, DiagnosisFinding)]
        rejected = [
            RejectedPart(locator=f"/{number}", code="content")
            for number, finding in enumerate(parsed)
            if not isinstance(finding, DiagnosisFinding)
        ]
        causes = [_causes(finding, grounds, usual) for finding in accepted]

        def work() -> WriteBackResult:
            handle = self._writer_for(_extended_place(place, shelter))
            # Skip evidence that was erased in the meantime.
            visible_ids = handle.visible({memory.memory_id for memory in grounds})
            derived = tuple(
                memory.memory_id for memory in grounds if memory.memory_id in visible_ids
            )
            memories = [
                _memory_input(finding, f"f{n}", place, shelter, derived)
                for n, finding in enumerate(accepted)
            ]
            links = [
                EdgeInput(from_id=f"#f{n}", to_id=cause, edge_type=EdgeType.CAUSED_BY)
                for n, cause_ids in enumerate(causes)
                for cause in cause_ids
            ]
            return stored(handle, memories, links)

        return self._written(work, until, rejected)

    def _gathered(
        self,
        place: TurnPlace,
        question: str,
        memory_ids: tuple[str, ...],
        max_nodes: int,
        budget_tokens: int | None,
    ) -> EvidenceBundle:
        fields = place.model_dump(exclude_none=True, exclude={"orchestrator"})
        with self._service.opened(self.name) as opened:
            usual = opened.settings.memory.context.budget_tokens
            inquiry = DiagnosisRequest(
                question=storable(question)[:MAX_QUERY_CHARS],
                memory_ids=memory_ids,
                workflow_run_id=place.workflow_run_id,
                max_nodes=max_nodes,
                budget_tokens=usual if budget_tokens is None else budget_tokens,
                asked=fields | ({"memory_ids": list(memory_ids)} if memory_ids else {}),
            )
            evidence, receipt = gather(opened, self._viewer(place), inquiry)
        self._handle(self._viewer(place)).keep(receipt)
        return evidence


def _check_range(name: str, value: int, minimum: int, maximum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidInput(f"{name} must be between {minimum:,} and {maximum:,}", field=name)


def _findings(
    findings: str
    | DiagnosisFinding
    | Mapping[str, Any]
    | Iterable[str | DiagnosisFinding | Mapping[str, Any]],
) -> list[DiagnosisFinding | str]:
    if isinstance(findings, str | DiagnosisFinding | Mapping):
        return [_finding(findings)]
    return [_finding(finding) for finding in several(findings, "findings")]


def _finding(value: str | DiagnosisFinding | Mapping[str, Any]) -> DiagnosisFinding | str:
    """Return a validated finding, or the reason why its text cannot be stored."""
    if isinstance(value, str):
        return unfit(value) or DiagnosisFinding(content=value.strip())
    if not isinstance(value, DiagnosisFinding | Mapping):
        raise InvalidInput(
            "a finding must be a text, a DiagnosisFinding or its fields", field="findings"
        )
    fields = (
        value if isinstance(value, DiagnosisFinding) else validated(DiagnosisFinding, dict(value))
    )
    if fields.type is MemoryType.IDENTITY:
        raise InvalidInput("only a person can state an Identity", field="type")
    return unfit(fields.content) or fields


def _causes(
    finding: DiagnosisFinding, grounds: Sequence[Memory], usual: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the ids of a finding's causes: its own, the evidence that it cites, or ``usual``."""
    if finding.caused_by is not None:
        return tuple(dict.fromkeys(finding.caused_by))
    ids = [memory.memory_id for memory in grounds]
    known = {name: each for each in ids for name in (each, short_id(each))}
    names = [name if name in known else name.lower() for name in _CITED.findall(finding.content)]
    return tuple(dict.fromkeys(known[name] for name in names if name in known)) or usual


def _usual_causes(evidence: EvidenceBundle) -> tuple[str, ...]:
    """Return the ids of the requested memories, or else of the first recalled ones."""
    asked_ids = [item.memory.memory_id for item in evidence.items if "asked" in item.reasons]
    first = [
        item.memory.memory_id
        for item in evidence.items
        if any(reason.startswith("recall:") for reason in item.reasons)
    ]
    return tuple(asked_ids or first[:MAX_CAUSES])


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
    levels = [memory.sensitivity for memory in grounds]
    sensitivity = max(levels, key=lambda item: item.level, default=Sensitivity.INTERNAL)
    if sensitivity.level < Sensitivity.INTERNAL.level:
        sensitivity = Sensitivity.INTERNAL
    agents = {memory.agent_id for memory in grounds if memory.agent_id is not None}
    if not agents <= {agent_id}:
        raise InvalidInput("the evidence belongs to another agent", field="evidence")
    return {
        "scope": narrowest,
        "scope_id": scope_id,
        "sensitivity": sensitivity,
        "agent_id": agent_id if agents else None,
    }


def _extended_place(place: TurnPlace, shelter: Mapping[str, Any]) -> TurnPlace:
    """Return the place, extended so that findings stored in ``shelter`` are visible from it."""
    ids = {Scope.SESSION: "task_id", Scope.PROJECT: "project_id"}
    name = ids.get(shelter["scope"])
    return place if name is None else place.model_copy(update={name: shelter["scope_id"]})


def _memory_input(
    finding: DiagnosisFinding,
    key: str,
    place: TurnPlace,
    shelter: Mapping[str, Any],
    derived_from: tuple[str, ...],
) -> MemoryInput:
    importance = DEFAULT_IMPORTANCE[finding.type]
    return MemoryInput(
        key=key,
        content=finding.content,
        type=finding.type,
        importance=min(
            importance if finding.importance is None else finding.importance, MAX_IMPORTANCE
        ),
        confidence=min(
            DEFAULT_CONFIDENCE if finding.confidence is None else finding.confidence,
            MAX_CONFIDENCE,
        ),
        tags=finding.tags,
        derived_from=derived_from,
        source=place.source(SourceType.DIAGNOSTICS, CapturedBy.EXTRACTOR),
        **shelter,
    )
