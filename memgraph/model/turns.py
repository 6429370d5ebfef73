"""An orchestrator's turn: what its hooks are given, and what they return."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from pydantic import Field, InstanceOf, field_validator, model_validator

from memgraph.errors import InvalidInput
from memgraph.model.context import ContextPackage, ContextRequest, ContextTier, Task, Tokens
from memgraph.model.enums import CapturedBy, MemoryType, Scope, Sensitivity, SourceType
from memgraph.model.recall import Degraded
from memgraph.model.values import (
    Edge,
    Memory,
    Millis,
    Moment,
    Name,
    Outcome,
    Reason,
    Source,
    StoredSource,
    Unit,
    Value,
)

MAX_REFERENCES = 64
MAX_DEADLINE_MS = 600_000
MAX_EVIDENCE = 2_000
MAX_FINDINGS = 100

AnyText = InstanceOf[str]
"""A text that need not be storable: it may have NUL characters and lone surrogates."""


class TaskFields(TypedDict, total=False):
    """The fields of a ``TurnInput``, except for ``task_id``.

    ``orchestrator``: the orchestrator that the caller expects; another one is refused.
    """

    conversation_id: str | None
    workflow_run_id: str | None
    step_id: str | None
    project_id: str | None
    orchestrator: str | None
    deadline_ms: int | None


class TurnFields(TaskFields, total=False):
    """The fields of a ``TurnInput``."""

    task_id: str | None


class TurnInput(Value):
    """The place of a turn, and how long its hook may take.

    Attributes:
        conversation_id: the conversation.
        workflow_run_id, step_id: the run and the step of a workflow.
        task_id, project_id: the task and the project whose memories are seen besides global ones.
        deadline_ms: the maximum wait; None: 250 ms.
    """

    conversation_id: Name | None = None
    workflow_run_id: Name | None = None
    step_id: Name | None = None
    task_id: Name | None = None
    project_id: Name | None = None
    deadline_ms: Annotated[int, Field(strict=True, ge=1, le=MAX_DEADLINE_MS)] | None = None

    @property
    def task(self) -> Task | None:
        """The task that contexts are built for. Without a task id it is the conversation."""
        task_name = self.task_id or self.conversation_id or self.workflow_run_id
        return None if task_name is None else Task(task_id=task_name, project_id=self.project_id)

    @property
    def scope(self) -> dict[str, Any]:
        """The scope of writes: the project, or global without one."""
        if self.project_id is None:
            return {"scope": Scope.GLOBAL}
        return {"scope": Scope.PROJECT, "scope_id": self.project_id}

    def source(
        self, source_type: SourceType, captured_by: CapturedBy, *, locator: str | None = None
    ) -> Source:
        """Return the source of memories written in this place."""
        return Source(
            source_type=source_type,
            captured_by=captured_by,
            conversation_id=self.conversation_id,
            workflow_run_id=self.workflow_run_id,
            step_id=self.step_id,
            locator=locator,
        )


class MessageFields(TurnFields, total=False):
    """The fields of a ``MessageInput``."""

    speaker: str
    turn_id: str | None
    from_agent: bool
    sensitivity: Sensitivity
    event_time: Moment | None
    request: ContextRequest | None


class MessageInput(TurnInput):
    """A message that starts a turn; see ``MemoryHooks.on_message``.

    Attributes:
        speaker: the author of the message.
        turn_id: the host's own id; a message that is sent twice with it is stored once.
        from_agent: True if the author is an agent, not a person.
        event_time: when it was written; None: now.
        request: the budget and shares of the context; its query and ids are overwritten.
    """

    conversation_id: Name
    content: AnyText
    speaker: Name = "user"
    turn_id: Name | None = None
    from_agent: bool = False
    sensitivity: Sensitivity = Sensitivity.INTERNAL
    event_time: Millis | None = None
    request: ContextRequest | None = None


class StepInput(TurnInput):
    """The prompt of a workflow step; see ``MemoryHooks.on_step``.

    Attributes:
        exclude_conversation: leave out the turns of ``conversation_id``, as for a message;
            otherwise the message that the step answers would rank first. False: the prompt does
            not contain the conversation, and the step should recall it.
    """

    workflow_run_id: Name
    step_id: Name
    prompt: AnyText
    exclude_conversation: bool = True
    request: ContextRequest | None = None


class StepOutputInput(TurnInput):
    """The output of a workflow step; see ``MemoryHooks.on_step_output``.

    Attributes:
        output: a text, an object, or a list of either; texts are read line by line.
        tier: where to store it; None: in the project, or globally without one. ``task``: in the
            task, until it is promoted or the task ends.
    """

    workflow_run_id: Name
    step_id: Name
    output: str | dict[str, Any] | list[Any]
    tier: ContextTier | None = None

    @property
    def scope(self) -> dict[str, Any]:
        """The scope of what is stored.

        Raises:
            InvalidInput: the task or project id of its tier is missing.
        """
        if self.tier in (None, Scope.GLOBAL):
            return {"scope": Scope.GLOBAL} if self.tier else super().scope
        field = f"{self.tier.tier}_id"
        scope_id = getattr(self, field)
        if scope_id is None:
            message = f"{field} is required for the tier {self.tier.tier}"
            raise InvalidInput(message, field=field)
        return {"scope": self.tier, "scope_id": scope_id}


class TranscriptInput(TurnInput):
    """Turns of a conversation; see ``MemoryHooks.on_transcript``.

    ``turns``: objects with ``content``, ``source_role`` (or ``speaker``, ``role``) and other fields
    of ``EpisodeInput``. ``from_agent`` says whether the author is an agent; by default every role
    except ``user`` and ``human`` is one.
    """

    conversation_id: Name
    turns: Annotated[tuple[dict[str, Any], ...], Field(max_length=1_000)]


class InquiryInput(TurnInput):
    """A question of a diagnosis; see ``MemoryHooks.on_diagnostics``.

    Attributes:
        memory_ids: the memories that the question is about.
        workflow_run_id: include the memories that this run stored.
        budget_tokens: the maximum size of the text; None: ``memory.context.budget_tokens``.
    """

    question: str
    memory_ids: Annotated[tuple[Name, ...], Field(max_length=MAX_EVIDENCE)] = ()
    max_nodes: Annotated[int, Field(ge=1, le=MAX_EVIDENCE)] = 50
    budget_tokens: Tokens | None = None


class TurnWarning(Value):
    """A warning of a turn. ``code`` is stable, ``text`` is for people.

    Codes: ``memory.slow`` (the deadline passed), ``memory.full`` (too many requests wait),
    ``memory.failed`` (a part of it failed), ``memory.closed``, ``access.denied``,
    ``capture.unacknowledged`` (it may still be stored), ``capture.refused`` (it will not be),
    ``bulletin.stale``, ``bulletin.empty``, ``receipt.missing``, and the code of any other error of
    ``memgraph.errors``, such as ``memory.disabled``, ``storage.busy`` or ``storage.corrupt``.
    """

    code: str
    text: str


class ResultWithWarnings(Value):
    """A result with warnings about missing parts."""

    warnings: tuple[TurnWarning, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the warnings, in order."""
        return tuple(warning.code for warning in self.warnings)


