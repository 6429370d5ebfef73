"""Derive commands from the operations that a handle declares."""

from __future__ import annotations

import inspect
import re
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import starmap
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import typer
from pydantic import PlainSerializer, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo

from memgraph.clock import SystemClock, iso, parse_time
from memgraph.errors import InvalidInput, MemgraphError
from memgraph.model.access import Permission
from memgraph.model.operation import Operation, Parameter, WireFormat, is_operation, operation_of
from memgraph.model.recall import MAX_QUERY_CHARS
from memgraph.model.values import Millis, Value
from memgraph.surfaces.cli.builder import Function, OrchestratorName, choice, on_server
from memgraph.surfaces.cli.formats import as_json
from memgraph.surfaces.cli.invocation import (
    CommandResult,
    Invocation,
    invocation,
    read_stdin,
)
from memgraph.surfaces.cli.screen import Screen, stages
from memgraph.surfaces.cli.shows import show as show_by_type
from memgraph.text.dates import moment_of

Show = Callable[[Screen, Any, Mapping[str, Any]], None]
"""Prints a result for a person; the last argument has the values of the parameters, by name."""
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
    show: Show = show_by_type,
    options: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    flags: Mapping[str, str] | None = None,
    prepare: Callable[[Invocation, dict[str, Any]], None] | None = None,
    before: Callable[[Invocation, Any, Mapping[str, Any]], Mapping[str, Any]] | None = None,
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
        show: prints the result; by default by its type.
        options: typer arguments and options that replace the derived ones, by parameter; annotated
            types also replace their types.
        defaults: default values that replace those of the library, by parameter.
        flags: further options with their help; ``prepare`` and ``show`` get their values.
        prepare: changes the arguments, or the common options, before the call.
        before: returns what ``hint`` gets, too, of the state before the call.
        extra: returns more data for the JSON and for ``show``.
        read: the same for ``show`` alone.
        failure: returns the error of a result that is a failure, or None.
        hint: returns the lines to print after the result, such as the commands that can follow.
        done: the text to print instead of the result, or a format string of the arguments.
        reach: print that what the reader may not see is left out.
    """
    declared = _declared(method)
    chosen = dict(options or {})
    parameters = [
        _command_parameter(item, declared, chosen.get(name), (defaults or {}).get(name))
        for name, item in declared.parameters.items()
    ]
    body = _Body(declared, chosen)
    parameters += [*body.parameters, *starmap(_flag, (flags or {}).items())]

    def run(context: typer.Context, orchestrator: str, **values: Any) -> CommandResult:
        call = invocation(context)
        values = _parsed(declared, body.taken(values))
        if prepare is not None:
            prepare(call, values)
        shown = {name: values.pop(name) for name in flags or ()}
        with call.orchestrator(orchestrator) as handle, _progress(declared) as more:
            earlier = before(call, handle, values) if before and not call.as_json else {}
            if is_operation(method):
                result = declared.method_of(handle)(**values, **more)
            else:
                result = method(handle, **values, **more)
            arguments = {"orchestrator": orchestrator, **values, **shown, **earlier}
            added = dict(extra(call, handle, result, arguments)) if extra else {}
            arguments |= added
            if read is not None and not call.as_json:
                arguments |= read(call, handle, result, arguments)

        data = data_of(declared, result, values) | added

        def print_result(screen: Screen) -> None:
            if done:
                text = done if isinstance(done, str) else done(result, arguments)
                text = text.format(**arguments) if done is text else text
                for line in text.splitlines():
                    screen.line(line)
            else:
                show(screen, result, arguments)
            cursor = data.get("next_cursor") or data.get("next_after")
            for name, parameter in declared.parameters.items():
                if cursor is not None and parameter.sent == "cursor":
                    screen.line(f"more: --{name} {cursor}")
            for line in hint(result, arguments) if hint else ():
                screen.line(line)
            if reach:
                screen.line(call.reach, style="dim")

        return CommandResult(data, print_result, failure(result, arguments) if failure else None)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
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
    # The docstring is the help.
    run.__doc__ = declared.summary.replace("``", "`").replace("Return ", "Show ", 1)
    return on_server(run)


def _flag(name: str, text: str) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=Annotated[bool, typer.Option(f"--{name}", help=text)],
        default=False,
    )


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
        return as_json(result)
    if hasattr(result, "as_dict"):
        plain: dict[str, Any] = result.as_dict()
        return plain
    sent = TypeAdapter(declared.sent).dump_python(result, mode="json")
    return sent if isinstance(sent, dict) else {"items": sent}


class _Body:
    """The options for the fields of a body that an operation takes as ``**fields``."""

    def __init__(self, declared: Operation, chosen: Mapping[str, Any]) -> None:
        self._declared = declared
        self._fields: dict[str, tuple[str | None, str, Any]] = {}
        self.parameters: list[inspect.Parameter] = []
        if declared.rest is None or not isinstance(declared.body, type):
            return
        taken = {*declared.parameters, *NO_OPTIONS}
        for name, info in declared.body.model_fields.items():
            nested = info.annotation
            if name in taken or info.is_required() or get_origin(nested) is Literal:
                continue
            if isinstance(nested, type) and issubclass(nested, Value):
                for inner, inner_info in nested.model_fields.items():
                    if inner not in taken:
                        self._add(inner, inner_info, nested, chosen, name)
            else:
                self._add(name, info, declared.body, chosen, None)

    def _add(
        self,
        name: str,
        info: FieldInfo,
        model: type[Value],
        chosen: Mapping[str, Any],
        outer: str | None,
    ) -> None:
        hint = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
        shown, described = _option_type(hint)
        self._fields[name] = (outer, name, hint)
        bare = _without_none(shown)
        flag = bare is bool
        text = FIELD_HELP.get(name) or _attributes(model).get(name) or described or ""
        option = chosen.get(name) or _option_of(name, bare, _sentence(text), default=False)
        self.parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                annotation=Annotated[bool if flag else bare | None, option],
                default=False if flag else None,
            )
        )

    def taken(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values without the unused options of fields, and with nested fields."""
        for name, (outer, inner, hint) in self._fields.items():
            value = values.pop(name)
            if value is None or value is False or value == []:
                continue
            if _without_none(_option_type(hint)[0]) == _Json:
                value = _json(TypeAdapter(hint), value, name)
            elif _is_time(hint):
                value = _time(self._declared, name, value)
            place = values if outer is None else values.setdefault(outer, {})
            place[inner] = value
        return values


