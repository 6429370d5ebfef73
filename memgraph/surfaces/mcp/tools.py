"""The tools: their input, their output, their permissions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final

import mcp_types as types
from pydantic import Field

from memgraph.clock import iso
from memgraph.model.access import Permission
from memgraph.model.context import BlockFormat
from memgraph.model.enums import EdgeType
from memgraph.model.values import Name, Reason
from memgraph.operations.tools.calls import (
    confirm_fact,
    correct_fact,
    get_entity_info,
    list_contradictions,
    relate_memories,
    remember_fact,
    search_memory,
    trace_memory,
)
from memgraph.operations.tools.schemas import (
    AS_DATA,
    MAX_QUERY_CHARS,
    ConfirmFact,
    CorrectFact,
    GetEntityInfo,
    MemoryStats,
    RememberFact,
    SearchMemory,
    ToolArguments,
    parsed,
    schema_of,
)
from memgraph.surfaces.mcp import answers
from memgraph.surfaces.mcp.access import HandleAccess, place

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator


class RelateArguments(ToolArguments):
    from_id: Annotated[Name, Field(description="The newer, the effect, or the part.")]
    edge_type: EdgeType = Field(
        description="Updates: from_id replaces to_id. CausedBy: to_id is the ground of from_id."
        " PartOf: to_id is the whole. Contradicts, RelatedTo: either way round."
    )
    to_id: Annotated[Name, Field(description="The other memory, as recall gave it.")]
    reason: Reason | None = Field(default=None, description="Why; kept with the edge.")


class ContradictionsArguments(ToolArguments):
    resolved: bool = Field(default=False, description="Those that were decided, not the open ones.")
    limit: Annotated[int, Field(ge=1, le=50, description="Contradictions at most.")] = 10
    after: Name | None = Field(default=None, description="The next_after of the page before.")


class TraceArguments(ToolArguments):
    memory_id: Annotated[Name, Field(description="As recall gave it.")]


class ContextArguments(ToolArguments):
    message: Annotated[
        str,
        Field(max_length=MAX_QUERY_CHARS, description="What is about to be answered."),
    ]
    limit: Annotated[int, Field(ge=1, le=50)] | None = Field(
        default=None, description="Memories at most; else the setting."
    )


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool.

    Attributes:
        places: True when it takes the place where facts are kept, which the host sets and the
            model cannot.
        destructive: True when it may retract or supersede a memory; nothing is ever deleted.
        idempotent: True when the same call again changes nothing more.
        text: the field of the answer that a prompt takes as it is, markers included; None: the
            answer is JSON.
    """

    title: str
    description: str
    arguments: type[ToolArguments]
    answer: type[answers.ToolAnswer]
    function: Callable[..., dict[str, Any]]
    permission: Permission = Permission.READ
    places: bool = False
    destructive: bool = False
    idempotent: bool = True
    text: str | None = None

    @property
    def changes(self) -> bool:
        """True when it changes memories."""
        return self.permission is not Permission.READ

    def call(self, door: HandleAccess, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """Run one call.

        Raises:
            MemgraphError: what is wrong with it; a refusal is journalled.
        """

        def work(handle: Orchestrator) -> dict[str, Any]:
            given = dict(parsed(self.arguments, arguments))
            if self.places:
                given |= zip(("scope", "scope_id"), place(handle, door.scope), strict=True)
            return self.function(handle, **given)

        return door.ask(self.permission, work)

    def listed(self, name: str) -> types.Tool:
        """Return the tool as the protocol lists it."""
        return types.Tool(
            name=name,
            title=self.title,
            description=self.description,
            input_schema=schema_of(self.arguments),
            output_schema=schema_of(self.answer),
            annotations=types.ToolAnnotations(
                title=self.title,
                read_only_hint=not self.changes,
                destructive_hint=self.destructive,
                idempotent_hint=self.idempotent,
                open_world_hint=False,
            ),
        )


def stats(handle: Orchestrator) -> dict[str, Any]:
    """Return counts of what the caller sees, without hidden memories."""
    latest = handle.memories.list(limit=1)
    return {
        "memories": handle.memories.counts(),
        "latest_at": iso(latest[0].created_at) if latest else None,
    }


def context(handle: Orchestrator, message: str, limit: int | None = None) -> dict[str, Any]:
    """Return the block of memories to put before a message, always fenced."""
    block = handle.context(message, limit=limit, format=BlockFormat.FENCED)
    return {
        "text": block.text,
        "memory_ids": list(block.memory_ids),
        "receipt_id": block.receipt_id,
        "token_cost": block.token_cost,
        "degraded": [each.code for each in block.degraded],
    }


TOOLS: Final[Mapping[str, Tool]] = {
    "recall": Tool(
        "Recall",
        "Search the long-term memory. Use it before answering what may have been told before."
        + AS_DATA,
        SearchMemory,
        answers.RecallAnswer,
        search_memory,
    ),
    "context": Tool(
        "Context for a message",
        "Give the block of memories that belongs before a message, its sources with it." + AS_DATA,
        ContextArguments,
        answers.ContextAnswer,
        context,
        text="text",
    ),
    "remember": Tool(
        "Remember",
        "Remember something worth knowing in later conversations, told by the user just now. Do"
        " not repeat what the memory itself told you.",
        RememberFact,
        answers.RememberAnswer,
        remember_fact,
        Permission.WRITE,
        places=True,
    ),
    "correct": Tool(
        "Correct",
        "Replace a remembered fact that the user says is wrong or out of date. Find its id with"
        " recall first. What a person told or confirmed is not replaced.",
        CorrectFact,
        answers.CorrectAnswer,
        correct_fact,
        Permission.WRITE,
        destructive=True,
        idempotent=False,
    ),
    "confirm": Tool(
        "Confirm",
        "Protect a remembered fact for good. Only when the user confirmed just this fact.",
        ConfirmFact,
        answers.ConfirmAnswer,
        confirm_fact,
        Permission.WRITE,
    ),
    "relate": Tool(
        "Relate",
        "Join two memories: one replaces, contradicts, is caused by, is part of or belongs to the"
        " other. A contradiction stays open until a person decides it.",
        RelateArguments,
        answers.RelateAnswer,
        relate_memories,
        Permission.WRITE,
        destructive=True,
    ),
    "contradictions": Tool(
        "Contradictions",
        "List memories that contradict one another, with both sides." + AS_DATA,
        ContradictionsArguments,
        answers.ContradictionsAnswer,
        list_contradictions,
    ),
    "trace": Tool(
        "Trace",
        "Tell where a memory comes from, what became of it and what it stands on." + AS_DATA,
        TraceArguments,
        answers.TraceAnswer,
        trace_memory,
    ),
    "entity_info": Tool(
        "Entity",
        "Tell everything about one person, project, place or other entity." + AS_DATA,
        GetEntityInfo,
        answers.EntityAnswer,
        get_entity_info,
    ),
    "stats": Tool(
        "Statistics", "Tell how much is remembered.", MemoryStats, answers.StatsAnswer, stats
    ),
}


@cache
def listed() -> Mapping[str, types.Tool]:
    """Return the tools as the protocol lists them; built once, as schemas are slow."""
    return {name: tool.listed(name) for name, tool in TOOLS.items()}
