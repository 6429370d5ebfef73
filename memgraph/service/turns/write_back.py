"""Hooks that write after a turn: step outputs, transcripts, and the end of a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Unpack

from memgraph.errors import AccessDenied, Conflict, InvalidInput, NotFound, ProviderError
from memgraph.model.conversation import PERSONS, AgentTurn, UserTurn
from memgraph.model.enums import (
    CapturedBy,
    EdgeType,
    MemoryType,
    ModelUse,
    Scope,
    Sensitivity,
    SourceType,
)
from memgraph.model.turns import (
    RejectedPart,
    StepOutputInput,
    TaskFields,
    TaskInput,
    TaskOutcome,
    TranscriptInput,
    TurnFields,
    TurnInput,
    WriteBackResult,
)
from memgraph.model.values import MAX_NAME_CHARS, EdgeInput, Memory, MemoryInput, Outcome, validated
from memgraph.operations.context.database_backend import DatabaseBackend
from memgraph.rules.lifecycle import TASK_CLOSED
from memgraph.rules.scope import Viewer
from memgraph.rules.similarity import content_hash
from memgraph.rules.workflow import TICKED, WorkflowCandidate, parse
from memgraph.service.turns.base import HookHost, once, refused, unfit
from memgraph.service.turns.capture import CaptureHandle, Turn
from memgraph.store import items


def ticked(handle: CaptureHandle, inputs: Sequence[MemoryInput]) -> list[EdgeInput]:
    """Return Updates edges from the boxes that a step ticks to the open todos that they close.

    These are todos of earlier step outputs with the same text and place. A person's todo stays
    open: a model's text supersedes only texts by models.
    """
    done = {
        content_hash(memory.content.removeprefix(TICKED)): memory
        for memory in inputs
        if memory.type is MemoryType.EVENT and memory.content.startswith(TICKED)
    }
    if not done:
        return []
    return [
        EdgeInput(
            from_id=f"#{done[todo.content_hash].key}",
            to_id=todo.memory_id,
            edge_type=EdgeType.UPDATES,
            reason="its box is ticked",
        )
        for todo, source in handle.saying(done)
        if todo.type is MemoryType.TODO
        and source.source_type is SourceType.WORKFLOW_OUTPUT
        and _place(todo) == _place(done[todo.content_hash])
    ]


def _place(memory: Memory | MemoryInput) -> tuple[Scope, str | None, str | None]:
    return memory.scope, memory.scope_id, memory.agent_id


# Errors that concern a single memory to promote, not all of them.
OF_ONE = (NotFound, AccessDenied, Conflict, InvalidInput)


class WriteBackHooks(HookHost):
    """The part of ``MemoryHooks`` that writes."""

    def on_step_output(
        self,
        output: str | Mapping[str, Any] | Sequence[Any],
        *,
        tier: Scope | str | None = None,
        **turn: Unpack[TurnFields],
    ) -> WriteBackResult:
        """Store what a step says, each paragraph or line a memory; see ``memgraph.rules.workflow``.

        A text that exists already in the same place is a duplicate. Each statement becomes a memory
        with the source ``workflow_output``, which records its run, step, conversation and place in
        the output. A configured language model gives statements without a label their type. A
        ticked box (``- [x] …``) supersedes the todo with the same text that a step stored in the
        same place.

        Args:
            tier, turn: see ``StepOutputInput``; with ``workflow_run_id`` and ``step_id``.

        Raises:
            InvalidInput: a field is invalid, missing, or missing for the tier.
        """
        call = self._begin("on_step_output", StepOutputInput, turn, output=output, tier=tier)
        place, said = call.turn, call.turn.output
        scope = place.scope
        if isinstance(said, list) and all(isinstance(line, str) for line in said):
            said = "\n".join(said)
        # A long text is parsed in the lane. Anything else is parsed now: the host may change it.
        parse_output = cache(lambda: parse(said))
        if not isinstance(said, str):
            parse_output()
        # It sees what it has to recognise as a duplicate.
        handle = self._handle(self._viewer(place, self._writing))

        def work() -> WriteBackResult:
            parsed = parse_output()
            candidates = typed_by_model(handle, parsed.candidates)
            inputs = [_memory(candidate, place, scope) for candidate in candidates]
            links = [*_links_of(candidates), *ticked(handle, inputs)]
            written = stored(handle, inputs, links)
            rejected = (*parsed.rejections, *written.rejected)
            return written.model_copy(update={"rejected": rejected})

        return self._write(call, work, WriteBackResult(acknowledged=False))

    def on_transcript(
        self, turns: Iterable[Mapping[str, Any]], **turn: Unpack[TurnFields]
    ) -> WriteBackResult:
        """Store the turns of a conversation, by persons and agents, in order.

        As with ``on_message`` they follow earlier turns, and a ``turn_id`` is stored only once.

        Args:
            turns, turn: see ``TranscriptInput``; with ``conversation_id``.

        Raises:
            InvalidInput: a field is invalid or missing, or a turn is.
        """
        call = self._begin("on_transcript", TranscriptInput, turn, turns=turns)
        parsed = [turn_of(each, call.turn) for each in call.turn.turns]
        if call.denied:
            return WriteBackResult(warnings=call.denied, acknowledged=False)
        rejected = tuple(
            RejectedPart(locator=f"/{number}", code="capture.refused")
            for number, turn in enumerate(parsed)
            if isinstance(turn, str)
        )
        warnings = tuple(refused(turn) for turn in parsed if isinstance(turn, str))
        capture = self._capture([turn for turn in parsed if not isinstance(turn, str)])
        outcomes, troubles = self._kept("capture", capture, call.until)
        return WriteBackResult(
            memory_ids=_ids(outcomes or ()),
            outcomes=tuple(outcomes or ()),
            rejected=rejected,
            warnings=once((*warnings, *troubles)),
            acknowledged=outcomes is not None and not rejected,
        )

    def end_task(
        self,
        task_id: str,
        promote: Iterable[str] = (),
        *,
        reason: str = "",
        **turn: Unpack[TaskFields],
    ) -> TaskOutcome:
        """End a task: promote chosen memories to its project, then retract the rest.

        Memories that belong to the project already stay there. If a memory cannot be promoted,
        nothing is retracted. A second call changes nothing.

        Args:
            promote, turn: see ``TaskInput``.

        Raises:
            InvalidInput: there are memories to promote but no ``project_id``, or a field is
                invalid.
        """
        fields = {"task_id": task_id, "promote": promote, "reason": reason}
        call = self._begin("end_task", TaskInput, turn, **fields)
        place = call.turn
        if place.promote and place.project_id is None:
            raise InvalidInput("project_id is required to promote memories", field="project_id")

        def work() -> TaskOutcome:
            promoted: dict[str, str] = {}
            rejected: list[RejectedPart] = []
            for memory_id in dict.fromkeys(place.promote):
                try:
                    promoted[memory_id] = self._promoted(place, memory_id)
                except OF_ONE as error:
                    rejected.append(RejectedPart(locator=memory_id, code=error.code))
            cleared = 0 if rejected else self._cleared(place, task_id)
            return TaskOutcome(
                task_id=task_id, promoted=promoted, cleared=cleared, rejected=tuple(rejected)
            )

        return self._write(call, work, TaskOutcome(task_id=task_id, acknowledged=False))

    def _cleared(self, place: TurnInput, task_id: str) -> int:
        """Retract a task's memories, those of a confined caller as far as it sees them."""
        if not self._writing.confined:
            return self._assembler.cleanup_task(task_id)
        viewer = self._viewer(place, self._writing)
        handle = self._service.orchestrator(self.name, viewer=viewer, actor=self.actor)
        return DatabaseBackend(handle, Scope.SESSION, task_id).clear(TASK_CLOSED)

    def _promoted(self, place: TaskInput, memory_id: str) -> str:
        """Promote a memory to the project; return its id there.

        A memory that was promoted before, or belongs to the project, is not promoted again.
        """
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            before = items.promotions_of(snapshot, memory_id, Scope.PROJECT, place.project_id)
        if before:
            return before[0][0]
        viewer = self._viewer(place, Viewer(clearance=self.clearance))
        handle = self._service.orchestrator(self.name, viewer=viewer, actor=self.actor)
        memory = handle.get(memory_id)
        if (memory.scope, memory.scope_id) == (Scope.PROJECT, place.project_id):
            return memory_id
        reason, project = place.reason, place.project_id
        return (
            handle.contexts.promote(memory_id, Scope.PROJECT, project, reason=reason) or memory_id
        )


