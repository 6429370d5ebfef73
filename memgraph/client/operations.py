"""The library's operations over HTTP: described once for the blocking and the async client."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cache, wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from pydantic_core import PydanticSerializationError, to_jsonable_python

from memgraph.client.calls import (
    JSON,
    Call,
    Read,
    body,
    nothing,
    orchestrator_path,
    segment,
    typed,
    value_of,
)
from memgraph.client.exchange import LocalWork, RetryRules, Steps, exchange
from memgraph.errors import InvalidInput
from memgraph.model.access import Narrowing
from memgraph.model.enums import MemoryKind
from memgraph.model.operation import (
    Method,
    Operation,
    Parameter,
    is_local,
    is_operation,
    methods_of,
    operation_of,
)
from memgraph.model.values import MemoryInput, Value, validated

P = ParamSpec("P")
T = TypeVar("T")


class Sender(Protocol):
    """Runs request sequences, and blocks until they end."""

    rules: RetryRules

    def run(self, steps: Steps[T]) -> T: ...


class AsyncSender(Protocol):
    """Runs request sequences, and is awaited."""

    rules: RetryRules

    async def run(self, steps: Steps[T]) -> T: ...


class ServerTarget:
    """A server that methods call, through either kind of sender."""

    def __init__(self, sender: Sender | AsyncSender) -> None:
        self.sender = sender
        self.awaited = iscoroutinefunction(sender.run)

    def ask(self, call: Call[T]) -> Steps[T]:
        """Make one of several calls of a method: ``yield from server.ask(call)``."""
        return exchange(call, self.sender.rules)

    def aside(self, work: Callable[[], T]) -> Steps[T]:
        """Run local work that takes time, such as reading a file, outside the event loop."""
        done: T = yield LocalWork(work)
        return done

    def steps(self, described: Call[T] | Steps[T]) -> Steps[T]:
        """Return the steps of a method's description."""
        return self.ask(described) if isinstance(described, Call) else described


class RemoteTarget(ServerTarget):
    """An orchestrator on a server, and the narrowing of a handle's view."""

    def __init__(self, sender: Sender | AsyncSender, name: str, narrowing: Narrowing) -> None:
        super().__init__(sender)
        self.name = name
        self.root = orchestrator_path(name)
        self.view: dict[str, Any] = {
            "project": _named(narrowing.project_ids),
            "session": _named(narrowing.session_ids),
            "agent": narrowing.agent_id,
            "clearance": narrowing.clearance,
        }

    def get(self, path: str, read: Read[T], **params: Any) -> Call[T]:
        """Return a call that reads, with its parameters in the query."""
        return Call("GET", self.root + path, read, self.view | params)

    def post(self, path: str, fields: Mapping[str, Any] | Value, read: Read[T]) -> Call[T]:
        """Return a call with its parameters in the body."""
        return Call("POST", self.root + path, read, self.view, body(fields))


def _named(names: Sequence[str] | None) -> Sequence[str] | None:
    """Return names as query parameters.

    An empty list is sent as one empty name, because an omitted parameter means all names.
    """
    return ("",) if names is not None and not names else names


class RemoteMethod(Method[P, T]):
    """A method that is described by the call or the sequence of calls that it makes.

    Args:
        describe: a function of the target and the method's arguments that returns the calls.
    """

    def __init__(self, describe: Callable[..., Call[T] | Steps[T]]) -> None:
        self.__wrapped__ = describe
        self.__doc__ = describe.__doc__

    if not TYPE_CHECKING:

        def __get__(self, caller, owner):
            if caller is None:
                return self
            describe, target = self.__wrapped__, caller._remote

            @wraps(describe)
            def blocking(*args, **kwargs):
                return target.sender.run(target.steps(describe(target, *args, **kwargs)))

            @wraps(describe)
            async def awaited(*args, **kwargs):
                return await target.sender.run(target.steps(describe(target, *args, **kwargs)))

            return awaited if target.awaited else blocking


