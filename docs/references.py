"""Generates the references of commands, routes, tools and settings: ``make references``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from pydantic.fields import FieldInfo
from typer.core import TyperGroup

from ingest.parsers.memories import document_schema
from memgraph.config.loader import keys
from memgraph.operations.tools.declaration import Tool
from memgraph.operations.tools.tools import SERVED, offered
from memgraph.surfaces.cli.app import PROGRAM, command_names, load_command, operations
from memgraph.surfaces.cli.builder import common_parameters
from memgraph.surfaces.cli.commands import COMMANDS, MODULES
from memgraph.surfaces.cli.operations import help_of
from memgraph.surfaces.http.app import openapi
from memgraph.surfaces.http.document import NARROWING, PERMISSION, PROBLEMS
from memgraph.surfaces.mcp.server import BULLETIN

if TYPE_CHECKING:
    from typer._click.core import Command, Context

    from memgraph.model.operation import Operation

FOLDER: Final = Path(__file__).resolve().parent
ROOT: Final = "/v1/orchestrators/{orchestrator}"
JSON: Final = "application/json"
WIDTH: Final = 88


def pages() -> dict[str, str]:
    """Return the pages as they should be; the beginning of most is written by hand."""
    schema = json.dumps(document_schema(), indent=2, sort_keys=True, ensure_ascii=False)
    parts = {
        "cli.md": f"# Reference\n\n{commands()}",
        "http.md": f"`…` stands for `{ROOT}`.\n\n{routes()}",
        "mcp.md": tools(),
        "configuration.md": settings(),
    }
    whole = {"schema/ingest-document.schema.json": f"{schema}\n"}
    return {name: _by_hand(name, text) + text for name, text in parts.items()} | whole


def _by_hand(page: str, text: str) -> str:
    """Return what stands before a generated text, which is known by its first line."""
    first = text.partition("\n")[0]
    return (FOLDER / page).read_text(encoding="utf-8").partition(f"{first}\n")[0]


# Commands.


def commands() -> str:
    """Return a heading and the help text of every command, in the order of ``memgraph --help``."""
    root = typer.Context(TyperGroup(name=PROGRAM), info_name=PROGRAM, terminal_width=WIDTH)
    common = root.make_formatter()
    records = [item.get_help_record(root) for item in common_parameters()]
    common.write_dl([record for record in records if record])
    parts = ["## Options of every command\n", _block(common.getvalue())]
    for name in command_names():
        parts.extend(_sections(load_command(name), name, root, 2))
    unlisted = "## Commands of other operations\n\n`--help` of each shows its options.\n\n"
    unlisted += "| command | what it does |\n|---|---|\n"
    for name, declared in sorted(derived_commands().items()):
        if name not in COMMANDS:
            first, _, _ = help_of(declared).partition("\n\n")
            unlisted += f"| `{name}` | {_one_line(first)} |\n"
    return "\n".join([*parts, unlisted])


def derived_commands() -> dict[str, Operation]:
    """Return the operations whose commands are derived, by the names of the commands."""
    return {name: item for name, item in operations().items() if name not in MODULES}


def command_paths() -> list[str]:
    """Return all listed commands; sub-commands are preceded by their group: ``key list``."""
    paths: list[str] = []
    for name in command_names():
        command = load_command(name)
        is_group = isinstance(command, TyperGroup)
        paths += [f"{name} {item}" for item in command.commands] if is_group else [name]
    return paths


def _sections(command: Command, name: str, parent: Context, level: int) -> Iterator[str]:
    context = typer.Context(command, info_name=name, parent=parent, terminal_width=WIDTH)
    # The common options are documented once.
    common = {item.name for item in common_parameters()}
    params = command.params
    command.params = [item for item in params if item.name not in common]
    yield f"{'#' * level} {context.command_path}\n"
    yield _block(command.get_help(context))
    command.params = params
    if isinstance(command, TyperGroup):
        for key, subcommand in command.commands.items():
            yield from _sections(subcommand, key, context, level + 1)


def _block(text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    return f"```text\n{lines}\n```\n"


# Routes.


def routes() -> str:
    """Return all operations with their parameters, by tag, followed by all values."""
    document = openapi()
    sections: dict[str, list[str]] = {}
    for path, of_path in document["paths"].items():
        for method, operation in of_path.items():
            lines = sections.setdefault(operation.get("tags", ["other"])[0], [])
            lines.extend(_operation(method.upper(), path, operation))
    schemas = document["components"]["schemas"]
    sections["values"] = [line for name in sorted(schemas) for line in _value(name, schemas[name])]
    parts = [f"## {tag.capitalize()}\n\n" + "\n".join(lines) for tag, lines in sections.items()]
    return "\n".join(parts)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {method} {path.replace(ROOT, '…')}\n"
    yield _one_line(operation.get("description", operation["summary"])) + "\n"
    permission = operation.get(PERMISSION)
    if permission is not None:
        needed = "any valid key" if permission == "any" else f"the permission `{permission}`"
        yield f"Requires: {needed}.\n"
    common = {item["name"] for item in NARROWING}
    parameters = [item for item in operation.get("parameters", ()) if item["name"] not in common]
    if parameters:
        yield "| parameter | in | type | |\n|---|---|---|---|"
        for item in parameters:
            default = "" if item.get("required") else _default(item["schema"])
            notes = filter(None, (item.get("description", "").rstrip("."), default))
            kind = type_of(item["schema"])
            yield f"| `{item['name']}` | {item['in']} | {kind} | {'; '.join(notes)} |"
        yield ""
    yield from _body(operation.get("requestBody", {}))
    yield f"Returns: {', '.join(_answers(operation['responses']))}.\n"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    return "" if default in (None, "", [], {}) else f"by default `{json.dumps(default)}`"


def _body(request_body: Mapping[str, Any]) -> Iterator[str]:
    suffix = "" if request_body.get("required") else "; optional"
    for media_type, content in request_body.get("content", {}).items():
        kind = type_of(content.get("schema", {}))
        yield f"Body: {kind if media_type == JSON else f'`{media_type}`'}{suffix}.\n"
        for example in content.get("examples", {}).values():
            yield f"```json\n{json.dumps(example['value'], indent=2, ensure_ascii=False)}\n```\n"


def _value(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    description = schema.get("description", "").partition("\n\n")[0]
    if description:
        yield _one_line(description) + "\n"
    if "enum" in schema:
        yield type_of(schema) + "\n"
        return
    required = schema.get("required", ())
    for field, schema_of_field in schema.get("properties", {}).items():
        needed = "required" if field in required else _default(schema_of_field)
        yield f"- `{field}`: {type_of(schema_of_field)}{f'; {needed}' if needed else ''}"
    yield ""


def _answers(responses: Mapping[str, Any]) -> Iterator[str]:
    for status, answer in responses.items():
        if status in PROBLEMS:
            continue
        kinds = [
            type_of(content["schema"]) if media_type == JSON else f"`{media_type}`"
            for media_type, content in answer.get("content", {}).items()
        ]
        yield f"{status} {' or '.join(kinds)}".strip()


def type_of(schema: Mapping[str, Any]) -> str:
    """Return a short description of a schema's type."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{item}`" for item in schema.get("enum", [schema.get("const")]))
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(type_of(item) for item in schema[several]))
    if schema.get("type") == "array":
        max_items = schema.get("maxItems")
        bound = "" if max_items is None else f", {max_items:,} at most"
        return f"list of {type_of(schema.get('items', {}))}{bound}"
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict) and inner:
        return f"object of {type_of(inner)}"
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


