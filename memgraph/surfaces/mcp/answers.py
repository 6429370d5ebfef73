"""Results and errors of tools in the form of the protocol."""

from __future__ import annotations

from typing import Any

import mcp_types as types

from memgraph.context.blocks import as_json
from memgraph.errors import MemgraphError
from memgraph.operations.tools.tools import MAX_MESSAGE_CHARS
from memgraph.rules.blocks import cleaned


def seen(value: Any) -> Any:
    """Return a JSON value whose texts have only visible characters."""
    if isinstance(value, str):
        return cleaned(value)
    if isinstance(value, dict):
        return {seen(name): seen(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [seen(item) for item in value]
    return value


def tool_result(answer: dict[str, Any], text: str | None = None) -> types.CallToolResult:
    """Return an answer twice, as the protocol requires: as a value, and as text.

    Args:
        text: the field that is meant to be read as it is; None: the text is the value in JSON.
    """
    message = seen(answer)
    if text is not None:
        message[text] = answer[text]
    return types.CallToolResult(
        content=[
            types.TextContent(type="text", text=as_json(message) if text is None else answer[text])
        ],
        structured_content=message,
    )


def tool_error(error: MemgraphError) -> types.CallToolResult:
    """Return an error for the model, so that it can fix its call."""
    details = {"error": {"code": error.code, "message": error.message[:MAX_MESSAGE_CHARS]}}
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=as_json(seen(details)))], is_error=True
    )
