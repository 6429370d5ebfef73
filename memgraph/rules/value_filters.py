"""Filters over JSON values: equality, nested objects and lists, and comparison operators."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from memgraph.errors import InvalidInput
from memgraph.rules.namespaces import MAX_DEPTH

_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS: Final = ("$eq", "$ne", *_ORDERS)


def check(filters: Mapping[str, Any]) -> None:
    """Check that a filter is valid.

    Raises:
        InvalidInput: an unknown operator, a field next to an operator, an ordering operator with
            something other than a number or text, or nesting deeper than that of a value.
    """
    _check_all(filters.values(), 1)


def matches(value: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Return True if each field of ``filters`` matches that of ``value``; a missing field is None.

    Numbers, and text that is a number, are ordered as numbers, other text as text. An ordering
    operator never matches other values, or a number and text that is not a number.
    """
    return all(_fits(value.get(name), condition) for name, condition in filters.items())


def _is_comparison(condition: Any) -> bool:
    return isinstance(condition, Mapping) and any(str(name).startswith("$") for name in condition)


def _check_all(conditions: Iterable[Any], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidInput(f"a filter must not be nested deeper than {MAX_DEPTH}", field="filter")
    for condition in conditions:
        _check_condition(condition, depth)


def _check_condition(condition: Any, depth: int) -> None:
    if isinstance(condition, Mapping):
        if not _is_comparison(condition):
            _check_all(condition.values(), depth + 1)
            return
        for name, bound in condition.items():
            if name not in OPERATORS:
                known = ", ".join(OPERATORS)
                raise InvalidInput(f"an operator must be one of {known}", field="filter")
            if name in _ORDERS and not isinstance(bound, str | int | float):
                raise InvalidInput(f"{name} takes a number or text", field="filter")
    elif isinstance(condition, list | tuple):
        _check_all(condition, depth + 1)


def _fits(value: Any, condition: Any) -> bool:
    if _is_comparison(condition):
        return all(_compares(value, name, bound) for name, bound in condition.items())
    if isinstance(condition, Mapping):
        return isinstance(value, Mapping) and matches(value, condition)
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(condition)
            and all(_fits(part, other) for part, other in zip(value, condition, strict=True))
        )
    return bool(value == condition)


def _compares(value: Any, name: str, bound: Any) -> bool:
    if name == "$eq":
        return bool(value == bound)
    if name == "$ne":
        return bool(value != bound)
    number, limit = _number(value), _number(bound)
    if number is not None and limit is not None:
        return _ORDERS[name](number, limit)
    if number is not None or limit is not None:
        return False
    return isinstance(value, str) and isinstance(bound, str) and _ORDERS[name](value, bound)


_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")


def _number(value: Any) -> int | float | None:
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        return None
    # What ``float`` takes beyond this ("Infinity", "nan", "1_000") is text to a person.
    return float(value) if _NUMBER.fullmatch(value) else None
