"""Methods of the library, asked for over HTTP: described once, blocking and asynchronous."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import replace
from functools import cache, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from pydantic_core import PydanticSerializationError, to_jsonable_python

from memgraph.client.calls import (
    JSON,
    Call,
    Read,
    Repeat,
    body,
    nothing,
    orchestrator_path,
    segment,
    typed,
    value_of,
)
from memgraph.client.exchange import Course, Rules, Work, exchange
from memgraph.errors import InvalidInput
from memgraph.model.access import Narrowing
from memgraph.model.operation import Operation, Parameter, operation_of
from memgraph.model.values import Value, validated

P = ParamSpec("P")
T = TypeVar("T")


class Sender(Protocol):
    """Runs request sequences, and blocks until they end."""

    rules: Rules

    def run(self, course: Course[T]) -> T: ...


class AsyncSender(Protocol):
    """Runs request sequences, and is awaited."""

    rules: Rules

    async def run(self, course: Course[T]) -> T: ...


class Speaker:
    """A caller of methods, over either kind of sender."""

    _rules: Rules

    def _ask(self, call: Call[T]) -> Course[T]:
        """Make one call of a method that takes several: ``answer = yield from self._ask(call)``."""
        return exchange(call, self._rules)

    def _aside(self, work: Callable[[], T]) -> Course[T]:
        """Run local work that takes time, such as reading a file, outside the event loop."""
        done: T = yield Work(work)
        return done


class Blocking(Speaker):
    """A caller whose methods wait for the answer."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._rules = sender.rules


class Awaiting(Speaker):
    """A caller whose methods are coroutines."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender
        self._rules = sender.rules


class Place(Speaker):
    """The target of a handle's methods: an orchestrator and a narrowing."""

    name: str
    narrowing: Narrowing

    def _set_place(self, name: str, narrowing: Narrowing) -> None:
        self.name = name
        self.narrowing = narrowing
        self._root = orchestrator_path(name)
        self._view: dict[str, Any] = {
            "project": _named(narrowing.project_ids),
            "session": _named(narrowing.session_ids),
            "agent": narrowing.agent_id,
            "clearance": narrowing.clearance,
        }

    def _get(self, path: str, read: Read[T], **params: Any) -> Call[T]:
        """Return a read."""
        return Call("GET", self._root + path, read, self._view | params)

    def _look(self, path: str, fields: Mapping[str, Any] | Value, read: Read[T]) -> Call[T]:
        """Return a read whose parameters are too long for an address."""
        return Call("POST", self._root + path, read, self._view, body(fields))

    def _write(self, path: str, fields: Mapping[str, Any] | Value, read: Read[T]) -> Call[T]:
        """Return a change, which is done once however often it is sent."""
        return replace(self._look(path, fields, read), repeat=Repeat.KEYED)


def _named(names: Sequence[str] | None) -> Sequence[str] | None:
    """Return names as a query has them. An empty list is an empty name: omitted, it would mean
    all.
    """
    return ("",) if names is not None and not names else names


class Word(Generic[P, T]):
    """A method that is described by the call it makes, or by a sequence of calls."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T] | Course[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__
        self.__wrapped__ = describe

    @overload
    def __get__(self, speaker: None, owner: type) -> Self: ...
    @overload
    def __get__(self, speaker: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, speaker: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, speaker: Any, owner: type) -> Any:
        if speaker is None:
            return self
        describe = self._describe
        if isinstance(speaker, Blocking):

            @wraps(describe)
            def said(*args: P.args, **kwargs: P.kwargs) -> T:
                return speaker._sender.run(_course(describe(speaker, *args, **kwargs), speaker))

            return said

        @wraps(describe)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> T:
            answer: T = await speaker._sender.run(
                _course(describe(speaker, *args, **kwargs), speaker)
            )
            return answer

        return awaited


def word(describe: Callable[Concatenate[Any, P], Call[T]]) -> Word[P, T]:
    """Make a method from a function that returns one call."""
    return Word(describe)


def course(describe: Callable[Concatenate[Any, P], Generator[Any, Any, T]]) -> Word[P, T]:
    """Make a method from a generator of several calls."""
    return Word(describe)


def like(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[[Callable[..., Call[T] | Course[T]]], Word[P, T]]:
    """Make a method with the signature and the docstring of the library's."""

    def make(describe: Callable[..., Call[T] | Course[T]]) -> Word[P, T]:
        return Word(wraps(method)(describe))

    return make


def _course(described: Call[T] | Course[T], speaker: Speaker) -> Course[T]:
    return speaker._ask(described) if isinstance(described, Call) else described


def remote(method: Callable[Concatenate[Any, P], T]) -> Word[P, T]:
    """Return the method of the client that asks a server for an operation.

    It has the parameters, the result, the errors and the docstring of the library's method.
    """
    declared = operation_of(method)
    read = cache(lambda: _reader(declared))

    @wraps(method)
    def describe(place: Place, *args: Any, **kwargs: Any) -> Call[T]:
        bound = declared.signature.bind(place, *args, **kwargs)
        bound.apply_defaults()
        given = {
            name: (each, _sent(each, bound.arguments[name]))
            for name, each in declared.parameters.items()
        }
        parts = {
            each.sent: segment(value, field=each.sent)
            for each, value in given.values()
            if each.sent in declared.in_path
        }
        rest = {
            each.sent: value for each, value in given.values() if each.sent not in declared.in_path
        }
        fields: Mapping[str, Any] | Value = rest
        if declared.rest is not None and isinstance(declared.body, type):
            whole = bound.arguments.get(declared.whole_body or "")
            fields = (
                whole
                if isinstance(whole, declared.body)
                else validated(declared.body, bound.arguments[declared.rest] | rest)
            )
        return Call(
            declared.method,
            place._root + declared.path.format_map(parts),
            read(),
            place._view if declared.method != "GET" else place._view | rest,
            _body(declared, fields),
            repeat=Repeat.KEYED if declared.changes else Repeat.SAFE,
            slow=declared.slow,
            accepts=None if declared.sent is None else JSON,
        )

    return Word(describe)  # type: ignore[arg-type]  # its parameters are the method's


def _sent(each: Parameter, value: Any) -> Any:
    return value if value is None or each.write is None else each.write(value)


def _body(declared: Operation, fields: Mapping[str, Any] | Value) -> bytes | None:
    if declared.method == "GET" or not fields:
        return None
    return body(fields if isinstance(fields, Value) else plain(fields))


def _reader(declared: Operation) -> Read[Any]:
    """Return the reader of an operation's answer."""
    if declared.sent is None:
        return nothing
    answer, read = declared.answer, typed(declared.sent)
    if isinstance(declared.sent, type) and issubclass(declared.sent, Value):
        read = value_of(declared.sent)
    return read if answer is None else lambda told: answer.result(read(told))


def plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as plain JSON: enums, times and values as they are sent; None is left out.

    Raises:
        InvalidInput: one of them cannot be sent.
    """
    given = {name: each for name, each in fields.items() if each is not None}
    try:
        found: dict[str, Any] = to_jsonable_python(given)
    except (PydanticSerializationError, ValueError, RecursionError):
        raise InvalidInput("a field holds what is not plain JSON") from None
    return found