def stored(
    handle: CaptureHandle, inputs: Sequence[MemoryInput], links: Sequence[EdgeInput]
) -> WriteBackResult:
    """Store memories and their edges; memories that cannot be stored are rejected singly."""
    if not inputs:
        return WriteBackResult()
    written = handle.store(inputs, links)
    return WriteBackResult(
        memory_ids=_ids(written.memories),
        outcomes=tuple(written.memories),
        edges=tuple(written.edges),
        rejected=tuple(
            RejectedPart(locator=memory.source.locator or f"/{number}", code=outcome.code or "")
            for number, (memory, outcome) in enumerate(zip(inputs, written.memories, strict=True))
            if outcome.outcome == "rejected"
        ),
    )


def typed_by_model(
    handle: CaptureHandle, candidates: Sequence[WorkflowCandidate]
) -> Sequence[WorkflowCandidate]:
    """Return statements with the types that the language model of ``memory.llm`` gives them.

    Only those without a label are sent, before any transaction. If the model fails, that is logged
    and they stay as they are.
    """
    with handle._service.opened(handle.name) as opened:
        model, log = opened.llm, opened.log
    texts = {each.key: each.content for each in candidates if each.type is MemoryType.OBSERVATION}
    if model is None or not texts or not model.may_read(Sensitivity.INTERNAL):
        return candidates
    from memgraph.consolidation.page_model import read_text

    try:
        read = read_text(model.completion_for(ModelUse.INGEST), texts)
    except ProviderError as error:
        log.failure("step_output.untyped", error)
        return candidates
    facts = {fact.quoted: fact for fact in reversed(read.facts)}
    return [
        replace(each, type=facts[each.key].type, importance=facts[each.key].importance)
        if each.key in facts
        else each
        for each in candidates
    ]


