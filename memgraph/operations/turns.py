"""The hooks around a turn, for orchestrators in any language."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memgraph.errors import AccessDenied
from memgraph.model.access import Permission
from memgraph.model.context import ContextRequest, TierShares
from memgraph.model.enums import Scope
from memgraph.model.operation import F, operation
from memgraph.model.turns import (
    EvidenceBundle,
    FindingsInput,
    InquiryInput,
    MessageInput,
    StepContext,
    StepInput,
    StepOutputInput,
    TaskInput,
    TaskOutcome,
    TranscriptInput,
    TurnContext,
    TurnInput,
    WriteBackResult,
)
from memgraph.model.values import Memory, validated
from memgraph.operations.handle import Handle, closed_to_viewer

if TYPE_CHECKING:
    from memgraph.service.turns.hooks import MemoryHooks


class Turns(Handle[F], group="turns"):
    """The hooks of ``MemoryHooks`` for this handle's caller: ``orc.turns``.

    A hook returns within its deadline; ``warnings`` list what the memory could not deliver. The
    writes of one caller take effect one after another. Only a project and a task that are open to
    the handle can be named. Private memories of other agents are left out: without an agent, the
    handle's actor is the agent.
    """

    @operation(Permission.WRITE, "POST /turns/message", body=MessageInput, command="")
    def on_message(self, message: MessageInput | Mapping[str, Any]) -> TurnContext:
        """Store a message, and return the bulletin and the context to put before its prompt.

        It requires the permission ``read`` as well.

        Raises:
            InvalidInput: a field is invalid.
            AccessDenied: the project or the task is closed to this handle, or it may not read.
        """
        if Permission.READ not in self.permissions:
            error = AccessDenied("this takes the permission read", permission=Permission.READ)
            raise self._denied(error, field=f"permission.{Permission.READ}")
        hooks, fields = self._of(validated(MessageInput, message))
        return hooks.on_message(**fields)

    @operation(Permission.READ, "POST /turns/step", body=StepInput, command="")
    def on_step(self, step: StepInput | Mapping[str, Any]) -> StepContext:
        """Return the bulletin and the context to put before the prompt of a workflow step.

        Raises: see ``on_message``.
        """
        hooks, fields = self._of(validated(StepInput, step))
        return hooks.on_step(**fields)

    @operation(Permission.WRITE, "POST /turns/output", body=StepOutputInput, command="")
    def on_step_output(self, output: StepOutputInput | Mapping[str, Any]) -> WriteBackResult:
        """Store what a step's output says, each paragraph or line a memory.

        Raises: see ``on_message``.
        """
        hooks, fields = self._of(validated(StepOutputInput, output))
        return hooks.on_step_output(**fields)

    @operation(Permission.WRITE, "POST /turns/transcript", body=TranscriptInput, command="")
    def on_transcript(self, transcript: TranscriptInput | Mapping[str, Any]) -> WriteBackResult:
        """Store turns of a conversation, such as the agent's answer, in order.

        Raises: see ``on_message``.
        """
        hooks, fields = self._of(validated(TranscriptInput, transcript))
        return hooks.on_transcript(**fields)

    @operation(Permission.READ, "POST /turns/diagnostics", body=InquiryInput, command="")
    def on_diagnostics(self, inquiry: InquiryInput | Mapping[str, Any]) -> EvidenceBundle:
        """Return the evidence that the memory has about a question, with all sources.

        Raises: see ``on_message``.
        """
        hooks, fields = self._of(validated(InquiryInput, inquiry))
        return hooks.on_diagnostics(**fields)

    @operation(Permission.WRITE, "POST /turns/findings", body=FindingsInput, command="")
    def record_findings(self, findings: FindingsInput | Mapping[str, Any]) -> WriteBackResult:
        """Store the findings of a diagnosis, with their evidence.

        Memories of the evidence that this handle may not see are left out.

        Raises: see ``on_message``.
        """
        hooks, fields = self._of(validated(FindingsInput, findings))
        memory_ids = fields.pop("memory_ids", ())
        return hooks.record_findings(evidence=self._seen(fields, memory_ids), **fields)

    @operation(Permission.WRITE, "POST /turns/end", body=TaskInput, command="")
    def end_task(self, task: TaskInput | Mapping[str, Any]) -> TaskOutcome:
        """Promote chosen memories of a task to its project, then retract the task's others.

        Memories that this handle may not see stay as they are.

        Raises: see ``on_message``.
        """
        hooks, fields = self._of(validated(TaskInput, task))
        return hooks.end_task(**fields)

    def _of(self, turn: TurnInput) -> tuple[MemoryHooks, dict[str, Any]]:
        """Return the caller's hooks, and the fields to call them with."""
        fields = {name: getattr(turn, name) for name in sorted(turn.model_fields_set)}
        for scope in (Scope.PROJECT, Scope.SESSION):
            scope_id = fields.get(f"{scope.tier}_id")
            if scope_id is not None and not self._may_open(scope, scope_id):
                error = AccessDenied(closed_to_viewer(scope), field=f"{scope.tier}_id")
                raise self._denied(error, field=scope.tier, asked=scope_id)
        if isinstance(turn, MessageInput | StepInput):
            task = turn.task
            if task is not None and not self._may_open(Scope.SESSION, task.task_id):
                fields["request"] = self._without_task(turn.request or ContextRequest())
        return self._service.turns.of(self.name, self.actor, self.viewer), fields

    def _without_task(self, request: ContextRequest) -> ContextRequest:
        """Return a request without the task's share: its conversation is a task of others."""
        shares = (request.shares or TierShares()).model_copy(update={"task": 0.0})
        if not shares.project + shares.global_tier:
            error = AccessDenied(closed_to_viewer(Scope.SESSION), field="request.shares")
            raise self._denied(error, field=Scope.SESSION.tier)
        return request.model_copy(update={"shares": shares})

    def _seen(self, place: Mapping[str, Any], memory_ids: Collection[str]) -> Sequence[Memory]:
        """Return the memories of a place with these ids, in order, without hidden ones."""
        from memgraph.store.graph import visible_memories
        from memgraph.store.visibility import View

        viewer = replace(
            self.viewer,
            project_ids=self.viewer.project_ids.union(filter(None, [place.get("project_id")])),
            session_ids=self.viewer.session_ids.union(filter(None, [place.get("task_id")])),
        )
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            stored = visible_memories(snapshot, memory_ids, View(viewer))
        return [stored[memory_id] for memory_id in memory_ids if memory_id in stored]