def method(
    describe: Callable[Concatenate[Any, P], Call[T] | Generator[Any, Any, T]],
) -> Method[P, T]:
    """Make a method from a function that returns one call, or from a generator of several."""
    return RemoteMethod(describe)


def like(library: Method[P, T], describe: Callable[..., Call[T] | Steps[T]]) -> Method[P, T]:
    """Make a method with the signature and the docstring of the library's."""
    return RemoteMethod(wraps(library)(describe))


def remote(library: Callable[..., T]) -> RemoteMethod[Any, T]:
    """Return the client's method for an operation of the library.

    It has the parameters, the result, the errors and the docstring of the library's method.
    """
    declared = operation_of(library)
    read = cache(lambda: _reader(declared))

    @wraps(library)
    def describe(target: RemoteTarget, *args: Any, **kwargs: Any) -> Call[T]:
        bound = declared.signature.bind(target, *args, **kwargs)
        bound.apply_defaults()
        values = {
            name: (parameter, _sent(parameter, bound.arguments[name]))
            for name, parameter in declared.parameters.items()
        }
        parts = {
            item.sent: segment(value, field=item.sent)
            for item, value in values.values()
            if item.sent in declared.in_path
        }
        rest = {
            item.sent: value for item, value in values.values() if item.sent not in declared.in_path
        }
        fields: Mapping[str, Any] | Value = rest
        if isinstance(declared.body, type):
            sent_body = bound.arguments.get(declared.whole_body or "")
            if isinstance(sent_body, declared.body):
                fields = sent_body
            elif declared.rest is not None:
                fields = validated(declared.body, bound.arguments[declared.rest] | rest)
            elif declared.whole_body is not None:
                fields = validated(declared.body, sent_body)
        return Call(
            declared.method,
            target.root + declared.path.format_map(parts),
            read(),
            target.view if declared.method != "GET" else target.view | rest,
            _body(declared, fields),
            repeats=not is_unnumbered_turn(fields),
            slow=declared.slow,
            accepts=None if declared.sent is None else JSON,
        )

    return RemoteMethod(describe)


def asked_of_a_server(kind: type[T]) -> type[T]:
    """Replace the operations that a class inherits from the library by methods of the client.

    Raises TypeError if it inherits a method that is not an operation without overriding it.
    """
    for name, member in methods_of(kind).items():
        if is_operation(member):
            setattr(kind, name, remote(member))
        elif is_local(member):
            raise TypeError(f"{kind.__name__} must override {name}, which is not an operation")
    return kind


def is_unnumbered_turn(item: Mapping[str, Any] | Value) -> bool:
    """Return True for a turn without a ``turn_id``: sent again, it would be stored twice."""
    return isinstance(item, MemoryInput) and item.kind is MemoryKind.EPISODE and not item.turn_id


def _sent(parameter: Parameter, value: Any) -> Any:
    return value if value is None or parameter.write is None else parameter.write(value)


def _body(declared: Operation, fields: Mapping[str, Any] | Value) -> bytes | None:
    if declared.method == "GET" or not fields:
        return None
    return body(fields if isinstance(fields, Value) else plain(fields))


def _reader(declared: Operation) -> Read[Any]:
    """Return the parser of an operation's response."""
    if declared.sent is None:
        return nothing
    answer, read = declared.answer, typed(declared.sent)
    if isinstance(declared.sent, type) and issubclass(declared.sent, Value):
        read = value_of(declared.sent)
    return read if answer is None else lambda content: answer.result(read(content))


def plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Convert fields, such as enums, times and values, to plain JSON; leave out None.

    Raises:
        InvalidInput: a field cannot be written as JSON.
    """
    present = {name: field for name, field in fields.items() if field is not None}
    try:
        result: dict[str, Any] = to_jsonable_python(present)
    except (PydanticSerializationError, ValueError, RecursionError):
        raise InvalidInput("a field is not plain JSON") from None
    return result
