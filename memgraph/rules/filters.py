"""The filter language of memory backends: parse and check a filter once, then apply it to items.

A filter is a mapping of fields to conditions; an item passes if it meets all of them::

    {"kind": "decision", "tags": ["python", "ci"], "importance": {"$gte": 0.7, "$lt": 0.9}}

- A plain value: the field equals it.
- A list, for ``tags`` or a payload path: any of its values is in the item's list.
- ``{"$gte": 0.7}``: all its operators match, of ``$eq $ne $gt $gte $lt $lte $in``.

Fields are those of ``ContextItem``; for the payload a path of keys, ``payload.failure.code``.

- Text is compared by code point, timestamps in whole milliseconds, numbers by value: 1 equals 1.0.
  A boolean is not a number.
- None equals only None; a missing path is None. None, or a value of another type than the operand,
  matches no ordering operator.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem

MAX_TERMS: Final = 64
MAX_OPERANDS: Final = 1_000
MAX_LIMIT: Final = 1_000_000
MAX_DEPTH: Final = 100
"""The maximum depth of nested lists and objects in a payload; SQLite's own limit is 1,000."""
PAYLOAD: Final = "payload"
_PATH: Final = PAYLOAD + "."
_TEXTS = frozenset({"context_item_id", "kind", "source"})
_NUMBERS = frozenset({"importance", "token_cost"})
ORDER_FIELDS = (*sorted(_TEXTS | _NUMBERS), "timestamp")
FIELDS = (*ORDER_FIELDS, "tags")


class Operator(StrEnum):
    """The operators. ``ANY`` is written as a plain list; any of its values has to match."""

    EQ = "$eq"
    NE = "$ne"
    GT = "$gt"
    GTE = "$gte"
    LT = "$lt"
    LTE = "$lte"
    IN = "$in"
    ANY = "any"


_ORDERING: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.GT: operator.gt,
    Operator.GTE: operator.ge,
    Operator.LT: operator.lt,
    Operator.LTE: operator.le,
}
_WRITTEN = {each.value: each for each in Operator if each is not Operator.ANY}


@dataclass(frozen=True, slots=True)
class FilterTerm:
    """A condition of a filter.

    Attributes:
        field: one of ``FIELDS``, or ``payload`` with ``path``.
        operand: checked and of the field's type: milliseconds for ``timestamp``; a tuple for
            ``IN`` and ``ANY``, and for ``EQ`` and ``NE`` on ``tags``.
    """

    field: str
    operator: Operator
    operand: Any
    path: tuple[str, ...] = ()

    def holds(self, item: ContextItem) -> bool:
        """Return True if an item meets the condition."""
        value = self._value(item)
        if self.operator is Operator.EQ:
            return same(value, self.operand)
        if self.operator is Operator.NE:
            return not same(value, self.operand)
        if self.operator is Operator.ANY or (self.operator is Operator.IN and self.field == "tags"):
            values = value if isinstance(value, list | tuple) else ()
            return any(same(present, bound) for bound in self.operand for present in values)
        if self.operator is Operator.IN:
            return any(same(value, bound) for bound in self.operand)
        return _comparable(value, self.operand) and _ORDERING[self.operator](value, self.operand)

    def _value(self, item: ContextItem) -> Any:
        if self.field == PAYLOAD:
            return _at(item.payload, self.path)
        value = getattr(item, self.field)
        return parse_time(value) if self.field == "timestamp" else value


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The field and the direction of a sort; ties are sorted by id, ascending."""

    field: str
    descending: bool


def parse(filters: Mapping[str, Any]) -> tuple[FilterTerm, ...]:
    """Parse a filter into its conditions.

    Raises:
        InvalidInput: an unknown field or operator, an invalid operand for the field, or more than
            64 conditions; ``details["field"]`` names the field.
    """
    if not isinstance(filters, Mapping):
        raise InvalidInput("filters must be a mapping of fields to wanted values", field="filters")
    terms: list[FilterTerm] = []
    for name, conditions in filters.items():
        field, path = _field(name)
        for operator_, operand in _conditions(name, field, conditions):
            terms.append(
                FilterTerm(field, operator_, _operand(name, field, operator_, operand), path)
            )
    if len(terms) > MAX_TERMS:
        raise InvalidInput(f"a filter may have at most {MAX_TERMS} conditions", field="filters")
    return tuple(terms)


def parse_order(order_by: str) -> SortOrder:
    """Parse a sort order: ``timestamp`` is newest first, ``-timestamp`` oldest first.

    Raises:
        InvalidInput: the field cannot be sorted by.
    """
    if not isinstance(order_by, str) or order_by.removeprefix("-") not in ORDER_FIELDS:
        raise InvalidInput(
            f"order_by must be one of {', '.join(ORDER_FIELDS)}; a leading - reverses the order",
            field="order_by",
        )
    return SortOrder(order_by.removeprefix("-"), not order_by.startswith("-"))


def parse_limit(limit: int) -> int:
    """Check a limit. Raises InvalidInput unless it is a whole number from 1 to 1,000,000."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit must be a whole number from 1 to {MAX_LIMIT:,}", field="limit")
    return limit


