"""The tools for agents: one list for function calling, MCP and framework adapters."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, Unpack

from memgraph.errors import AccessDenied, InvalidInput, MemgraphError
from memgraph.model.access import Permission
from memgraph.operations.tools import functions
from memgraph.operations.tools.schemas import (
    ToolArguments,
    arguments_of,
    host_parameters,
    parsed,
    schema_of,
)

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator

MAX_MESSAGE_CHARS: Final = 500

Answer: TypeAlias = dict[str, Any] | str
"""What a tool answers: lines of memories as a text for a prompt, anything else as JSON values."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model can call.

    Attributes:
        function: called with the orchestrator and the arguments; its keyword-only parameters are
            passed by the host.
        answer: describes its answer, for the reference.
        permission: the permission that a key needs over MCP.
        destructive: True if it may retract or supersede a memory; nothing is ever deleted.
        idempotent: True if repeating the same call changes nothing more.
        default: True if it is offered without being requested.
        maintenance: True if it works on everything stored; never offered over MCP.
    """

    title: str
    description: str
    function: Callable[..., Answer]
    answer: str
    permission: Permission = Permission.READ
    destructive: bool = False
    idempotent: bool = True
    default: bool = False
    maintenance: bool = False

    @property
    def arguments(self) -> type[ToolArguments]:
        """The model of the arguments."""
        return arguments_of(self.function)

    @property
    def host(self) -> tuple[str, ...]:
        """The parameters that only the host can pass, not the model."""
        return host_parameters(self.function)

    @property
    def changes(self) -> bool:
        """True if the tool may change stored data."""
        return self.permission in (Permission.WRITE, Permission.ADMIN)


TOOLS: Final[Mapping[str, Tool]] = {
    "search_memory": Tool(
        "Search memory",
        "Search the long-term memory. Use it before answering what may have been told before.",
        functions.search_memory,
        "The lines of the memories in order of time, best ones first to be chosen, each ending in"
        " its short id.",
        default=True,
    ),
    "remember_fact": Tool(
        "Remember a fact",
        "Remember something that the user said and that will matter in later conversations. Do not"
        " repeat what the memory returned.",
        functions.remember_fact,
        "`outcome` (`stored` or `duplicate`) and `memory_id`; where they apply, `reasons` and"
        " `comparison` (`pending`: what it may change is looked for in the background).",
        Permission.WRITE,
        default=True,
    ),
    "correct_fact": Tool(
        "Correct a fact",
        "Replace a remembered fact that the user says is wrong or out of date. Find it with"
        " search_memory first.",
        functions.correct_fact,
        "`memory_id` of the new fact, and `replaced`: the old one, or null if it has another author"
        " and the two contradict each other.",
        Permission.WRITE,
        destructive=True,
        default=True,
    ),
    "confirm_fact": Tool(
        "Confirm a fact",
        "Protect a remembered fact for good. Only when the user confirmed just this fact.",
        functions.confirm_fact,
        "`memory_id` and `protected`.",
        Permission.WRITE,
        default=True,
    ),
    "get_entity_info": Tool(
        "Get entity info",
        "Return all that is remembered about a person, project, place or other entity.",
        functions.get_entity_info,
        "A line with the entity's profile, then the lines of its memories, as of `search_memory`.",
        default=True,
    ),
    "forget": Tool(
        "Forget",
        "Retract a memory that the user asks to forget. Find it with search_memory first.",
        functions.forget,
        "`retracted`: the ids of the memory, and of the facts or turns that say the same.",
        Permission.WRITE,
        destructive=True,
        default=True,
    ),
    "memory_stats": Tool(
        "Memory statistics",
        "Return how much is remembered.",
        functions.memory_stats,
        "`memories`: counts by kind, type and status; `latest_at`; for an admin"
        " `last_consolidation_at`.",
    ),
    "memory_consolidate": Tool(
        "Consolidate the memory",
        "Run the nightly maintenance now. Slow: only when the user asks for it.",
        functions.memory_consolidate,
        "`runs`, each with `job`, `state`, `counts` and `error`.",
        Permission.ADMIN,
        idempotent=False,
        maintenance=True,
    ),
}


SERVED: Final = tuple(name for name, tool in TOOLS.items() if not tool.maintenance)
"""The tools that may be offered over MCP."""


class ToolOptions(TypedDict, total=False):
    """The options of a call.

    Attributes:
        only: the names of the offered tools; None: the default ones. Others are refused.
            ``memory_consolidate`` works on everything stored, even what the handle does not see,
            and may call language models.
        session_id: the conversation, recorded as the source of what is remembered.
        scope, scope_id: where new facts are stored. Required if the handle sees several projects
            or sessions. By default, facts go to the only one it sees, or else to the global scope.
    """

    only: Collection[str] | None
    session_id: str | None
    scope: str | None
    scope_id: str | None


def tools_for(handle: Orchestrator, *, only: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Return the tools of an orchestrator, as the ``tools`` of a request in OpenAI's format.

    Args:
        only: the tools with these names, instead of the default ones; see ``TOOLS``.

    Raises:
        InvalidInput: ``only`` names an unknown tool.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": f"{tool.description} (Memory: {handle.name}.)",
                "parameters": schema_of(tool.arguments),
            },
        }
        for name, tool in offered(only).items()
    ]


def call_tool(
    handle: Orchestrator,
    name: str,
    arguments: str | Mapping[str, Any] | None = None,
    **options: Unpack[ToolOptions],
) -> Answer:
    """Run one tool call of a model. A MemgraphError is returned, not raised.

    Args:
        handle: the model sees what this handle sees; the journal names its actor.
        arguments: the text that the model wrote, or the parsed arguments.

    Returns:
        The lines of memories as text, any other result as JSON values; or
        ``{"error": {"code", "message"}}``.
    """
    try:
        tool = offered(options.get("only")).get(name)
        if tool is None:
            raise AccessDenied("this tool does not exist or is not offered")
        call = parsed(tool.arguments, arguments)
        return tool.function(handle, **dict(call), **{key: options.get(key) for key in tool.host})
    except MemgraphError as error:
        return {"error": {"code": error.code, "message": error.message[:MAX_MESSAGE_CHARS]}}


def answer_calls(
    handle: Orchestrator, calls: Sequence[Any] | None, **options: Unpack[ToolOptions]
) -> list[dict[str, Any]]:
    """Run the ``tool_calls`` of an assistant's message, given as objects or as JSON.

    Returns:
        The messages (``role`` tool) to append to the conversation; empty without calls.

    Raises:
        InvalidInput: an item is not a tool call; no call was run.
    """
    return [
        {
            "role": "tool",
            "tool_call_id": call_id,
            "content": as_text(call_tool(handle, name, arguments, **options)),
        }
        for call_id, name, arguments in [_read_call(item) for item in calls or ()]
    ]


def _read_call(call: Any) -> tuple[str, str, Any]:
    """Return the id, name and arguments of a call in the format of litellm or OpenAI."""

    def part(of: Any, name: str) -> Any:
        return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)

    function = part(call, "function")
    call_id = part(call, "id")
    if function is None or not isinstance(call_id, str):
        raise InvalidInput("a tool call needs an id and a function", field="calls")
    return call_id, part(function, "name") or "", part(function, "arguments")


def as_text(answer: Answer) -> str:
    """Return an answer as the text that a model reads."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def offered(only: Collection[str] | None = None) -> dict[str, Tool]:
    """Return the tools with these names, or the default ones, by name.

    Raises:
        InvalidInput: ``only`` names an unknown tool.
    """
    if set(only or ()) - set(TOOLS):
        raise InvalidInput(f"only must be names of tools: {', '.join(TOOLS)}", field="only")
    return {
        name: tool
        for name, tool in TOOLS.items()
        if (tool.default if only is None else name in only)
    }
