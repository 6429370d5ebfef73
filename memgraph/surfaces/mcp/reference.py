"""The reference of MCP as Markdown: ``python -m memgraph.surfaces.mcp.reference``.

docs/mcp.md holds it; a test compares the two.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from memgraph.operations.tools.schemas import schema_of
from memgraph.operations.tools.tools import Tool
from memgraph.surfaces.mcp import resources
from memgraph.surfaces.mcp.server import offered


def reference() -> str:
    """Return every tool with its input and output, every resource, every prompt."""
    parts = ["## Tools", *(_tool(name, tool) for name, tool in offered().items())]
    parts += ["## Resources", "\n".join(_resources()), "## Prompts", "\n".join(_prompts())]
    return "\n\n".join(parts) + "\n"


def _tool(name: str, tool: Tool) -> str:
    facts = [
        f"takes the permission `{tool.permission}`",
        "changes nothing" if not tool.changes else None,
        "may put a memory out of force" if tool.destructive else None,
        "the same call again changes nothing more" if tool.changes and tool.idempotent else None,
    ]
    message = "; ".join(fact for fact in facts if fact)
    lines = [f"### {name}", "", tool.description, "", message[0].upper() + message[1:] + ".", ""]
    schema = schema_of(tool.arguments)
    if schema["properties"]:
        lines += ["| takes | type | |", "|---|---|---|", *_taken(schema), ""]
    answer = schema_of(tool.answer)
    lines += ["| answers | type | |", "|---|---|---|", *_fields(answer, answer)]
    return "\n".join(lines)


def _taken(schema: Mapping[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        message = field.get("description", "")
        if field.get("default") is not None:
            message = f"{message} Default {json.dumps(field['default'])}."
        needed = " (required)" if name in required else ""
        yield f"| `{name}`{needed} | {_type(field, schema)} | {message} |"


def _fields(schema: Mapping[str, Any], root: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Yield a row for each field, followed by those of nested objects."""
    for name, field in schema["properties"].items():
        yield f"| `{within}{name}` | {_type(field, root)} | {field.get('description', '')} |"
        inner = _object(field, root)
        if inner is not None:
            many = "[]" if field.get("type") == "array" else ""
            yield from _fields(inner, root, f"{within}{name}{many}.")


def _object(field: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    reference = field.get("$ref") or field.get("items", {}).get("$ref")
    result = None if reference is None else root["$defs"][reference.rpartition("/")[2]]
    return result if result is not None and "properties" in result else None


def _type(field: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if "$ref" in field:
        return _type(root["$defs"][field["$ref"].rpartition("/")[2]], root)
    if "anyOf" in field:
        return " or ".join(_type(item, root) for item in field["anyOf"])
    if "enum" in field or "const" in field:
        values = field.get("enum", [field.get("const")])
        return ", ".join(
            f"`{item if isinstance(item, str) else json.dumps(item)}`" for item in values
        )
    if field.get("type") == "array":
        return f"list of {_type(field['items'], root)}"
    return f"{field.get('type', 'any')}{_range(field)}"


def _range(field: Mapping[str, Any]) -> str:
    minimum, maximum = field.get("minimum"), field.get("maximum")
    if maximum is not None:
        return f" {minimum:g} to {maximum:g}"
    longest = field.get("maxLength")
    return "" if longest is None else f", {longest:,} characters at most"


def _resources() -> Iterator[str]:
    yield "| address | type | |\n|---|---|---|"
    for name, item in resources.RESOURCES.items():
        yield f"| `{item.uri(name)}` | {item.mime_type} | {item.description} |"


def _prompts() -> Iterator[str]:
    yield "| prompt | takes | |\n|---|---|---|"
    for item in resources.prompts():
        arguments = ", ".join(f"`{argument.name}`" for argument in item.arguments or ())
        yield f"| `{item.name}` | {arguments} | {item.description} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