class StepContext(ResultWithWarnings):
    """The context of a workflow step.

    Attributes:
        bulletin: Markdown; with a ``bulletin_warning`` an earlier one, or empty.
        context: None if there was no time or no memory for it.
        prompt: the bulletin and the context block, to be put before the prompt.
        receipt_id: the receipt of the bulletin; that of the context is in its package. None: there
            was no bulletin.
    """

    bulletin: str = ""
    bulletin_warning: str | None = None
    context: ContextPackage | None = None
    prompt: str = ""
    receipt_id: str | None = None


class TurnContext(StepContext):
    """The context of a message, and the id of the stored message.

    ``episode_id``: the id of the stored message; None: it is not stored yet, see ``warnings``.
    """

    episode_id: str | None = None

    @property
    def acknowledged(self) -> bool:
        """True if the message is stored durably."""
        return self.episode_id is not None


class RejectedPart(Value):
    """A part of an output that was not stored, or not unchanged.

    Attributes:
        locator: lines (``L3-L4``), a JSON pointer, or the index in a list (``/0``).
        code: a stable code of ``memgraph.rules.workflow``, or the code of an error.
    """

    locator: str
    code: str


class WriteBackResult(ResultWithWarnings):
    """The outcome of writing outputs, turns or findings.

    Attributes:
        memory_ids: the ids of the stored memories and of existing duplicates, in order.
        outcomes: the outcome of each memory to store; empty if ``acknowledged`` is False.
        edges: the outcomes of the requested edges.
        rejected: the parts that were not stored, or not unchanged.
        acknowledged: whether the write is durable; if not, ``warnings`` tells whether it continues.
    """

    memory_ids: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    edges: tuple[Outcome, ...] = ()
    rejected: tuple[RejectedPart, ...] = ()
    acknowledged: bool = True