# Tools.


def tools() -> str:
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
    notes = [f"Requires the permission `{tool.permission}`"]
    if not tool.changes:
        notes.append("changes nothing")
    if tool.destructive:
        notes.append("may supersede or retract a memory")
    if tool.changes:
        notes.append("repeating a call changes nothing more")
    lines = [f"### {name}", "", tool.description, "", "; ".join(notes) + ".", ""]
    required = tool.schema.get("required", ())
    if tool.schema["properties"]:
        lines += ["| argument | type | |", "|---|---|---|"]
        for argument, field in tool.schema["properties"].items():
            needed = " (required)" if argument in required else ""
            parts = filter(None, (field.get("description", "").rstrip("."), _default(field)))
            lines.append(f"| `{argument}`{needed} | {type_of(field)} | {'; '.join(parts)} |")
        lines.append("")
    lines.append(f"Answers with {tool.answer[0].lower()}{tool.answer[1:]}")
    return "\n".join(lines)


# Settings.


def settings() -> str:
    """Return a table with every setting."""
    rows = ["| key | type | default | range | meaning |\n|---|---|---|---|---|\n"]
    for key in keys().values():
        field = key.field
        meaning = f"{field.description} Global only." if key.global_only else field.description
        default = json.dumps(field.default, ensure_ascii=False)
        cells = (f"`{key.name}`", key.type_text, f"`{default}`", range_of(field), meaning)
        rows.append(f"| {' | '.join(map(str, cells))} |\n")
    return "".join(rows)


def range_of(field: FieldInfo) -> str:
    """Return the range of a setting that is a number, such as ``1..1000``; else an empty text."""
    limits: dict[str, float] = {
        name: limit
        for constraint in field.metadata
        for name in ("ge", "gt", "le")
        if (limit := getattr(constraint, name, None)) is not None
    }
    if not limits:
        return ""
    low = f"{limits['ge']:g}.." if "ge" in limits else f"over {limits['gt']:g} to "
    return f"{low}{limits['le']:.10g}"


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
