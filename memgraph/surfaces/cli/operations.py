"""Derive commands from the operations that a handle declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import typer
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from memgraph.errors import InvalidInput
from memgraph.model.operation import Operation, Parameter, operation_of
from memgraph.model.values import Value
from memgraph.surfaces.cli.builder import Function, OrchestratorName, choice
from memgraph.surfaces.cli.formats import as_json, short
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from inspect import _ParameterKind

Show = Callable[[Screen, Any, Mapping[str, Any]], None]
"""Prints a result for a person; the last argument has the values of the parameters, by name."""
MAX_COLUMNS = 6


def command_of(
    method: Callable[..., Any],
    show: Show | None = None,
    *,
    key: str | None = None,
    options: Mapping[str, Any] | None = None,
    text: str | None = None,
) -> Function:
    """Return the command for an operation.

    Required positional parameters become arguments, the others options.

    Args:
        show: prints the result; by default its fields, or a table.
        key: the name of the result in the JSON output; None: the result is the whole output.
        options: typer arguments and options that replace the derived ones, by parameter.
        text: the help text; by default the summary in the method's docstring.
    """
    declared = operation_of(method)
    option_by_name = dict(options or {})
    parameters = [
        _command_parameter(item, declared, option_by_name.get(name))
        for name, item in declared.parameters.items()
    ]

    def run(context: typer.Context, orchestrator: str, **values: Any) -> CommandResult:
        values = _parsed(declared, values)
        with invocation(context).orchestrator(orchestrator) as handle:
            result = declared.method_of(handle)(**values)
        arguments = {"orchestrator": orchestrator, **values}

        def print_result(screen: Screen) -> None:
            (show or show_result)(screen, result, arguments)

        return CommandResult(_data(declared, result, key, values), print_result)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if declared.rest is not None:
        option = typer.Option(metavar="JSON", help="Further fields, as a JSON object.")
        annotation = Annotated[str | None, option]
        parameters.append(
            inspect.Parameter(declared.rest, kind, annotation=annotation, default=None)
        )
    leading = [
        inspect.Parameter("context", kind, annotation=typer.Context),
        inspect.Parameter("orchestrator", kind, annotation=OrchestratorName),
    ]
    # Typer accepts a required parameter after an optional one, Python's signatures do not.
    signature = [
        *leading,
        *sorted(parameters, key=lambda parameter: parameter.default is not parameter.empty),
    ]
    run.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    run.__annotations__ = {item.name: item.annotation for item in signature}
    run.__name__ = declared.id
    run.__doc__ = text or _help(declared)
    run.remote = True  # type: ignore[attr-defined]
    return run


_Json = Annotated[str, "JSON"]
"""The type on the command line for values other than strings, numbers, choices and their lists."""


def _parsed(declared: Operation, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with JSON parsed, and with the fields of ``--fields`` added.

    Raises:
        InvalidInput: a value is not JSON, or not of its parameter's type.
    """
    fields_json = values.pop(declared.rest, None) if declared.rest is not None else None
    for name, parameter in declared.parameters.items():
        hint = declared.signature.parameters[name].annotation
        if values[name] is not None and _without_none(_option_type(hint)[0]) == _Json:
            values[name] = _json(TypeAdapter(parameter.type), values[name], name)
    return values | (
        _json(TypeAdapter(dict[str, Any]), fields_json, "fields") if fields_json else {}
    )


def _json(adapter: TypeAdapter[Any], text: str, name: str) -> Any:
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        message = error.errors()[0]["msg"]
        raise InvalidInput(f"{name} must be JSON of its type: {message}", field=name) from None


def _help(declared: Operation) -> str:
    """Return the docstring as help text: "Return …" becomes "Show …"."""
    return declared.summary.replace("``", "`").replace("Return ", "Show ", 1)


def _command_parameter(parameter: Parameter, declared: Operation, option: Any) -> inspect.Parameter:
    kind: _ParameterKind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    default = parameter.default
    if isinstance(default, tuple):
        default = list(default)
    shown, described = _option_type(declared.signature.parameters[parameter.name].annotation)
    if option is None:
        option = _option(parameter, declared, shown, described)
    return inspect.Parameter(
        parameter.name, kind, annotation=Annotated[shown, option], default=default
    )


def _option(parameter: Parameter, declared: Operation, kind: Any, described: str | None) -> Any:
    text = (described or declared.described.get(parameter.name, "")).replace("``", "`")
    text = text[:1].upper() + text[1:]
    positional = (
        declared.signature.parameters[parameter.name].kind is not inspect.Parameter.KEYWORD_ONLY
    )
    bare = _without_none(kind)
    metavar = "JSON" if bare == _Json else _metavar(parameter, bare)
    if parameter.required and positional:
        return typer.Argument(metavar=metavar, help=text, show_default=False)
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return choice(bare, text=text)
    if bare is bool:
        return typer.Option(help=text)
    return typer.Option(metavar=metavar, help=text, show_default=not parameter.required)


