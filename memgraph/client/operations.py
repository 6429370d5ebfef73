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
    RetryRule,
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
from memgraph.model.operation import Operation, Parameter, operation_of
from memgraph.model.values import Value, validated

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


class ClientBase:
    """A caller of methods, over either kind of sender."""

    _rules: RetryRules

    def _ask(self, call: Call[T]) -> Steps[T]:
        """Make one call of a method that takes several: ``answer = yield from self._ask(call)``."""
        return exchange(call, self._rules)

    def _aside(self, work: Callable[[], T]) -> Steps[T]:
        """Run local work that takes time, such as reading a file, outside the event loop."""
        done: T = yield LocalWork(work)
        return done


class BlockingBase(ClientBase):
    """A caller whose methods wait for the answer."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._rules = sender.rules


class AsyncBase(ClientBase):
    """A caller whose methods are coroutines."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender
        self._rules = sender.rules


class RemoteTarget(ClientBase):
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
        return replace(self._look(path, fields, read), repeat=RetryRule.KEYED)


def _named(names: Sequence[str] | None) -> Sequence[str] | None:
    """Return names as a query has them. An empty list is an empty name: omitted, it would mean
    all.
    """
    return ("",) if names is not None and not names else names


class RemoteMethod(Generic[P, T]):
    """A method that is described by the call it makes, or by a sequence of calls."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T] | Steps[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__
        self.__wrapped__ = describe

    @overload
    def __get__(self, caller: None, owner: type) -> Self: ...
    @overload
    def __get__(self, caller: BlockingBase, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, caller: AsyncBase, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, caller: Any, owner: type) -> Any:
        if caller is None:
            return self
        describe = self._describe
        if isinstance(caller, BlockingBase):

            @wraps(describe)
            def blocking(*args: P.args, **kwargs: P.kwargs) -> T:
                return caller._sender.run(_steps(describe(caller, *args, **kwargs), caller))

            return blocking

        @wraps(describe)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> T:
            answer: T = await caller._sender.run(_steps(describe(caller, *args, **kwargs), caller))
            return answer

        return awaited


def method(
    describe: Callable[Concatenate[Any, P], Call[T] | Generator[Any, Any, T]],
) -> RemoteMethod[P, T]:
    """Make a method from a function that returns one call, or from a generator of several."""
    return RemoteMethod(describe)


def like(
    library: Callable[Concatenate[Any, P], T],
) -> Callable[[Callable[..., Call[T] | Steps[T]]], RemoteMethod[P, T]]:
    """Make a method with the signature and the docstring of the library's."""

    def make(describe: Callable[..., Call[T] | Steps[T]]) -> RemoteMethod[P, T]:
        return RemoteMethod(wraps(library)(describe))

    return make


def _steps(described: Call[T] | Steps[T], caller: ClientBase) -> Steps[T]:
    return caller._ask(described) if isinstance(described, Call) else described


def remote(library: Callable[Concatenate[Any, P], T]) -> RemoteMethod[P, T]:
    """Return the method of the client that asks a server for an operation.

    It has the parameters, the result, the errors and the docstring of the library's method.
    """
    declared = operation_of(library)
    read = cache(lambda: _reader(declared))

    @wraps(library)
    def describe(place: RemoteTarget, *args: Any, **kwargs: Any) -> Call[T]:
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
            repeat=RetryRule.KEYED if declared.changes else RetryRule.SAFE,
            slow=declared.slow,
            accepts=None if declared.sent is None else JSON,
        )

    return RemoteMethod(describe)  # type: ignore[arg-type]  # its parameters are the method's


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
        raise InvalidInput("a field is not plain JSON") from None
    return found
