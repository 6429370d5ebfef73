"""Methods of the client derived from the operations that a handle declares."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from memgraph.client.calls import JSON, Call, Read, Repeat, body, nothing, part_of, segment, typed
from memgraph.client.files import Place, plain
from memgraph.client.words import Word
from memgraph.model.operation import Operation, Parameter, operation_of

P = ParamSpec("P")
T = TypeVar("T")


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
        return Call(
            declared.method,
            place._root + declared.path.format_map(parts),
            read(),
            place._view if declared.method != "GET" else place._view | rest,
            body(plain(rest)) if declared.method != "GET" and rest else None,
            repeat=Repeat.KEYED if declared.changes else Repeat.SAFE,
            slow=declared.slow,
            accepts=None if declared.answer is None else JSON,
        )

    return Word(describe)  # type: ignore[arg-type]  # its parameters are the method's


def _sent(each: Parameter, value: Any) -> Any:
    return value if value is None or each.write is None else each.write(value)


def _reader(declared: Operation) -> Read[Any]:
    """Return the reader of an operation's answer."""
    if declared.answer is None:
        return nothing
    if declared.page is None:
        return typed(declared.answer)
    # A list is a list again; what comes is a tuple.
    return part_of(declared.page, lambda told: list(told.items))