_METAVARS = {
    "reason": "TEXT",
    "as_of": "TIME",
    "prefix": "TEXT",
    "after": "CURSOR",
    "before": "ID",
    "edge_id": "EDGE",
}


def _metavar(parameter: Parameter, bare: Any) -> str:
    if bare in (int, float):
        return "N"
    if parameter.name in _METAVARS:
        return _METAVARS[parameter.name]
    return "ID" if parameter.name.endswith("_id") else parameter.name.upper()


def _option_type(hint: Any) -> tuple[Any, str | None]:
    """Return the type that a parameter has on the command line, and its description."""
    described = None
    while get_origin(hint) is Annotated:
        hint, *metadata = get_args(hint)
        for part in metadata:
            if isinstance(part, FieldInfo):
                described = " ".join(filter(None, (described, part.description, _range(part))))
    if get_origin(hint) in (Union, UnionType):
        members = [part for part in get_args(hint) if part is not type(None)]
        # A string can express the other members of the union, such as a time in milliseconds.
        bare, inner = (str, None) if str in members else _option_type(members[0])
        return (bare | None if type(None) in get_args(hint) else bare), described or inner
    if get_origin(hint) in (list, tuple, Sequence, Collection):
        item, _ = _option_type(get_args(hint)[0])
        # A list of objects is one JSON array.
        return (_Json if item == _Json else list[item]), described  # type: ignore[valid-type]
    if isinstance(hint, type) and (issubclass(hint, StrEnum) or hint in (str, int, float, bool)):
        return hint, described
    return _Json, described


def _range(field: FieldInfo) -> str | None:
    """Return the range of a number as text, such as ``1 to 500``."""
    bounds = {
        name: getattr(item, name)
        for item in field.metadata
        for name in ("ge", "le")
        if hasattr(item, name)
    }
    return f"{bounds['ge']:g} to {bounds['le']:g}." if len(bounds) == 2 else None


def _without_none(hint: Any) -> Any:
    members = [item for item in get_args(hint) if item is not type(None)]
    return members[0] if get_origin(hint) in (Union, UnionType) else hint


def _data(
    declared: Operation, result: Any, key: str | None, values: Mapping[str, Any]
) -> dict[str, Any]:
    if declared.result is None:
        return {name: values[name] for name in declared.in_path if name in values}
    plain = _plain(declared, result)
    if key is not None:
        return {key: plain}
    return plain if isinstance(plain, dict) else {"items": plain}


def _plain(declared: Operation, result: Any) -> Any:
    if isinstance(result, Value):
        return as_json(result)
    return TypeAdapter(declared.result).dump_python(result, mode="json")


def show_result(screen: Screen, result: Any, _: Mapping[str, Any]) -> None:
    """Print a result: the fields of a value, a table of several values, or "done" for None."""
    if result is None:
        screen.line("done")
    elif isinstance(result, Value):
        _show_fields(screen, as_json(result))
    elif isinstance(result, Sequence) and not isinstance(result, str):
        _show_rows(screen, [as_json(item) if isinstance(item, Value) else item for item in result])
    else:
        screen.line(str(result))


def _show_fields(screen: Screen, fields: Mapping[str, Any]) -> None:
    """Print the plain fields of an object, then a table for each nested field."""
    nested = {name: rows for name, value in fields.items() if (rows := _rows_of(value))}
    plain = [(name, _cell(value)) for name, value in fields.items() if name not in nested]
    if plain:
        screen.fields(plain)
    for name, rows in nested.items():
        screen.heading(name)
        _show_rows(screen, rows)


def _rows_of(value: Any) -> list[Any]:
    """Return the objects in a list or a mapping; empty for other values."""
    items = list(value.values()) if isinstance(value, dict) else value
    is_nested = isinstance(items, list) and any(isinstance(item, dict) for item in items)
    return items if is_nested else []


def _show_rows(screen: Screen, rows: Sequence[Any]) -> None:
    if not rows:
        screen.line("nothing")
        return
    tables = [row if isinstance(row, dict) else {"": row} for row in rows]
    columns = list(tables[0])[:MAX_COLUMNS]
    screen.table(columns, [[_cell(row.get(name)) for name in columns] for row in tables])


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return short(", ".join(f"{name} {_cell(item)}" for name, item in value.items()))
    if isinstance(value, list):
        return short(", ".join(map(_cell, value)))
    return "" if value is None else short(str(value))
