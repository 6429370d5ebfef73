"""The library's operations over HTTP, derived from their declarations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from pydantic_core import PydanticSerializationError, to_jsonable_python

from memgraph.client.server import JSON, Call, Read, Server, is_storable, value_of
from memgraph.errors import InvalidInput, NotFound, OrchestratorMissing
from memgraph.model.access import Narrowing
from memgraph.model.enums import MemoryKind
from memgraph.model.operation import Method, Operation, is_local, local, methods_of, operation_of
from memgraph.model.turns import MessageInput, TranscriptInput
from memgraph.model.values import MemoryInput, Value, validated

P = ParamSpec("P")
T = TypeVar("T")
_REMOTE = "__remote__"


class RemoteTarget:
    """An orchestrator on a server, and the narrowing of a handle's view."""

    def __init__(self, server: Server, name: str, narrowing: Narrowing) -> None:
        self.server = server
        self.name = name
        self.root = orchestrator_path(name)
        self.view: dict[str, Any] = {
            "project": _names(narrowing.project_ids),
            "session": _names(narrowing.session_ids),
            "agent": narrowing.agent_id,
            "clearance": narrowing.clearance,
        }

    def send(self, method: str, path: str, kind: type[T], **options: Any) -> T:
        """Send a ``Call`` with some options to a path below the orchestrator's."""
        call = Call(method, self.root + path, value_of(kind), self.view, **options)
        return self.server.send(call)


def _names(names: Sequence[str] | None) -> Sequence[str] | None:
    """Return names as query parameters.

    An empty list is sent as one empty name, because an omitted parameter means all names.
    """
    return ("",) if names is not None and not names else names


def method(function: Callable[Concatenate[Any, P], T]) -> Method[P, T]:
    """Declare a method that the client has and the library does not, or not in this form."""
    setattr(function, _REMOTE, True)
    return local(function)


def like(library: Method[P, T]) -> Callable[[Callable[..., T]], Method[P, T]]:
    """Declare a method with the signature and the docstring of the library's."""

    def declare(function: Callable[..., T]) -> Method[P, T]:
        own: Method[P, T] = wraps(library)(function)  # type: ignore[assignment]  # only for mypy
        setattr(own, _REMOTE, True)
        return own

    return declare


def is_remote(member: Any) -> bool:
    """Return True for a method that asks a server."""
    return getattr(member, _REMOTE, False) is True


def remote(library: Callable[..., T]) -> Callable[..., T]:
    """Return the client's method for an operation of the library.

    It has the parameters, the result, the errors and the docstring of the library's method.
    """
    declared = operation_of(library)
    if declared is None:
        raise TypeError(f"{library} is not an operation")
    read = cache(lambda: _reader(declared))

    @wraps(library)
    def send(handle: Any, *args: Any, **kwargs: Any) -> Any:
        target: RemoteTarget = handle._remote
        bound = declared.signature.bind(handle, *args, **kwargs)
        bound.apply_defaults()
        in_path: dict[str, str] = {}
        rest: dict[str, Any] = {}
        for name, parameter in declared.parameters.items():
            value = bound.arguments[name]
            if value is not None and parameter.write is not None:
                value = parameter.write(value)
            if parameter.sent in declared.in_path:
                in_path[parameter.sent] = segment(value, field=parameter.sent)
            else:
                rest[parameter.sent] = value
        fields = _fields(declared, bound.arguments, rest)
        reads = declared.method == "GET"
        call = Call(
            declared.method,
            target.root + declared.path.format_map(in_path),
            read(),
            target.view | rest if reads else target.view,
            None if reads or not fields else body_of(fields),
            # A dry run is the default, so what runs without it must not happen twice.
            repeats=not (declared.once or is_unnumbered_turn(fields))
            and bool(rest.get("dry_run", True)),
            slow=declared.slow,
            accepts=None if declared.sent is None else JSON,
        )
        with declared.naming(sent=False):
            return target.server.send(call)

    setattr(send, _REMOTE, True)
    return send


def _fields(declared: Operation, arguments: Mapping[str, Any], rest: Mapping[str, Any]) -> Any:
    """Return the parameters that are sent in the body, or the value that they make."""
    if not isinstance(declared.body, type):
        return rest
    whole = arguments.get(declared.whole_body or "")
    if isinstance(whole, declared.body):
        return whole
    if declared.rest is not None:
        return validated(declared.body, arguments[declared.rest] | rest)
    return rest if declared.whole_body is None else validated(declared.body, whole)


def _reader(declared: Operation) -> Read[Any]:
    """Return the parser of an operation's response."""
    if declared.sent is None:
        return nothing
    answer, read = declared.wire, value_of(declared.sent)
    return read if answer is None else lambda content: answer.result(read(content))


def nothing(_body: bytes) -> None:
    """Read a response without a body."""


def asked_of_a_server(kind: type[T]) -> type[T]:
    """Replace the operations that a class inherits from the library by methods of the client.

    Raises TypeError if it inherits a method that is not an operation without overriding it.
    """
    for name, member in methods_of(kind).items():
        if is_remote(member):
            continue
        if operation_of(member):
            setattr(kind, name, remote(member))
        elif is_local(member):
            raise TypeError(f"{kind.__name__} must override {name}, which is not an operation")
    return kind


def is_unnumbered_turn(item: Mapping[str, Any] | Value) -> bool:
    """Return True for a turn without a ``turn_id``: sent again, it would be stored twice."""
    if isinstance(item, TranscriptInput):
        return not all(turn.get("turn_id") for turn in item.turns)
    if isinstance(item, MessageInput):
        return not item.turn_id
    return isinstance(item, MemoryInput) and item.kind is MemoryKind.EPISODE and not item.turn_id


def segment(text: str, *, field: str = "id") -> str:
    """Escape a segment of a path.

    Raises:
        NotFound: the name is impossible: empty, not text, or with a slash.
    """
    if not isinstance(text, str) or not text or "/" in text or not is_storable(text):
        raise NotFound(f"no record has this {field}", field=field)
    # A segment of dots would be resolved as a step in the path.
    return quote(text, safe="").replace(".", "%2E")


def orchestrator_path(name: str) -> str:
    """Return the path of an orchestrator. Raises OrchestratorMissing if the name is impossible."""
    try:
        return f"/v1/orchestrators/{segment(name, field='orchestrator')}"
    except NotFound:
        raise OrchestratorMissing("this is not a valid name of an orchestrator") from None


def body_of(fields: Mapping[str, Any] | Value) -> bytes:
    """Return the JSON body of a request.

    Of a value, it has only the fields that were set; of other fields, those that are not None.

    Raises:
        InvalidInput: a field cannot be written as JSON.
    """
    try:
        if isinstance(fields, Value):
            plain = fields.model_dump(mode="json", exclude_unset=True)
        else:
            present = {name: value for name, value in fields.items() if value is not None}
            plain = to_jsonable_python(present)
        return json.dumps(plain, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (PydanticSerializationError, TypeError, ValueError, RecursionError):
        raise InvalidInput("a field is not plain JSON, or has a lone surrogate") from None
