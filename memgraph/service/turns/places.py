"""The place of a turn: conversation, run and step, task and project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from memgraph.errors import InvalidInput
from memgraph.model.context import ContextRequest, Task
from memgraph.model.enums import CapturedBy, Scope, Sensitivity, SourceType
from memgraph.model.recall import MAX_QUERY_CHARS
from memgraph.model.values import MAX_CONTENT_CHARS, Name, Source, Value, validated
from memgraph.rules.scope import Viewer

T = TypeVar("T")

_NOT_TEXT = {0: "\ufffd"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


class Place(Value):
    """Ids of 1 to 512 characters; None: it belongs to none."""

    conversation_id: Name | None = None
    workflow_run_id: Name | None = None
    step_id: Name | None = None
    task_id: Name | None = None
    project_id: Name | None = None
    orchestrator: Name | None = None

    @property
    def task(self) -> Task | None:
        """The task that contexts are built for. Without a task id it is the conversation."""
        named = self.task_id or self.conversation_id or self.workflow_run_id
        return None if named is None else Task(task_id=named, project_id=self.project_id)

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

    def source(self, source_type: SourceType, captured_by: CapturedBy, **fields: Any) -> Source:
        """Return the source of what is written here."""
        return Source(
            source_type=source_type,
            captured_by=captured_by,
            conversation_id=self.conversation_id,
            workflow_run_id=self.workflow_run_id,
            step_id=self.step_id,
            **fields,
        )

    def request(self, text: str, **fields: Any) -> ContextRequest:
        """Return the request for a context; any text is accepted.

        Raises:
            InvalidInput: it is no text.
        """
        return ContextRequest(
            query=storable(checked_text(text, "prompt"))[:MAX_QUERY_CHARS],
            conversation_id=self.conversation_id,
            workflow_run_id=self.workflow_run_id,
            step_id=self.step_id,
            **fields,
        )


def place_of(**ids: str | None) -> Place:
    """Return the place with these ids. Raises InvalidInput: one is empty, too long or no text."""
    return validated(Place, ids)


def checked_text(given: str, name: str) -> str:
    """Return the text. Raises InvalidInput: it is no text."""
    if not isinstance(given, str):
        raise InvalidInput(f"{name}: a text", field=name)
    return given


def several(given: Iterable[T], name: str) -> list[T]:
    """Return the items of a list; texts and mappings are not lists.

    Raises:
        InvalidInput: it is no list.
    """
    if isinstance(given, str | bytes | Mapping | Value) or not isinstance(given, Iterable):
        raise InvalidInput(f"{name}: a list", field=name)
    return list(given)


def storable(text: str) -> str:
    """Return a text without NUL and lone surrogates, which no database takes."""
    return text.translate(_NOT_TEXT)


def unfit(content: str) -> str | None:
    """Return why a message cannot be stored as it is; None: it can.

    Raises:
        InvalidInput: it is no text.
    """
    if not isinstance(content, str):
        raise InvalidInput("content: a message is text", field="content")
    if not content.strip():
        return "a message without words is not stored"
    if len(content) > MAX_CONTENT_CHARS:
        return f"a message of over {MAX_CONTENT_CHARS:,} characters is not stored"
    if storable(content) != content:
        return "a message with a NUL or a lone surrogate is not stored"
    return None
