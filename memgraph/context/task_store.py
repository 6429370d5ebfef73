"""The store of one task while it is worked on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memgraph.clock import Clock
from memgraph.context.backend import InMemoryBackend
from memgraph.context.shortening import output_payload
from memgraph.context.stores import Store
from memgraph.ids import IdSource
from memgraph.model.context import ContextItem

if TYPE_CHECKING:
    from memgraph.context.backend import MemoryBackend


class TaskMemoryStore(Store):
    """The reasoning and the tool outputs of a task, invisible to other tasks.

    The host calls ``clear`` when the task has ended, after promoting what is worth keeping.

    Attributes:
        task_id: of the task.
        backend: stores the items; by default in memory.
    """

    def __init__(
        self,
        task_id: str,
        backend: MemoryBackend | None = None,
        *,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> None:
        given = InMemoryBackend() if backend is None else backend
        super().__init__(given, clock=clock, ids=ids)
        self.task_id = task_id

    def add_reasoning(self, text: str, stage_id: str, *, item_id: str | None = None) -> ContextItem:
        """Store the reasoning of a stage.

        Args:
            item_id: None: a new one. An existing item with this id stays as it is.

        Raises:
            InvalidInput: the text is empty or too long, or an id is no name.
        """
        return self._add(
            f"reasoning-{stage_id}",
            self._statement(text),
            kind="reasoning",
            stage_id=stage_id,
            tags=("task", stage_id),
            importance=0.5,
            payload={"text": text},
            item_id=item_id,
        )

    def add_tool_output(
        self,
        tool_id: str,
        output: Any,
        stage_id: str | None = None,
        *,
        item_id: str | None = None,
    ) -> ContextItem:
        """Store the output of a tool: a text or plain JSON.

        One that is too long for an item is shortened, see ``memgraph.context.shortening``.

        Args:
            stage_id: the stage that called it; None: the task as a whole.
            item_id: as for ``add_reasoning``.

        Raises:
            InvalidInput: the output is no plain JSON, or an id is no name.
        """
        text, told = output_payload(output)
        return self._add(
            f"tool-{tool_id}",
            text,
            kind="tool_output",
            stage_id=stage_id,
            tags=("task", "tool", tool_id) + (() if stage_id is None else (stage_id,)),
            importance=0.7,
            payload={"tool_id": tool_id, **told},
            item_id=item_id,
        )

    def get_stage_outputs(self, stage_id: str) -> list[ContextItem]:
        """Return the reasoning and the tool outputs of a stage, newest first."""
        return self._all({"source": self._source(stage_id)})

    def clear(self) -> None:
        """Remove all items of the finished task.

        In a database the items are retracted with the reason ``task_closed``, which refutes
        nothing: what was derived from them stays active.
        """
        self.backend.clear()

    def _add(
        self, prefix: str, text: str, *, stage_id: str | None, item_id: str | None, **fields: Any
    ) -> ContextItem:
        item = self._item(prefix, text, source=self._source(stage_id), **fields)
        if item_id is not None:
            known = self.backend.get(item_id)
            if known is not None:
                return known
            item = item.model_copy(update={"context_item_id": item_id})
        self.backend.add(item)
        return item

    def _source(self, stage_id: str | None) -> str:
        return f"task/{self.task_id}" + ("" if stage_id is None else f"/{stage_id}")