_Json = Annotated[str, "JSON"]
"""The type on the command line for values other than strings, numbers, choices and their lists."""


def _parsed(declared: Operation, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with JSON parsed, and with standard input read for ``-``.

    Raises:
        InvalidInput: a value is not JSON, or not of its parameter's type.
    """
    for name, parameter in declared.parameters.items():
        hint = declared.signature.parameters[name].annotation
        is_time = values[name] is not None and _is_time(hint)
        if values[name] is not None and _without_none(_option_type(hint)[0]) == _Json:
            values[name] = _json(TypeAdapter(parameter.type), values[name], name)
        if is_time:
            values[name] = _time(declared, name, values[name])
        if name in FROM_STDIN and values[name] == "-":
            values[name] = read_stdin(MAX_STDIN_CHARS)
    return values


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


def _command_parameter(
    parameter: Parameter, declared: Operation, option: Any, default: Any
) -> inspect.Parameter:
    if default is None:
        default = parameter.default
    shown, described = _option_type(declared.signature.parameters[parameter.name].annotation)
    if isinstance(default, tuple):
        default = list(default)
    if get_origin(option) is Annotated:
        shown, option = get_args(option)
    if option is None:
        text = _sentence(described or declared.described.get(parameter.name, ""))
        if parameter.name in FROM_STDIN:
            text = f"{text.rstrip('.')}; - reads standard input."
        option = _option(parameter, declared, _without_none(shown), text, default)
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=Annotated[shown, option],
        default=default,
    )


def _option(parameter: Parameter, declared: Operation, bare: Any, text: str, default: Any) -> Any:
    signature = declared.signature.parameters[parameter.name]
    if signature.kind is inspect.Parameter.KEYWORD_ONLY:
        # The name in a query, such as ``status``, is the singular already.
        name = parameter.name if parameter.sent == parameter.name else f"{parameter.sent}s"
        name = name if _is_list(bare) else parameter.name
        return _option_of(name, bare, text, default=default, required=parameter.required)
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return typer.Argument(
            metavar=_metavar(parameter.name, bare), help=text, case_sensitive=False
        )
    return typer.Argument(metavar=_metavar(parameter.name, bare), help=text, show_default=False)


def _option_of(name: str, bare: Any, text: str, *, default: Any, required: bool = False) -> Any:
    """Return an option; a repeatable one is named in the singular."""
    if bare is bool:
        word = name.replace("_", "-")
        return typer.Option(f"--{word}" if default is False else f"--{word}/--no-{word}", help=text)
    flags = [f"--{name.removesuffix('s').replace('_', '-')}"] if _is_list(bare) else []
    inner = get_args(bare)[0] if _is_list(bare) else bare
    if isinstance(inner, type) and issubclass(inner, StrEnum):
        return choice(inner, *flags, text=text)
    metavar = _metavar(name, inner)
    if metavar == name.upper():
        metavar = "TEXT"
    return typer.Option(*flags, metavar=metavar, help=text, show_default=not required and not flags)


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is list


def _sentence(text: str) -> str:
    text = text.replace("``", "`")
    return text[:1].upper() + text[1:]


_ATTRIBUTE = re.compile(r"^    (\w+(?:, \w+)*): ((?:.*\n?)(?: {8}.*\n?)*)", re.MULTILINE)


def _attributes(model: type[Value]) -> dict[str, str]:
    """Return the descriptions of a model's fields in its docstring, by name."""
    section = (inspect.getdoc(model) or "").partition("Attributes:\n")[2]
    return {
        name: " ".join(text.split())
        for names, text in _ATTRIBUTE.findall(section)
        for name in names.split(", ")
    }


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


def _metavar(name: str, bare: Any) -> str:
    if bare == _Json:
        return "JSON"
    if bare in (int, float):
        return "N"
    if name in _METAVARS:
        return _METAVARS[name]
    if name == "as_of" or name.endswith(("_time", "_at", "_until", "event_after", "event_before")):
        return "TIME"
    return "ID" if name.endswith(("_id", "_ids")) or name == "ids" else name.upper()


def _option_type(hint: Any) -> tuple[Any, str | None]:
    """Return the type that a parameter has on the command line, and its description."""
    described = None
    is_time = _is_time(hint)
    while get_origin(hint) is Annotated:
        hint, *metadata = get_args(hint)
        for part in metadata:
            if isinstance(part, WithJsonSchema) and part.json_schema and "enum" in part.json_schema:
                hint = _choices(part.json_schema["enum"])
            if isinstance(part, FieldInfo):
                described = " ".join(filter(None, (described, part.description, _range(part))))
    if is_time:
        return str, described
    if get_origin(hint) in (Union, UnionType):
        members = [part for part in get_args(hint) if part is not type(None)]
        kinds = [part for part in members if isinstance(part, type) and issubclass(part, StrEnum)]
        # A string can express the other members of the union, such as a time in milliseconds.
        preferred: list[Any] = [*kinds, *(part for part in members if part is str)]
        bare: Any = preferred[0] if preferred else None
        inner = None
        if bare is None:
            bare, inner = _option_type(members[0])
        return (bare | None if type(None) in get_args(hint) else bare), described or inner
    if get_origin(hint) in (list, tuple, Sequence, Collection):
        item, _ = _option_type(get_args(hint)[0])
        # A list of objects is one JSON array.
        return (_Json if item == _Json else list[item]), described  # type: ignore[valid-type]
    if isinstance(hint, type) and (issubclass(hint, StrEnum) or hint in (str, int, float, bool)):
        return hint, described
    return _Json, described


def _is_time(hint: Any) -> bool:
    """Return True for a time, or for a time or None."""
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(map(_is_time, parts))
    for part in parts[1:] if get_origin(hint) is Annotated else ():
        if isinstance(part, WireFormat) and part.type == Millis:
            return True
        if isinstance(part, PlainSerializer) and part.func is iso:
            return True
    return get_origin(hint) is Annotated and _is_time(parts[0])


def _choices(values: Sequence[str]) -> Any:
    return StrEnum("Choice", {value: value for value in values})


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
