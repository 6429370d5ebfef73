"""Tools as the protocol lists and calls them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import mcp_types as types

from memgraph.operations.tools.schemas import parsed, schema_of
from memgraph.operations.tools.tools import Tool, tools
from memgraph.surfaces.mcp.access import HandleAccess, place

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator


def offered() -> Mapping[str, Tool]:
    """Return the tools that a server offers: maintenance of all that is stored is none of them."""
    return {name: tool for name, tool in tools().items() if not tool.maintenance}


def call(tool: Tool, door: HandleAccess, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Run one call.

    Raises:
        MemgraphError: what is wrong with it; a refusal is journalled.
    """

    def work(handle: Orchestrator) -> dict[str, Any]:
        given = dict(parsed(tool.arguments, arguments))
        if "scope" in tool.host:
            given |= zip(("scope", "scope_id"), place(handle, door.scope), strict=True)
        return tool.function(handle, **given)

    return door.ask(tool.permission, work)


@cache
def listed(name: str) -> types.Tool:
    """Return a tool as the protocol lists it; built once, as schemas are slow."""
    tool = offered()[name]
    return types.Tool(
        name=name,
        title=tool.title,
        description=tool.description,
        input_schema=schema_of(tool.arguments),
        output_schema=schema_of(tool.answer),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.changes,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )
