"""Derive commands from the operations that a handle declares."""

from __future__ import annotations

import inspect
import shlex
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

import typer
from pydantic import PlainSerializer, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo

from memgraph.clock import SystemClock, iso, parse_time
from memgraph.errors import InvalidInput, MemgraphError
from memgraph.model.access import Permission
from memgraph.model.operation import (
    Operation,
    Parameter,
    WireFormat,
    documented,
    is_operation,
    operation_of,
)
from memgraph.model.recall import MAX_QUERY_CHARS
from memgraph.model.values import Millis, Value
from memgraph.surfaces.cli.builder import Function, OrchestratorName, on_server
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
FIELD_HELP: Final = {
    "summary": "Instead of a generated one.",
    "importance": "0 to 100.",
    "confidence": "0 to 1.",
    "scope_id": "The session or project of the scope.",
    "agent_id": "The agent that owns it.",
    "session_id": "The session it was said in.",
    "turn_id": "The turn's id in the session.",
    "source_role": "The speaker.",
    "event_time": "When it happened, ISO 8601.",
    "valid_until": "The end of its validity, ISO 8601.",
    "decay_rate": "Per day; 0: no decay.",
    "tags": "Each of these; repeatable.",
    "attributes": "A JSON object.",
    "derived_from": "A memory that it is derived from; repeatable.",
    "source_path": "The file it comes from, in an allowed folder.",
    "locator": "The place in that file.",
    "types": "Any of these; repeatable.",
    "kinds": "Any of these; repeatable.",
    "exclude_session_id": "Not said in this session.",
    "source_types": "Any of these; repeatable.",
    "conversation_id": "The conversation it comes from.",
}
"""The help of fields whose models do not describe them, or not for a person."""


def command_of(
    method: Callable[..., Any],
    *,
    options: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    flags: Mapping[str, str] | None = None,
    prepare: Callable[[Invocation, dict[str, Any]], None] | None = None,
    before: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] | None = None,
    extra: Extra | None = None,
    read: Extra | None = None,
    failure: Callable[[Any, Mapping[str, Any]], MemgraphError | None] | None = None,
    hint: Callable[[Any, Mapping[str, Any]], Sequence[str]] | None = None,
    done: str | Callable[[Any, Mapping[str, Any]], str] = "",
    reach: bool = False,
) -> Function:
    """Return the command for an operation, or for a function whose first argument is a handle.

    Positional parameters become arguments, the others options; the fields of a body, too. The JSON
    is the answer that the HTTP API sends.

    Args:
        options: typer arguments and options that replace the derived ones, by parameter; annotated
            types also replace their types.
        defaults: default values that replace those of the library, by parameter.
        flags: further options with their help; ``prepare`` and the printing get their values.
        prepare: changes the arguments, or the common options, before the call.
        before: returns what ``hint`` gets, too, of the state before the call.
        extra: returns more data for the JSON and for the printing.
        read: the same for the printing alone.
        failure: returns the error of a result that is a failure, or None.
        hint: returns the lines to print after the result, such as the commands that can follow.
        done: the text to print instead of the result, or a format string of the arguments.
        reach: print that what the reader may not see is left out.
    """
    declared = _declared(method)
    inputs = _inputs(declared, options or {}, defaults or {})

    def run(context: typer.Context, orchestrator: str, **values: Any) -> CommandResult:
        call = invocation(context)
        values = {
            **_arguments(declared, inputs, values),
            **{name: values[name] for name in flags or ()},
        }
        if prepare is not None:
            prepare(call, values)
        shown = {name: values.pop(name) for name in flags or ()}
        arguments = {"orchestrator": orchestrator, **values, **shown}
        with call.orchestrator(orchestrator) as handle, _progress(declared) as more:
            if before is not None and not call.as_json:
                arguments |= before(handle, values)
            bound = declared.method_of(handle) if is_operation(method) else None
            result = bound(**values, **more) if bound else method(handle, **values, **more)
            added = dict(extra(call, handle, result, arguments)) if extra else {}
            arguments |= added
            if read is not None and not call.as_json:
                arguments |= read(call, handle, result, arguments)
        data = data_of(declared, result, values) | added

        def print_result(screen: Screen) -> None:
            if done:
                text = done(result, arguments) if callable(done) else done.format(**arguments)
                for line in text.splitlines():
                    screen.line(line)
            else:
                show(screen, result, arguments)
            cursor = data.get("next_cursor") or data.get("next_after")
            for name, parameter in declared.parameters.items():
                if cursor is not None and parameter.sent == "cursor":
                    screen.line(f"more: --{name} {shlex.quote(str(cursor))}")
            for line in hint(result, arguments) if hint else ():
                screen.line(line)
            if reach:
                screen.line(call.reach, style="dim")

        return CommandResult(data, print_result, failure(result, arguments) if failure else None)

    parameters = [
        _parameter("context", typer.Context),
        _parameter("orchestrator", OrchestratorName),
        *(item.parameter for item in inputs),
        *(
            _parameter(name, Annotated[bool, typer.Option(f"--{name}", help=text)], False)
            for name, text in (flags or {}).items()
        ),
    ]
    # Typer accepts a required parameter after an optional one, Python's signatures do not.
    parameters.sort(key=lambda parameter: parameter.default is not parameter.empty)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    run.__name__ = declared.id
    run.__doc__ = help_of(declared)
    return on_server(run)


def help_of(declared: Operation) -> str:
    """Return the help of an operation's command: its docstring without the sections."""
    return declared.summary.replace("``", "`").replace("Return ", "Show ", 1)