def matches(item: ContextItem, terms: Iterable[FilterTerm]) -> bool:
    """Return True when an item meets all conditions."""
    return all(term.holds(item) for term in terms)


def ordered(items: Iterable[ContextItem], order: SortOrder) -> list[ContextItem]:
    """Return items in order; items without the field come last in either direction."""
    by_id = sorted(items, key=lambda item: item.context_item_id)
    key = FilterTerm(order.field, Operator.EQ, None)._value
    with_field = [item for item in by_id if key(item) is not None]
    # A reversed sort is stable too, so ties stay sorted by id.
    with_field.sort(key=key, reverse=order.descending)
    return with_field + [item for item in by_id if key(item) is None]


def same(left: Any, right: Any) -> bool:
    """Return True if values are equal as JSON: 1 equals 1.0, but true is not 1, at any depth."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


def _field(name: Any) -> tuple[str, tuple[str, ...]]:
    if isinstance(name, str):
        if name in FIELDS:
            return name, ()
        path = tuple(name.removeprefix(_PATH).split("."))
        if name.startswith(_PATH) and all(path):
            return PAYLOAD, path
    raise InvalidInput(
        f"unknown field {str(name)[:80]!r}; known: {', '.join(FIELDS)}, payload.<key>",
        field=str(name)[:80],
    )


def _conditions(name: str, field: str, conditions: Any) -> list[tuple[Operator, Any]]:
    if isinstance(conditions, Mapping):
        if not conditions:
            raise _wrong(name, "has no operator")
        for operator in conditions:
            if operator not in _WRITTEN:
                raise _wrong(
                    name, f"unknown operator {str(operator)[:80]!r}; known: {', '.join(_WRITTEN)}"
                )
        return [(_WRITTEN[operator], operand) for operator, operand in conditions.items()]
    if field in ("tags", PAYLOAD) and isinstance(conditions, list | tuple):
        return [(Operator.ANY, conditions)]
    if field == "tags":
        raise _wrong(name, "takes a list of texts")
    if isinstance(conditions, list | tuple | set | frozenset):
        raise _wrong(name, "must not be a list; for one of several values use {'$in': [...]}")
    return [(Operator.EQ, conditions)]


def _operand(name: str, field: str, operator_: Operator, operand: Any) -> Any:
    """Check an operand, and return it in the field's type. Raises InvalidInput."""
    if operator_ in _ORDERING:
        if field == "tags":
            raise _wrong(name, f"a list has no order for {operator_}")
        checked = _scalar(name, field, operand)
        if checked is None or (field == PAYLOAD and not _comparable(checked, checked)):
            raise _wrong(name, f"{operator_} compares with a number or a text")
        return checked
    if operator_ in (Operator.IN, Operator.ANY) or field == "tags":
        return _operands(name, "kind" if field == "tags" else field, operand)
    return _scalar(name, field, operand)


def _operands(name: str, field: str, operand: Any) -> tuple[Any, ...]:
    if not isinstance(operand, list | tuple | set | frozenset):
        raise _wrong(name, "takes a list")
    if len(operand) > MAX_OPERANDS:
        raise _wrong(name, f"takes at most {MAX_OPERANDS:,} values")
    return tuple(_scalar(name, field, item) for item in operand)


def _scalar(name: str, field: str, operand: Any) -> Any:
    if field in _TEXTS:
        if not isinstance(operand, str):
            raise _wrong(name, "must be text")
        return _text(name, operand)
    if field == "timestamp":
        try:
            return parse_time(operand)
        except InvalidInput as error:
            raise _wrong(name, error.message) from None
    if field in _NUMBERS:
        if operand is not None and not _is_number(operand):
            raise _wrong(name, "must be a finite number, or None")
        return operand
    return _json(name, operand)


def _json(name: str, operand: Any, levels: int = MAX_DEPTH) -> Any:
    """Check a value that a payload may contain, and return it. Raises InvalidInput."""
    if isinstance(operand, str):
        return _text(name, operand)
    if operand is None or isinstance(operand, bool) or _is_number(operand):
        return operand
    if isinstance(operand, list | tuple | dict) and levels == 0:
        raise _wrong(name, f"is nested more than {MAX_DEPTH} levels deep")
    if isinstance(operand, list | tuple):
        return tuple(_json(name, item, levels - 1) for item in operand)
    if isinstance(operand, dict) and all(isinstance(key, str) for key in operand):
        return {key: _json(name, item, levels - 1) for key, item in operand.items()}
    raise _wrong(name, "must be plain JSON")


def _text(name: str, operand: str) -> str:
    try:
        operand.encode("utf-8")
    except UnicodeEncodeError:
        raise _wrong(name, "contains a lone surrogate") from None
    return operand


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _comparable(left: Any, right: Any) -> bool:
    """Return True if the values have an order: two numbers, or two texts."""
    if isinstance(left, str) and isinstance(right, str):
        return True
    return _is_number(left) and _is_number(right)


def _at(payload: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = payload
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _wrong(name: str, problem: str) -> InvalidInput:
    return InvalidInput(f"{name[:80]}: {problem}", field=name[:80])
