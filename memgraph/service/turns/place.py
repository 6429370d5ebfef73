"""The place of a turn: its conversation, workflow step, task and project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict, TypeVar

from memgraph.errors import InvalidInput
from memgraph.model.context import ContextRequest, Task
from memgraph.model.enums import CapturedBy, Scope, Sensitivity, SourceType
from memgraph.model.recall import MAX_QUERY_CHARS
from memgraph.model.values import MAX_CONTENT_CHARS, Name, Source, Value, validated
from memgraph.rules.scope import Viewer

T = TypeVar("T")

_NOT_TEXT = {0: "\ufffd"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


class TurnIds(TypedDict, total=False):
    """The ids of a turn's place, 1 to 512 characters each; see ``TurnPlace``."""

    conversation_id: str | None
    workflow_run_id: str | None
    step_id: str | None
    task_id: str | None
    project_id: str | None
    orchestrator: str | None


class TurnPlace(Value):
    """The place of a turn.

    Attributes:
        conversation_id: the conversation.
        workflow_run_id, step_id: the run and the step of a workflow.
        task_id, project_id: the task and the project whose memories are seen besides global ones.
        orchestrator: the orchestrator that the caller expects; another one is refused.
    """

    conversation_id: Name | None = None
    workflow_run_id: Name | None = None
    step_id: Name | None = None
    task_id: Name | None = None
    project_id: Name | None = None
    orchestrator: Name | None = None

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

    def viewer(self, clearance: Sensitivity) -> Viewer:
        """Return a viewer of this task, this project and the global tier."""
        return Viewer(
            clearance=clearance,
            project_ids=frozenset(filter(None, [self.project_id])),
            session_ids=frozenset(filter(None, [self.task_id])),
        )

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

    def request(
        self, text: str, wanted: ContextRequest | None = None, *, exclude_session_id: str | None
    ) -> ContextRequest:
        """Return the request for a context of any text, with the budget and shares of ``wanted``.

        Raises:
            InvalidInput: it is not text.
        """
        query = storable(checked_text(text, "prompt"))[:MAX_QUERY_CHARS]
        fields = {
            "query": query,
            "conversation_id": self.conversation_id,
            "workflow_run_id": self.workflow_run_id,
            "step_id": self.step_id,
            "exclude_session_id": exclude_session_id,
        }
        return (wanted or ContextRequest(query=query)).model_copy(update=fields)


def place_of(ids: TurnIds, *required: str) -> TurnPlace:
    """Return the place of these ids.

    Raises:
        InvalidInput: an id is empty, too long, unknown or not text, or a required one is missing.
    """
    place = validated(TurnPlace, dict(ids))
    for name in required:
        if getattr(place, name) is None:
            raise InvalidInput(f"{name} is required", field=name)
    return place


def checked_text(text: str, name: str) -> str:
    """Return the text. Raises InvalidInput if it is not a string."""
    if not isinstance(text, str):
        raise InvalidInput(f"{name} must be text", field=name)
    return text


def several(items: Iterable[T], name: str) -> list[T]:
    """Return the items of an iterable; strings and mappings are not accepted.

    Raises:
        InvalidInput: it is not a list.
    """
    if isinstance(items, str | bytes | Mapping | Value) or not isinstance(items, Iterable):
        raise InvalidInput(f"{name} must be a list", field=name)
    return list(items)


def storable(text: str) -> str:
    """Replace NUL and lone surrogates in a text, which cannot be stored."""
    return text.translate(_NOT_TEXT)


def unfit(content: str) -> str | None:
    """Return why a message cannot be stored as it is; None if it can.

    Raises:
        InvalidInput: it is not text.
    """
    if not isinstance(content, str):
        raise InvalidInput("content: a message must be text", field="content")
    if not content.strip():
        return "a message without words is not stored"
    if len(content) > MAX_CONTENT_CHARS:
        return f"a message of over {MAX_CONTENT_CHARS:,} characters is not stored"
    if storable(content) != content:
        return "a message with a NUL or a lone surrogate is not stored"
    return None
