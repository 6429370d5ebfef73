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
    taken = schema_of(tool.arguments)
    if taken["properties"]:
        lines += ["| takes | type | |", "|---|---|---|", *_taken(taken), ""]
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


def _fields(schema: Mapping[str, Any], whole: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Yield a row for each field, followed by those of nested objects."""
    for name, field in schema["properties"].items():
        yield f"| `{within}{name}` | {_type(field, whole)} | {field.get('description', '')} |"
        inner = _object(field, whole)
        if inner is not None:
            many = "[]" if field.get("type") == "array" else ""
            yield from _fields(inner, whole, f"{within}{name}{many}.")


def _object(field: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any] | None:
    reference = field.get("$ref") or field.get("items", {}).get("$ref")
    result = None if reference is None else whole["$defs"][reference.rpartition("/")[2]]
    return result if result is not None and "properties" in result else None


def _type(field: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    if "$ref" in field:
        return _type(whole["$defs"][field["$ref"].rpartition("/")[2]], whole)
    if "anyOf" in field:
        return " or ".join(_type(item, whole) for item in field["anyOf"])
    if "enum" in field or "const" in field:
        values = field.get("enum", [field.get("const")])
        return ", ".join(
            f"`{each if isinstance(each, str) else json.dumps(each)}`" for each in values
        )
    if field.get("type") == "array":
        return f"list of {_type(field['items'], whole)}"
    return f"{field.get('type', 'any')}{_range(field)}"


def _range(field: Mapping[str, Any]) -> str:
    least, most = field.get("minimum"), field.get("maximum")
    if most is not None:
        return f" {least:g} to {most:g}"
    longest = field.get("maxLength")
    return "" if longest is None else f", {longest:,} characters at most"


def _resources() -> Iterator[str]:
    yield "| address | type | |\n|---|---|---|"
    for name, item in resources.RESOURCES.items():
        yield f"| `{item.uri(name)}` | {item.mime_type} | {item.description} |"


def _prompts() -> Iterator[str]:
    yield "| prompt | takes | |\n|---|---|---|"
    for item in resources.prompts():
        taken = ", ".join(f"`{one.name}`" for one in item.arguments or ())
        yield f"| `{item.name}` | {taken} | {item.description} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
