"""What a step thought and what its tools gave: items of its task, kept once however often told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memgraph.context.shortening import MAX_OUTPUT_CHARS, output_payload, shortened
from memgraph.errors import InvalidInput, MemgraphError
from memgraph.model.turns import Rejected
from memgraph.model.values import MAX_NAME_CHARS
from memgraph.service.turns.capturing import PASSING
from memgraph.service.turns.places import Place, storable

if TYPE_CHECKING:
    from memgraph.context.task_store import TaskMemoryStore


def checked(
    place: Place, reasoning: str | None, tool_outputs: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What is to be kept: the reasoning under ``reasoning``, an output under ``tool_outputs/<id>``.

    Raises:
        InvalidInput: the reasoning is no text, the outputs are no mapping, or no task is named.
    """
    if reasoning is not None and not isinstance(reasoning, str):
        raise InvalidInput("reasoning: a text", field="reasoning")
    if tool_outputs is not None and not isinstance(tool_outputs, Mapping):
        raise InvalidInput("tool_outputs: a mapping of outputs by tool", field="tool_outputs")
    if (reasoning is not None or tool_outputs) and place.task_id is None:
        raise InvalidInput("task_id: reasoning and tool outputs are a task's", field="task_id")
    notes: dict[str, Any] = {
        f"tool_outputs/{one}": each for one, each in (tool_outputs or {}).items()
    }
    if reasoning is not None and reasoning.strip():
        # What a model thought is of any length; a tool's output is shortened by the store.
        notes["reasoning"] = shortened(storable(reasoning), MAX_OUTPUT_CHARS)
    return notes


def keep(store: TaskMemoryStore, place: Place, notes: Mapping[str, Any]) -> tuple[Rejected, ...]:
    """Keep them in the task; each that cannot be is rejected by itself.

    Raises:
        MemgraphError: the database takes nothing just now.
    """
    rejected = []
    for name, note in notes.items():
        try:
            _keep(store, place, name, note)
        except PASSING:
            raise
        except MemgraphError as error:
            rejected.append(Rejected(locator=storable(name)[:MAX_NAME_CHARS], code=error.code))
    return tuple(rejected)


def _keep(store: TaskMemoryStore, place: Place, name: str, note: Any) -> None:
    text, _ = output_payload(note)
    said = json.dumps([place.workflow_run_id, place.step_id, name, text])
    item_id = f"step-{hashlib.sha256(said.encode()).hexdigest()[:32]}"
    if name == "reasoning":
        store.add_reasoning(note, place.step_id or "", item_id=item_id)
    else:
        tool_id = name.partition("/")[2]
        store.add_tool_output(tool_id, note, place.step_id, item_id=item_id)
