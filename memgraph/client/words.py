"""Methods of the library, described once and offered in two forms: blocking and asynchronous."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from memgraph.client.calls import Call
from memgraph.client.exchange import Course, Rules, Work, exchange

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


def _course(described: Call[T] | Course[T], speaker: Speaker) -> Course[T]:
    return speaker._ask(described) if isinstance(described, Call) else described
