"""Run blocking methods as coroutines, each in a worker thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from memgraph.model.operation import Method, is_local, methods_of, operation_of

P = ParamSpec("P")
T = TypeVar("T")

# Calls mostly wait, and the loop's default pool is small: six threads on two cores.
THREADS = 64
IDLE_S = 30.0


class AwaitableMethod(Method[P, T]):
    """A descriptor that turns a blocking method into a coroutine.

    It has the parameters, result, errors and docstring of the method, which it calls on the
    ``_target`` of its object, in a thread of the object's ``_pool``.
    """

    def __init__(self, method: Callable[Concatenate[Any, P], T]) -> None:
        self.__wrapped__ = method
        self.__doc__ = method.__doc__

    if not TYPE_CHECKING:

        def __get__(self, caller, owner):
            if caller is None:
                return self
            method = getattr(caller._target, self.__wrapped__.__name__)

            @wraps(method)
            async def awaited(*args, **kwargs):
                call = partial(contextvars.copy_context().run, method, *args, **kwargs)
                return await asyncio.get_running_loop().run_in_executor(caller._pool, call)

            return awaited


def await_all(kind: type[T]) -> type[T]:
    """Turn the methods of a class declared with ``operation`` or ``local`` into coroutines."""
    for name, member in methods_of(kind).items():
        if is_local(member) or operation_of(member):
            setattr(kind, name, AwaitableMethod(member))
    return kind


@cache
def awaited_group(kind: Any) -> Any:
    return await_all(type(f"Async{kind.__name__}", (kind,), {}))


@cache
def pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="memgraph-aio")


class DaemonThreads(Executor):
    """Runs calls in daemon threads, so that a call that only waits keeps no process from exiting.

    Args:
        threads: the maximum number of threads, which are started on demand and end after
            ``IDLE_S`` seconds without work.
        name: the name of the threads.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._threads = threads
        self._name = name
        self._queue: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._changed = threading.Condition()
        self._alive = self._idle = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """See ``Executor.submit``.

        Raises:
            RuntimeError: the system cannot start a thread, and none is left.
        """
        future: Future[T] = Future()
        with self._changed:
            self._queue.append((future, partial(fn, *args, **kwargs)))
            if len(self._queue) <= self._idle:
                self._changed.notify()
            elif self._alive < self._threads:
                self._start_thread()
        return future

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
        self._alive += 1
        try:
            thread.start()
        except RuntimeError:
            self._alive -= 1
            # Other threads serve the queue as well.
            if not self._alive:
                self._queue.pop()
                raise

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            _complete(*work)
            # An idle thread must not hold a result.
            del work

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._queue, IDLE_S)
            self._idle -= 1
            if not self._queue:
                self._alive -= 1
                return None
            return self._queue.popleft()


def _complete(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001  # raised again in the one that waits
        future.set_exception(error)
    else:
        future.set_result(result)


@cache
def daemon_pool() -> DaemonThreads:
    """Return the threads for calls that change nothing in this process, such as requests."""
    return DaemonThreads(THREADS, "memgraph-request")
