"""Run blocking methods as coroutines, each in a worker thread."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from memgraph.model.operation import Awaited, Method, Methods, is_local, is_operation, methods_of

P = ParamSpec("P")
T = TypeVar("T")

# Calls mostly wait, and the loop's default pool is small: six threads on two cores.
THREADS = 64


class ThreadPoolCaller(Methods[Awaited]):
    """An object whose methods run in the threads of a pool.

    Args:
        target: the object with the blocking methods.
    """

    def __init__(self, target: Any, pool: ThreadPoolExecutor) -> None:
        self._target = target
        self._pool = pool


class AwaitableMethod(Method[P, T]):
    """A descriptor that turns a blocking method into a coroutine."""

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


def awaited(method: Callable[Concatenate[Any, P], T]) -> AwaitableMethod[P, T]:
    """Return a method as a coroutine, with its parameters, result, errors and docstring."""
    return AwaitableMethod(method)


def await_all(kind: type[T]) -> type[T]:
    """Turn the methods of a class declared with ``operation`` or ``local`` into coroutines."""
    for name, member in methods_of(kind).items():
        if is_local(member) or is_operation(member):
            setattr(kind, name, AwaitableMethod(member))
    return kind


@cache
def awaited_group(kind: Any) -> Any:
    return await_all(type(f"Async{kind.__name__}", (kind,), {}))


@cache
def pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="memgraph-aio")