class EvidenceItem(Value):
    """A memory of an evidence bundle, with its source; ``citation`` is the source in one line."""

    memory: Memory
    source: StoredSource
    citation: str


class EvidenceBundle(ResultWithWarnings):
    """Bounded evidence for a question, with the source of every memory.

    Attributes:
        items: at most ``max_nodes``: the requested memories, then matches of the question, then
            neighbours.
        edges: edges between two of ``items``.
        missing: requested ids that do not exist or are not visible.
        cut_reasons: the limits that left something out: ``max_nodes``, ``budget_tokens`` …
        text: the rendered block.
        token_cost: the estimated number of tokens of ``text``.
        receipt_id: the id of the receipt, which lists exactly the memories of ``text``.
    """

    question: str
    items: tuple[EvidenceItem, ...] = ()
    edges: tuple[Edge, ...] = ()
    missing: tuple[str, ...] = ()
    cut_reasons: tuple[str, ...] = ()
    text: str = ""
    token_cost: int = 0
    receipt_id: str | None = None
    degraded: tuple[Degraded, ...] = ()

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The ids of the items, in order."""
        return tuple(item.memory.memory_id for item in self.items)


class DiagnosisFinding(Value):
    """A finding of a diagnosis; a text stands for a finding with this content.

    Attributes:
        content: one that cannot be stored is rejected, and the other findings are stored.
        type: any but Identity, which only a person can state.
        caused_by: ids of the memories that caused it; None: those of the evidence that it cites.
        importance, confidence: capped at the maximum of a proposal.
    """

    content: AnyText
    type: MemoryType = MemoryType.OBSERVATION
    importance: Annotated[int, Field(ge=0, le=100)] | None = None
    confidence: Unit | None = None
    caused_by: Annotated[tuple[Name, ...], Field(max_length=MAX_REFERENCES)] | None = None
    tags: Annotated[tuple[Name, ...], Field(max_length=MAX_REFERENCES)] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        return {"content": value} if isinstance(value, str) else value

    @field_validator("type")
    @classmethod
    def _not_identity(cls, value: MemoryType) -> MemoryType:
        if value is MemoryType.IDENTITY:
            raise ValueError("only a person can state an Identity")
        return value


class FindingsInput(TurnInput):
    """Findings of a diagnosis; see ``MemoryHooks.record_findings``.

    ``memory_ids``: the memories that the diagnosis was based on. A finding is caused by those in
    its ``caused_by``, or else by those that it cites.
    """

    findings: Annotated[tuple[DiagnosisFinding, ...], Field(max_length=MAX_FINDINGS)]
    memory_ids: Annotated[tuple[Name, ...], Field(max_length=MAX_EVIDENCE)] = ()


class TaskInput(TurnInput):
    """The end of a task; see ``MemoryHooks.end_task``.

    Attributes:
        promote: the ids of the memories to promote to the project; they require ``project_id``.
        reason: why they are promoted, for the journal.
    """

    task_id: Name
    promote: Annotated[tuple[Name, ...], Field(max_length=MAX_EVIDENCE)] = ()
    reason: Reason = ""


class TaskOutcome(ResultWithWarnings):
    """The outcome of a task.

    Attributes:
        promoted: the id of the new memory by the id of the task's memory.
        cleared: the number of the task's memories that were retracted.
        rejected: memories that could not be promoted; if there are any, nothing is cleared.
    """

    task_id: str
    promoted: dict[str, str] = Field(default_factory=dict)
    cleared: int = 0
    rejected: tuple[RejectedPart, ...] = ()
    acknowledged: bool = True
