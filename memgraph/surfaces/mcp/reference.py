"""Generate the reference of the MCP server, a part of docs/mcp.md: ``make references``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from memgraph.operations.tools.declaration import Tool
from memgraph.operations.tools.tools import SERVED, offered
from memgraph.surfaces.mcp.server import BULLETIN


def reference() -> str:
    """Return all tools with their arguments and answers, and the resource."""
    listed = offered(SERVED).items()
    resource = f"| `{BULLETIN.uri}` | {BULLETIN.mime_type} | {BULLETIN.description} |"
    parts = [
        "## Tools",
        *(_tool(name, tool) for name, tool in listed if tool.default),
        "## Tools on request",
        *(_tool(name, tool) for name, tool in listed if not tool.default),
        "## Resources",
        f"| address | type | |\n|---|---|---|\n{resource}",
    ]
    return "\n\n".join(parts) + "\n"


def _tool(name: str, tool: Tool) -> str:
    notes = [
        f"requires the permission `{tool.permission}`",
        "changes nothing" if not tool.changes else None,
        "may supersede or retract a memory" if tool.destructive else None,
        "repeating a call changes nothing more" if tool.changes else None,
    ]
    text = "; ".join(fact for fact in notes if fact)
    lines = [f"### {name}", "", tool.description, "", text[0].upper() + text[1:] + ".", ""]
    schema = tool.schema
    if schema["properties"]:
        lines += ["| argument | type | |", "|---|---|---|", *_arguments(schema), ""]
    lines.append(f"Answers with {tool.answer[0].lower()}{tool.answer[1:]}")
    return "\n".join(lines)


def _arguments(schema: Mapping[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        description = field.get("description", "")
        if field.get("default") is not None:
            description = f"{description} Default {json.dumps(field['default'])}."
        needed = " (required)" if name in required else ""
        yield f"| `{name}`{needed} | {_type(field)} | {description} |"


def _type(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{item}`" for item in field["enum"])
    if field["type"] == "array":
        return f"list of {_type(field['items'])}"
    return f"{field['type']}{_range(field)}"


def _range(field: Mapping[str, Any]) -> str:
    minimum, maximum = field.get("minimum"), field.get("maximum")
    if maximum is not None:
        return f" {minimum:g} to {maximum:g}"
    longest = field.get("maxLength")
    return "" if longest is None else f", {longest:,} characters at most"
