"""Filters over JSON values: equality, inside objects and lists, and operators of comparison."""

from __future__ import annotations

import operator
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


def check(wanted: Mapping[str, Any]) -> None:
    """Check that a filter is valid.

    Raises:
        InvalidInput: it has an operator nobody knows, beside one a field, orders by what is
            neither a number nor text, or is deeper than a value may be.
    """
    _check_all(wanted.values(), 1)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return True when each field of ``wanted`` fits that of ``value``; one that is not there is
    None.

    Numbers, and texts that are numbers, are ordered as numbers, other texts as texts. What is
    neither fulfils no order, nor does a number beside a text that is none.
    """
    return all(_fits(value.get(name), condition) for name, condition in wanted.items())


def _is_comparison(condition: Any) -> bool:
    return isinstance(condition, Mapping) and any(str(name).startswith("$") for name in condition)


def _check_all(conditions: Iterable[Any], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidInput(f"a filter must not be nested deeper than {MAX_DEPTH}", field="filter")
    for each in conditions:
        _check_condition(each, depth)


def _check_condition(condition: Any, depth: int) -> None:
    if isinstance(condition, Mapping):
        if not _is_comparison(condition):
            _check_all(condition.values(), depth + 1)
            return
        for name, bound in condition.items():
            if name not in OPERATORS:
                raise InvalidInput(f"an operator is one of {', '.join(OPERATORS)}", field="filter")
            if name in _ORDERS and not isinstance(bound, str | int | float):
                raise InvalidInput(f"{name} takes a number or a text", field="filter")
    elif isinstance(condition, list | tuple):
        _check_all(condition, depth + 1)


def _fits(found: Any, condition: Any) -> bool:
    if _is_comparison(condition):
        return all(_compares(found, name, bound) for name, bound in condition.items())
    if isinstance(condition, Mapping):
        return isinstance(found, Mapping) and matches(found, condition)
    if isinstance(condition, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(condition)
            and all(_fits(one, other) for one, other in zip(found, condition, strict=True))
        )
    return bool(found == condition)


def _compares(found: Any, name: str, bound: Any) -> bool:
    if name == "$eq":
        return bool(found == bound)
    if name == "$ne":
        return bool(found != bound)
    one, other = _number(found), _number(bound)
    if one is not None and other is not None:
        return _ORDERS[name](one, other)
    if one is not None or other is not None:
        return False
    return isinstance(found, str) and isinstance(bound, str) and _ORDERS[name](found, bound)


def _number(value: Any) -> int | float | None:
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
