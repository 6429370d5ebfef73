"""The tools for agents: one list for function calling, MCP and framework adapters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from memgraph.errors import AccessDenied, InvalidInput, MemgraphError

# Loading the functions declares them in TOOLS.
from memgraph.operations.tools import functions as functions
from memgraph.operations.tools.declaration import TOOLS as TOOLS, Answer, Tool
from memgraph.rules.blocks import cleaned
from memgraph.rules.lines import as_json

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator

MAX_MESSAGE_CHARS: Final = 500
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
                "parameters": tool.schema,
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
        return tool.run(handle, arguments, options)
    except MemgraphError as error:
        return error_answer(error)


def error_answer(error: MemgraphError) -> Answer:
    """Return an error as an answer, so that the model can correct its call."""
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
    """Return an answer as the text that a model reads; in JSON no text can open or close a mark."""
    return answer if isinstance(answer, str) else as_json(without_invisible(answer))


def without_invisible(value: Any) -> Any:
    """Return a JSON value without invisible characters in its strings."""
    if isinstance(value, str):
        return cleaned(value)
    if isinstance(value, dict):
        return {without_invisible(name): without_invisible(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_invisible(item) for item in value]
    return value


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
