"""Diagnoses: evidence from the graph, and findings stored in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memgraph.errors import InvalidInput
from memgraph.model.defaults import DEFAULT_IMPORTANCE
from memgraph.model.enums import (
    CapturedBy,
    EdgeType,
    MemoryType,
    Scope,
    Sensitivity,
    SourceType,
)
from memgraph.model.recall import MAX_QUERY_CHARS
from memgraph.model.turns import DiagnosisFinding, EvidenceBundle, RejectedPart, WriteBackResult
from memgraph.model.values import EdgeInput, Memory, MemoryInput, Name, Value, validated
from memgraph.rules.echo import MEMORY_ID
from memgraph.rules.proposals import MAX_CONFIDENCE, MAX_IMPORTANCE
from memgraph.rules.workflow_candidates import DEFAULT_CONFIDENCE
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

MAX_NODES = 2_000
MAX_BUDGET_TOKENS = 10_000_000
MAX_FINDINGS = 100
MAX_CAUSES = 5
_ID = re.compile(rf"\b{MEMORY_ID}\b")
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
        """Return what the memory knows about a question, bounded, with all sources.

        Args:
            memory_ids: what the question is about; ``workflow_run_id``: what this run left, too.
            task_id, project_id: whose memories are evidence, beside the global ones.
            max_nodes: 1 to 2,000 memories.
            budget_tokens: of ``text``, 0 to 10,000,000; None: ``memory.context.budget_tokens``.

        Raises:
            InvalidInput: a bound out of its range, an id is empty or too long, no list of ids.
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
        _checked("max_nodes", max_nodes, 1, MAX_NODES)
        if budget_tokens is not None:
            _checked("budget_tokens", budget_tokens, 0, MAX_BUDGET_TOKENS)
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
        evidence: EvidenceBundle | None = None,
        workflow_run_id: str | None = None,
        step_id: str | None = None,
        conversation_id: str | None = None,
        task_id: str | None = None,
        project_id: str | None = None,
        orchestrator: str | None = None,
        deadline_ms: int | None = None,
    ) -> WriteBackResult:
        """Store the findings of a diagnosis, with their evidence.

        A finding is derived from the memories of the evidence and caused by those that it names;
        else by those that it cites, or that were requested, or by the first five that answered. It
        is hidden from readers who may not see them: it has their narrowest scope and their highest
        sensitivity.

        Args:
            findings: 100 at most, or a single one; a text, a ``DiagnosisFinding`` or its fields.

        Raises:
            InvalidInput: an invalid finding; an Identity, which only a person may state; the
                evidence is of another project or task, or contains another agent's private
                memories.
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
            raise InvalidInput(f"findings: {MAX_FINDINGS} at most", field="findings")
        denied = self._denied(place, "record_findings", until)
        if denied is not None:
            return WriteBackResult(warnings=(denied,), acknowledged=False)
        grounds = () if evidence is None else tuple(item.memory for item in evidence.items)
        shelter = _shelter(grounds, scope_of(place, None), self._granted.agent_id)
        accepted = [finding for finding in parsed if isinstance(finding, DiagnosisFinding)]
        rejected = [
            RejectedPart(locator=f"/{number}", code="content")
            for number, finding in enumerate(parsed)
            if not isinstance(finding, DiagnosisFinding)
        ]
        causes = [_causes(finding, evidence) for finding in accepted]

        def work() -> WriteBackResult:
            handle = self._writer_for(_seeing(place, shelter))
            # What was erased meanwhile is no ground any more.
            there = handle.visible({memory.memory_id for memory in grounds})
            derived = tuple(memory.memory_id for memory in grounds if memory.memory_id in there)
            memories = [
                _remembered(finding, f"f{n}", place, shelter, derived)
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
        # With it come numpy and networkx.
        from memgraph.service.turns.evidence import DiagnosisRequest, gather

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


def _checked(name: str, value: int, minimum: int, maximum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidInput(f"{name}: {minimum:,} to {maximum:,}", field=name)


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
    """Return a finding; or why its text cannot be stored."""
    if isinstance(value, str):
        return unfit(value) or DiagnosisFinding(content=value.strip())
    if not isinstance(value, DiagnosisFinding | Mapping):
        raise InvalidInput("a finding: a text, a Finding or its fields", field="findings")
    fields = (
        value if isinstance(value, DiagnosisFinding) else validated(DiagnosisFinding, dict(value))
    )
    if fields.type is MemoryType.IDENTITY:
        raise InvalidInput("type: only a person can state an Identity", field="type")
    return unfit(fields.content) or fields


def _causes(finding: DiagnosisFinding, evidence: EvidenceBundle | None) -> tuple[str, ...]:
    """Return the causes that the finding names, or those from the evidence."""
    if finding.caused_by is not None or evidence is None:
        return tuple(dict.fromkeys(finding.caused_by or ()))
    evidence_ids = evidence.memory_ids
    cited = tuple(
        memory_id
        for memory_id in dict.fromkeys(_ID.findall(finding.content))
        if memory_id in evidence_ids
    )
    if cited:
        return cited
    asked_ids = [item.memory.memory_id for item in evidence.items if "asked" in item.reasons]
    first = [
        item.memory.memory_id
        for item in evidence.items
        if any(reason.startswith("recall:") for reason in item.reasons)
    ]
    return tuple(asked_ids or first[:MAX_CAUSES])


def _shelter(
    grounds: Sequence[Memory], scope: Mapping[str, Any], agent_id: str | None
) -> dict[str, Any]:
    """Return where a finding is stored: the narrowest scope, the highest sensitivity and the agent
    of its evidence.

    Raises:
        InvalidInput: the evidence is of two projects or tasks, which no reader sees both, or of
            another agent's private memories.
    """
    own = (Scope(scope["scope"]), scope.get("scope_id"))
    places = [own, *((memory.scope, memory.scope_id) for memory in grounds)]
    for width in (Scope.PROJECT, Scope.SESSION):
        if len({scope_id for scope, scope_id in places if scope is width}) > 1:
            raise InvalidInput("evidence: it belongs to another project or task", field="evidence")
    narrowest, scope_id = min(places, key=lambda item: _WIDTH.index(item[0]))
    levels = [memory.sensitivity for memory in grounds]
    sensitivity = max(levels, key=lambda item: item.level, default=Sensitivity.INTERNAL)
    if sensitivity.level < Sensitivity.INTERNAL.level:
        sensitivity = Sensitivity.INTERNAL
    agents = {memory.agent_id for memory in grounds if memory.agent_id is not None}
    if not agents <= {agent_id}:
        raise InvalidInput("evidence: it belongs to another agent", field="evidence")
    return {
        "scope": narrowest,
        "scope_id": scope_id,
        "sensitivity": sensitivity,
        "agent_id": agent_id if agents else None,
    }


def _seeing(place: TurnPlace, shelter: Mapping[str, Any]) -> TurnPlace:
    """Return a place from which its own writes are visible."""
    ids = {Scope.SESSION: "task_id", Scope.PROJECT: "project_id"}
    name = ids.get(shelter["scope"])
    return place if name is None else place.model_copy(update={name: shelter["scope_id"]})


def _remembered(
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
