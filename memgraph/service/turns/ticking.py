"""Boxes that a step ticks: what a step's output had opened is open no longer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memgraph.model.enums import EdgeType, MemoryType, SourceType
from memgraph.model.values import EdgeInput, MemoryInput
from memgraph.policy.dedup import content_hash
from memgraph.policy.workflow_lines import TICKED

if TYPE_CHECKING:
    from memgraph.service.turns.storing import StoringHandle

BECAUSE = "its box is ticked"


def ticked(handle: StoringHandle, given: Sequence[MemoryInput]) -> list[EdgeInput]:
    """Updates edges from what is told as done to the open todos of that text in the same place.

    A todo of a person is let be: a text that a model wrote takes back no more than such texts said.
    """
    done = {
        content_hash(each.content.removeprefix(TICKED)): each
        for each in given
        if each.type is MemoryType.EVENT and each.content.startswith(TICKED)
    }
    if not done:
        return []
    edges = []
    for todo, source in handle.saying(done):
        event = done[todo.content_hash]
        same_place = (todo.scope, todo.scope_id, todo.agent_id) == (
            event.scope,
            event.scope_id,
            event.agent_id,
        )
        of_a_step = source.source_type is SourceType.WORKFLOW_OUTPUT
        if todo.type is MemoryType.TODO and same_place and of_a_step:
            edges.append(
                EdgeInput(
                    from_id=f"#{event.key}",
                    to_id=todo.memory_id,
                    edge_type=EdgeType.UPDATES,
                    reason=BECAUSE,
                )
            )
    return edges
