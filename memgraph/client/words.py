"""A word of the library, described once and said in two ways: waiting for it, or awaiting it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from memgraph.client.calls import Call
from memgraph.client.exchange import Course, Rules, Work, exchange

P = ParamSpec("P")
T = TypeVar("T")


class Sender(Protocol):
    """Carries courses out, and blocks until they end."""

    rules: Rules

    def run(self, course: Course[T]) -> T: ...


class AsyncSender(Protocol):
    """Carries courses out, and is awaited."""

    rules: Rules

    async def run(self, course: Course[T]) -> T: ...


class Speaker:
    """Whatever has words; both kinds of senders stand behind it."""

    _rules: Rules

    def _ask(self, call: Call[T]) -> Course[T]:
        """One call of a word that takes several: ``answer = yield from self._ask(call)``."""
        return exchange(call, self._rules)

    def _aside(self, work: Callable[[], T]) -> Course[T]:
        """What takes its time here, such as a look through a file: it holds no event loop up."""
        done: T = yield Work(work)
        return done


class Blocking(Speaker):
    """Says its words and waits for the answer."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._rules = sender.rules


class Awaiting(Speaker):
    """Its words are coroutines."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender
        self._rules = sender.rules


class Word(Generic[P, T]):
    """A method that is described by the call it makes, or by a course of several calls."""

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
    """Make a word of a method that describes one call."""
    return Word(describe)


def course(describe: Callable[Concatenate[Any, P], Generator[Any, Any, T]]) -> Word[P, T]:
    """Make a word of a method that takes several calls."""
    return Word(describe)


def _course(described: Call[T] | Course[T], speaker: Speaker) -> Course[T]:
    return speaker._ask(described) if isinstance(described, Call) else described