def _declared(method: Callable[..., Any]) -> Operation:
    """Return what an operation declares, or what the signature of a function of a handle does."""
    if is_operation(method):
        return operation_of(method)
    return Operation(method, Permission.ADMIN, "GET", "", "", method.__name__)


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
    if declared.answer is not None:
        result = declared.answer.of(result, limit=values.get("limit"))
    if isinstance(result, Value):
        return result.model_dump(mode="json")
    if hasattr(result, "as_dict"):
        plain: dict[str, Any] = result.as_dict()
        return plain
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


def _inputs(
    declared: Operation, options: Mapping[str, Any], defaults: Mapping[str, Any]
) -> list[_Input]:
    """Return the parameters of an operation, and the fields of a body that it takes as such."""
    inputs = [
        _declared_input(item, declared, options.get(name), defaults.get(name, item.default))
        for name, item in declared.parameters.items()
    ]
    if declared.rest is None or not isinstance(declared.body, type):
        return inputs
    taken = {*declared.parameters, *NO_OPTIONS}
    for name, info in declared.body.model_fields.items():
        nested = info.annotation
        if name in taken or info.is_required() or get_origin(nested) is Literal:
            continue
        if isinstance(nested, type) and issubclass(nested, Value):
            inputs += [
                _field_input(inner, inner_info, nested, options, name)
                for inner, inner_info in nested.model_fields.items()
                if inner not in taken
            ]
        else:
            inputs.append(_field_input(name, info, declared.body, options, None))
    return inputs


def _declared_input(item: Parameter, declared: Operation, option: Any, default: Any) -> _Input:
    signature = declared.signature.parameters[item.name]
    form = _form(signature.annotation)
    kind = form.type | None if form.optional else form.type
    if get_origin(option) is Annotated:
        kind, option = get_args(option)
    if option is None:
        text = _sentence(form.help or declared.described.get(item.name, ""))
        if item.name in FROM_STDIN:
            text = f"{text.rstrip('.')}; - reads standard input."
        if signature.kind is inspect.Parameter.KEYWORD_ONLY:
            # The name in a query, such as ``status``, is the singular already.
            is_singular = get_origin(form.type) is list and item.sent != item.name
            name = f"{item.sent}s" if is_singular else item.name
            option = _option(name, form, text, default=default, required=item.required)
        else:
            is_choice = isinstance(form.type, type) and issubclass(form.type, StrEnum)
            metavar = _metavar(item.name, form.type)
            option = typer.Argument(
                metavar=metavar, help=text, case_sensitive=not is_choice, show_default=is_choice
            )
    default = list(default) if isinstance(default, tuple) else default
    return _Input(form, item.type, _parameter(item.name, Annotated[kind, option], default))


def _field_input(
    name: str, info: FieldInfo, model: type[Value], options: Mapping[str, Any], inside: str | None
) -> _Input:
    hint: Any = info.annotation
    hint = Annotated[(hint, *info.metadata)] if info.metadata else hint
    form = _form(hint)
    is_flag = form.type is bool
    text = _sentence(
        FIELD_HELP.get(name) or documented(model, "Attributes").get(name) or form.help or ""
    )
    option = options.get(name) or _option(name, form, _sentence(text or ""), default=False)
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
    if form.type is bool:
        word = name.replace("_", "-")
        return typer.Option(f"--{word}" if default is False else f"--{word}/--no-{word}", help=text)
    is_list = get_origin(form.type) is list
    flags = [f"--{name.removesuffix('s').replace('_', '-')}"] if is_list else []
    inner = get_args(form.type)[0] if is_list else form.type
    if isinstance(inner, type) and issubclass(inner, StrEnum):
        return choice(inner, *flags, text=text)
    metavar = _metavar(name, inner)
    metavar = "TEXT" if metavar == name.upper() else metavar
    return typer.Option(*flags, metavar=metavar, help=text, show_default=not required and not flags)


def _sentence(text: str) -> str:
    text = text.replace("``", "`")
    return text[:1].upper() + text[1:]


_METAVARS = {
    "reason": "TEXT",
    "prefix": "TEXT",
    "after": "CURSOR",
    "before": "ID",
    "since": "TIME",
    "until": "TIME",
    "edge_id": "EDGE",
    "from_id": "FROM",
    "to_id": "TO",
    "name_or_id": "NAME",
}


def _metavar(name: str, kind: Any) -> str:
    if kind == _Json:
        return "JSON"
    if kind in (int, float):
        return "N"
    if name in _METAVARS:
        return _METAVARS[name]
    if name == "as_of" or name.endswith(("_time", "_at", "_until", "event_after", "event_before")):
        return "TIME"
    return "ID" if name.endswith(("_id", "_ids")) or name == "ids" else name.upper()


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
            is_time |= isinstance(part, WireFormat) and part.type == Millis
            is_time |= isinstance(part, PlainSerializer) and part.func is iso
    text = " ".join(described) or None
    if is_time:
        return _Form(str, False, text, True)
    if get_origin(hint) in (Union, UnionType):
        members = [part for part in get_args(hint) if part is not type(None)]
        optional = len(members) < len(get_args(hint))
        forms = list(map(_form, members))
        kinds = [part for part in members if isinstance(part, type) and issubclass(part, StrEnum)]
        # A string can express the other members of the union, such as a time in milliseconds.
        preferred = [*kinds, *(str for part in members if part is str), forms[0].type]
        is_time = any(form.is_time for form in forms)
        return _Form(preferred[0], optional, text or forms[0].help, is_time)
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