def _memory(
    candidate: WorkflowCandidate, place: TurnInput, scope: Mapping[str, Any]
) -> MemoryInput:
    locator = candidate.locator[:MAX_NAME_CHARS] or None
    return MemoryInput(
        key=candidate.key,
        content=candidate.content,
        type=candidate.type,
        importance=candidate.importance,
        confidence=candidate.confidence,
        tags=candidate.tags,
        source=place.source(SourceType.WORKFLOW_OUTPUT, CapturedBy.EXTRACTOR, locator=locator),
        **scope,
    )


def _links_of(candidates: Iterable[WorkflowCandidate]) -> list[EdgeInput]:
    """Return the edges from candidates to what caused them and to what they are a part of."""
    return [
        EdgeInput(from_id=f"#{candidate.key}", to_id=to_id, edge_type=edge_type)
        for candidate in candidates
        for edge_type, to_ids in (
            (EdgeType.CAUSED_BY, candidate.caused_by),
            (EdgeType.PART_OF, candidate.part_of),
        )
        for to_id in to_ids
    ]


def turn_of(turn: Mapping[str, Any], place: TurnInput) -> Turn | str:
    """Return a turn of this conversation, or the reason why it cannot be stored."""
    fields = {name: value for name, value in turn.items() if name not in ("speaker", "role")}
    role = turn.get("source_role", turn.get("speaker", turn.get("role", "user")))
    by_agent = fields.pop("from_agent", str(role).casefold() not in PERSONS)
    content = turn.get("content", "")
    reason = unfit(content) if isinstance(content, str) else None
    if reason is not None:
        return reason
    source = place.source(SourceType.CHANNEL_TRANSCRIPT, CapturedBy.SYSTEM)
    place_fields = {"session_id": place.conversation_id, "source_role": role, **place.scope}
    merged = {"source": source} | fields | place_fields
    return validated(AgentTurn, merged) if by_agent else validated(UserTurn, merged)


def _ids(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(outcome.memory_id for outcome in outcomes if outcome.memory_id))
