"""Derive commands from the operations that a handle declares."""

from __future__ import annotations

import inspect
import shlex
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

import typer
from pydantic import PlainSerializer, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo

from memgraph.clock import SystemClock, iso, parse_time
from memgraph.errors import InvalidInput, MemgraphError
from memgraph.model.access import Permission
from memgraph.model.operation import Operation, Parameter, documented, operation_of
from memgraph.model.recall import MAX_QUERY_CHARS
from memgraph.model.values import Value
from memgraph.surfaces.cli.builder import Function, OrchestratorName
from memgraph.surfaces.cli.invocation import (
    CommandResult,
    Invocation,
    choice,
    invocation,
    read_stdin,
)
from memgraph.surfaces.cli.screen import Screen, stages
from memgraph.surfaces.cli.shows import show
from memgraph.text.dates import moment_of

Extra = Callable[[Invocation, Any, Any, Mapping[str, Any]], Mapping[str, Any]]
"""Returns more data of an answer, from the call, the handle, the result and the parameters."""
FROM_STDIN: Final = frozenset(("content", "query", "prompt"))
"""The parameters for which ``-`` reads standard input."""
# One more than any of these may have, and a line end; the rest of a longer input is not read.
MAX_STDIN_CHARS: Final = MAX_QUERY_CHARS + 2
NO_OPTIONS: Final = frozenset(
    (
        *("clearance", "scopes", "project_ids", "session_scope_ids", "key"),
        *("status", "sequence", "item_id", "content_sha256"),
    )
)
"""The fields of requests that are no options: common options cover them, or programs set them."""
REACH: Final = "Anything that you may not see is left out"
"""The last line of answers about hand-outs; it is the same whether or not there is more."""


@dataclass(frozen=True, slots=True)
class Custom:
    """What a command adds to its operation.

    Attributes:
        method: a function whose first argument is a handle, instead of the operation.
        options: typer options that replace the derived ones, by parameter.
        defaults: default values that replace those of the library, by parameter.
        flags: further options with their help; ``prepare`` and the printing get their values.
        prepare: changes the arguments, or the common options, before the call.
        extra: returns more data for the JSON and for the printing.
        read: the same for the printing alone.
        failure: returns the error of a result that is a failure, or None.
        done: returns the text to print instead of the result; None: print the result.
        reach: print that what the reader may not see is left out.
    """

    method: Callable[..., Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Invocation, dict[str, Any]], None] | None = None
    extra: Extra | None = None
    read: Extra | None = None
    failure: Callable[[Any, Mapping[str, Any]], MemgraphError | None] | None = None
    done: Callable[[Any, Mapping[str, Any]], str | None] | None = None
    reach: bool = False


def command_of(method: Callable[..., Any], custom: Custom | None = None) -> Function:
    """Return the command for an operation, or for a function whose first argument is a handle.

    Positional parameters become arguments, the others options; the fields of a body, too. The JSON
    is the answer that the HTTP API sends.
    """
    custom = custom or Custom()
    # A function of a handle declares nothing but its signature.
    declared = operation_of(method) or Operation(
        Permission.ADMIN, "", id=method.__name__, function=method
    )
    inputs = _inputs(declared, custom)

    def run(context: typer.Context, orchestrator: str, **values: Any) -> CommandResult:
        call = invocation(context)
        flags = {name: values[name] for name in custom.flags}
        values = _arguments(declared, inputs, values) | flags
        if custom.prepare is not None:
            custom.prepare(call, values)
        values = {name: item for name, item in values.items() if name not in flags}
        arguments = {"orchestrator": orchestrator, **values, **flags}
        with call.orchestrator(orchestrator) as handle, _progress(declared) as more:
            bound = declared.method_of(handle) if operation_of(method) else partial(method, handle)
            result = bound(**values, **more)
            added = custom.extra(call, handle, result, arguments) if custom.extra else {}
            arguments |= added
            if custom.read is not None and not call.as_json:
                arguments |= custom.read(call, handle, result, arguments)
        data = {**data_of(declared, result, values), **added}

        def print_result(screen: Screen) -> None:
            text = custom.done(result, arguments) if custom.done else None
            if text is not None:
                screen.line(text)
            elif declared.result is None:
                screen.line(f"done: {call.command} {' '.join(map(str, data.values()))}")
            else:
                show(screen, result, arguments)
            cursor = data.get("next_cursor") or data.get("next_after")
            for name, parameter in declared.parameters.items():
                if cursor is not None and parameter.sent == "cursor":
                    screen.line(f"more: --{name} {shlex.quote(str(cursor))}")
            if custom.reach:
                screen.line(REACH, style="dim")

        failure = custom.failure(result, arguments) if custom.failure else None
        return CommandResult(data, print_result, failure)

    flags = [
        _parameter(name, Annotated[bool, typer.Option(f"--{name}", help=text)], False)
        for name, text in custom.flags.items()
    ]
    parameters = [
        _parameter("context", typer.Context),
        _parameter("orchestrator", OrchestratorName),
        *(item.parameter for item in inputs),
        *flags,
    ]
    # Typer accepts a required parameter after an optional one, Python's signatures do not.
    parameters.sort(key=lambda parameter: parameter.default is not parameter.empty)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    run.__name__ = declared.id
    run.__doc__ = help_of(declared)
    return run


