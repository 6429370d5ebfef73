"""Generate the reference of the HTTP API, a part of docs/http.md: ``make references``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from memgraph.surfaces.http.app import openapi
from memgraph.surfaces.http.document import PERMISSION, PROBLEMS

PREFIX: Final = "/v1/orchestrators/{orchestrator}"
# Parameters that are documented once, above the operations.
_COMMON: Final = frozenset({"orchestrator", "project", "session", "agent", "clearance"})
_JSON: Final = "application/json"


def reference() -> str:
    """Return all operations with their parameters, by tag, followed by all values."""
    document = openapi()
    sections: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = operation.get("tags", ["other"])[0]
            lines = _operation(method.upper(), path, operation)
            sections.setdefault(tag, []).extend(lines)
    schemas = document["components"]["schemas"]
    sections["values"] = [line for name in sorted(schemas) for line in _value(name, schemas[name])]
    parts = [f"## {tag.capitalize()}\n\n" + "\n".join(lines) for tag, lines in sections.items()]
    return "\n".join(parts)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {method} {path.replace(PREFIX, '…')}\n"
    yield _one_line(operation.get("description", operation["summary"])) + "\n"
    permission = operation.get(PERMISSION)
    if permission is not None:
        needed = "any valid key" if permission == "any" else f"the permission `{permission}`"
        yield f"Requires: {needed}.\n"
    parameters = [item for item in operation.get("parameters", ()) if item["name"] not in _COMMON]
    if parameters:
        yield "| parameter | in | type | |\n|---|---|---|---|"
        yield from (_parameter(parameter) for parameter in parameters)
        yield ""
    yield from _body(operation.get("requestBody", {}))
    yield f"Returns: {', '.join(_answers(operation['responses']))}.\n"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


def _parameter(parameter: Mapping[str, Any]) -> str:
    default = "" if parameter.get("required") else _default(parameter["schema"])
    description = "; ".join(
        item for item in (parameter.get("description", "").rstrip("."), default) if item
    )
    kind = _type(parameter["schema"])
    return f"| `{parameter['name']}` | {parameter['in']} | {kind} | {description} |"


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    return "" if default in (None, "", [], {}) else f"by default `{json.dumps(default)}`"


def _body(request_body: Mapping[str, Any]) -> Iterator[str]:
    suffix = "" if request_body.get("required") else "; optional"
    for media_type, content in request_body.get("content", {}).items():
        kind = _type(content.get("schema", {}))
        yield f"Body: {kind if media_type == _JSON else f'`{media_type}`'}{suffix}.\n"
        for example in content.get("examples", {}).values():
            yield f"```json\n{json.dumps(example['value'], indent=2, ensure_ascii=False)}\n```\n"


def _value(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    description = schema.get("description", "").partition("\n\n")[0]
    if description:
        yield _one_line(description) + "\n"
    if "enum" in schema:
        yield _type(schema) + "\n"
        return
    required = schema.get("required", ())
    for field, schema_of_field in schema.get("properties", {}).items():
        needed = "required" if field in required else _default(schema_of_field)
        yield f"- `{field}`: {_type(schema_of_field)}{f'; {needed}' if needed else ''}"
    yield ""


def _answers(responses: Mapping[str, Any]) -> Iterator[str]:
    for status, answer in responses.items():
        if status in PROBLEMS:
            continue
        kinds = [
            _type(content["schema"]) if media_type == _JSON else f"`{media_type}`"
            for media_type, content in answer.get("content", {}).items()
        ]
        yield f"{status} {' or '.join(kinds)}".strip()


def _type(schema: Mapping[str, Any]) -> str:
    """Return a short description of a schema's type."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{item}`" for item in schema.get("enum", [schema.get("const")]))
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(item) for item in schema[several]))
    if schema.get("type") == "array":
        max_items = schema.get("maxItems")
        bound = "" if max_items is None else f", {max_items:,} at most"
        return f"list of {_type(schema.get('items', {}))}{bound}"
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict) and inner:
        return f"object of {_type(inner)}"
    if schema.get("format") == "date-time":
        return "ISO 8601 time"
    return str(schema.get("type", "anything")) + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    if "maxLength" in schema:
        return f" of {schema.get('minLength', 0):,} to {schema['maxLength']:,} characters"
    low, high = (schema.get(item) for item in ("minimum", "maximum"))
    if high is None:
        return "" if low is None else f", from {low:,g}"
    return f", {low or 0:,.16g} to {high:,.16g}"
