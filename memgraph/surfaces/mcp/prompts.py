"""The prompts: relevant memories, put before a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types

from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.operations.tools.calls import context
from memgraph.operations.tools.schemas import ContextArguments, parsed
from memgraph.surfaces.mcp.access import HandleAccess

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator

PERMISSION: Final = Permission.READ
CONTEXT: Final = "context"
DESCRIPTION: Final = "A message with what is remembered about it before it."


def listed() -> list[types.Prompt]:
    """Return the prompts as the protocol lists them."""
    message = types.PromptArgument(
        name="message", title="Message", description="What is to be answered.", required=True
    )
    return [
        types.Prompt(
            name=CONTEXT,
            title="Context for a message",
            description=DESCRIPTION,
            arguments=[message],
        )
    ]


def get(
    door: HandleAccess, name: str, arguments: Mapping[str, str] | None
) -> types.GetPromptResult:
    """Return a prompt with its arguments filled in.

    Raises:
        InvalidInput: no such prompt, or an argument is wrong.
        MemgraphError: what ``HandleAccess.ask`` raises.
    """
    if name != CONTEXT:
        raise InvalidInput("no such prompt", field="name")
    given = _given(arguments)

    def work(handle: Orchestrator) -> types.GetPromptResult:
        block = context(handle, given.message)["text"]
        texts = [block, given.message] if block else [given.message]
        return types.GetPromptResult(
            description=DESCRIPTION,
            messages=[
                types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
                for text in texts
            ],
        )

    return door.ask(PERMISSION, work)


def _given(arguments: Mapping[str, str] | None) -> ContextArguments:
    allowed: dict[str, Any] = dict(arguments or {})
    if "limit" in allowed:
        raise InvalidInput("this prompt takes only a message", field="limit")
    return parsed(ContextArguments, allowed)