def help_of(declared: Operation) -> str:
    """Return the help of an operation's command: its docstring without the sections."""
    return declared.summary.replace("``", "`").replace("Return ", "Show ", 1)


@contextmanager
def _progress(declared: Operation) -> Iterator[dict[str, Any]]:
    """Yield the argument that shows the progress of an operation, if it reports any."""
    if "progress" not in declared.signature.parameters:
        yield {}
        return
    # SIGTERM ends long work like Ctrl-C: leases are released, and the run is recorded as stopped.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with stages(declared.id.replace("_", " ")) as advance:
            yield {"progress": advance}
    finally:
        signal.signal(signal.SIGTERM, before)


def data_of(declared: Operation, result: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as the HTTP API sends it; without one, the ids in the operation's path."""
    if declared.result is None:
        return {name: values[name] for name in declared.in_path if name in values}
    if declared.wire is not None:
        result = declared.wire.of(result, limit=values.get("limit"))
    if isinstance(result, Value):
        return result.model_dump(mode="json")
    sent = TypeAdapter(declared.sent).dump_python(result, mode="json")
    return sent if isinstance(sent, dict) else {"items": sent}


class _Form(NamedTuple):
    """How a value is typed on the command line, and its description.

    Attributes:
        type: a string, a number, a boolean, a ``StrEnum``, a list of these, or ``_Json``.
    """

    type: Any
    optional: bool = False
    help: str | None = None
    is_time: bool = False


_Json = Annotated[str, "JSON"]
"""The type on the command line for values other than strings, numbers, choices and their lists."""


@dataclass(frozen=True, slots=True)
class _Input:
    """A parameter of an operation, or a field of its body, and how it is typed.

    Attributes:
        type: the type of a value in JSON.
        parameter: the parameter of the command's function.
        is_field: it is left out unless it is used.
        inside: the field of the body that is an object with this field, or None.
    """

    form: _Form
    type: Any
    parameter: inspect.Parameter
    is_field: bool = False
    inside: str | None = None


def _inputs(declared: Operation, custom: Custom) -> list[_Input]:
    """Return the parameters of an operation, and the fields of a body that it takes as such."""
    inputs = [_declared_input(item, declared, custom) for item in declared.parameters.values()]
    if declared.rest is None or not isinstance(declared.body, type):
        return inputs
    taken = {*declared.parameters, *NO_OPTIONS}
    for name, info in declared.body.model_fields.items():
        nested = info.annotation
        if name in taken or info.is_required() or get_origin(nested) is Literal:
            continue
        if isinstance(nested, type) and issubclass(nested, Value):
            inputs += [
                _field_input(inner, inner_info, nested, custom, name)
                for inner, inner_info in nested.model_fields.items()
                if inner not in taken
            ]
        else:
            inputs.append(_field_input(name, info, declared.body, custom, None))
    return inputs


def _declared_input(item: Parameter, declared: Operation, custom: Custom) -> _Input:
    form = _form(item.type)
    kind = form.type | None if form.optional else form.type
    default = custom.defaults.get(item.name, item.default)
    option = custom.options.get(item.name)
    if option is None:
        text = _sentence(form.help or declared.described.get(item.name, ""))
        if item.name in FROM_STDIN:
            text = f"{text.rstrip('.')}; - reads standard input."
        if declared.signature.parameters[item.name].kind is inspect.Parameter.KEYWORD_ONLY:
            # The name in a query, such as ``status``, is the singular already.
            is_singular = get_origin(form.type) is list and item.sent != item.name
            name = f"{item.sent}s" if is_singular else item.name
            option = _option(name, form, text, default=default, required=item.required)
        else:
            is_choice = isinstance(form.type, type) and issubclass(form.type, StrEnum)
            metavar = item.name.removesuffix("_id").removesuffix("_or").upper()
            option = typer.Argument(
                metavar=metavar, help=text, case_sensitive=not is_choice, show_default=is_choice
            )
    default = list(default) if isinstance(default, tuple) else default
    return _Input(form, item.type, _parameter(item.name, Annotated[kind, option], default))


def _field_input(
    name: str, info: FieldInfo, model: type[Value], custom: Custom, inside: str | None
) -> _Input:
    hint: Any = info.annotation
    hint = Annotated[(hint, *info.metadata)] if info.metadata else hint
    form = _form(hint)
    is_flag = form.type is bool
    described = (documented(base, "Attributes").get(name) for base in model.__mro__)
    text = _sentence(next(filter(None, described), form.help or ""))
    option = custom.options.get(name) or _option(name, form, text, default=False)
    kind: Any = bool if is_flag else form.type | None
    parameter = _parameter(name, Annotated[kind, option], False if is_flag else None)
    return _Input(form, hint, parameter, is_field=True, inside=inside)


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> Any:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _arguments(
    declared: Operation, inputs: Sequence[_Input], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of an operation, from what was typed or read from standard input.

    Raises:
        InvalidInput: a value is not JSON, or not of its parameter's type.
    """
    arguments: dict[str, Any] = {}
    for item in inputs:
        name = item.parameter.name
        value = values[name]
        if item.is_field and (value is None or value is False or value == []):
            continue
        if value is not None and item.form.type == _Json:
            value = _json(TypeAdapter(item.type), value, name)
        elif value is not None and item.form.is_time:
            value = _time(declared, name, value)
        elif name in FROM_STDIN and value == "-":
            value = read_stdin(MAX_STDIN_CHARS)
        place = arguments if item.inside is None else arguments.setdefault(item.inside, {})
        place[name] = value
    return arguments


def _time(declared: Operation, name: str, text: str) -> str:
    """Return a time of the past in ISO 8601; reads take words such as ``yesterday``, too.

    Raises:
        InvalidInput: it is neither.
    """
    if declared.permission not in (Permission.READ, Permission.AUDIT):
        return text
    try:
        parse_time(text)
    except InvalidInput as error:
        ends = not name.endswith(("since", "after"))
        try:
            return iso(moment_of(text, SystemClock().now_ms(), ends=ends))
        except InvalidInput:
            option = f"--{name.replace('_', '-')}"
            raise InvalidInput(
                f"{option}: {error.message}, or a word: yesterday, last week"
            ) from None
    return text


def _json(adapter: TypeAdapter[Any], text: str, name: str) -> Any:
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        message = error.errors()[0]["msg"]
        raise InvalidInput(f"{name} must be JSON of its type: {message}", field=name) from None


def _option(name: str, form: _Form, text: str, *, default: Any, required: bool = False) -> Any:
    """Return an option; a repeatable one is named in the singular."""
    word = name.replace("_", "-")
    if form.type is bool:
        other = "yes" if name == "dry_run" else f"no-{word}"
        return typer.Option(f"--{word}" if default is False else f"--{word}/--{other}", help=text)
    is_list = get_origin(form.type) is list
    flags = [f"--{word.removesuffix('s')}"] if is_list else []
    inner = get_args(form.type)[0] if is_list else form.type
    text = f"{text} Repeatable.".strip() if is_list and "epeatable" not in text else text
    if isinstance(inner, type) and issubclass(inner, StrEnum):
        return choice(inner, *flags, text=text)
    metavar = {_Json: "JSON", int: "N", float: "N"}.get(inner, "TEXT")
    if form.is_time:
        metavar = "TIME"
    elif name.endswith(("_id", "_ids")):
        metavar = "ID"
    return typer.Option(*flags, metavar=metavar, help=text, show_default=not required and not flags)


def _sentence(text: str) -> str:
    text = text.replace("``", "`")
    return text[:1].upper() + text[1:]


def _form(hint: Any) -> _Form:
    """Return how a value of a type is typed."""
    described: list[str] = []
    is_time = False
    while get_origin(hint) is Annotated:
        hint, *metadata = get_args(hint)
        for part in metadata:
            if isinstance(part, WithJsonSchema) and part.json_schema and "enum" in part.json_schema:
                hint = _choices(part.json_schema["enum"])
            elif isinstance(part, FieldInfo):
                described += filter(None, (part.description, _range(part)))
            is_time |= isinstance(part, PlainSerializer) and part.func is iso
    text = " ".join(described) or None
    if is_time:
        return _Form(str, False, text, True)
    if get_origin(hint) in (Union, UnionType):
        members = [part for part in get_args(hint) if part is not type(None)]
        forms = list(map(_form, members))
        kinds = [part for part in members if isinstance(part, type) and issubclass(part, StrEnum)]
        # A string can express the other members of the union, such as a time in milliseconds.
        preferred = [*kinds, *(str for part in members if part is str), forms[0].type]
        is_optional = len(members) < len(get_args(hint))
        is_time = any(form.is_time for form in forms)
        return _Form(preferred[0], is_optional, text or forms[0].help, is_time)
    if get_origin(hint) in (list, tuple, Sequence, Collection):
        item = _form(get_args(hint)[0]).type
        # A list of objects is one JSON array.
        return _Form(_Json if item == _Json else list[item], False, text)  # type: ignore[valid-type]
    if isinstance(hint, type) and (issubclass(hint, StrEnum) or hint in (str, int, float, bool)):
        return _Form(hint, False, text)
    return _Form(_Json, False, text)


def _choices(words: Sequence[str]) -> Any:
    return StrEnum("Choice", {word: word for word in words})


def _range(field: FieldInfo) -> str | None:
    """Return the range of a number as text, such as ``1 to 500``."""
    bounds = {
        name: getattr(item, name)
        for item in field.metadata
        for name in ("ge", "le")
        if hasattr(item, name)
    }
    return f"{bounds['ge']:g} to {bounds['le']:g}." if len(bounds) == 2 else None
