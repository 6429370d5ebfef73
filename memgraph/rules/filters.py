"""The filter language of memory backends: check a filter once, then apply it to items.

A filter is a mapping of fields to conditions; an item passes if it meets all of them::

    {"kind": "decision", "tags": ["python", "ci"], "importance": {"$gte": 0.7, "$lt": 0.9}}

- A plain value: the field equals it.
- A list, for ``tags``: any of its values is a tag of the item.
- ``{"$gte": 0.7}``: all its operators match, of ``$eq $ne $gt $gte $lt $lte $in``.

Fields are those of ``ContextItem`` except the payload. Text is compared by code point, timestamps
in whole milliseconds. None equals only None, and matches no ordering operator.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem

MAX_LIMIT: Final = 1_000_000
_TEXTS = frozenset({"context_item_id", "kind", "source"})
_NUMBERS = frozenset({"importance", "token_cost"})
ORDER_FIELDS = (*sorted(_TEXTS | _NUMBERS), "timestamp")
FIELDS = (*ORDER_FIELDS, "tags")
EQ, IN = "$eq", "$in"
_ORDERING: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = (EQ, "$ne", *_ORDERING, IN)


class FilterTerm(NamedTuple):
    """A condition of a filter.

    Attributes:
        field: one of ``FIELDS``.
        operator: one of ``OPERATORS``.
        operand: checked and of the field's type: milliseconds for ``timestamp``; a tuple for
            ``$in`` and for ``tags``.
    """

    field: str
    operator: str
    operand: Any

    def holds(self, item: ContextItem) -> bool:
        """Return True if an item meets the condition."""
        value = _value(item, self.field)
        if self.operator == IN:
            values = value if self.field == "tags" else (value,)
            return any(each in self.operand for each in values)
        if self.operator in _ORDERING:
            return value is not None and _ORDERING[self.operator](value, self.operand)
        return bool((value == self.operand) is (self.operator == EQ))


class SortOrder(NamedTuple):
    """The field and the direction of a sort; ties are sorted by id, ascending."""

    field: str
    descending: bool


def parse(filters: Mapping[str, Any]) -> tuple[FilterTerm, ...]:
    """Parse a filter into its conditions.

    Raises:
        InvalidInput: an unknown field or operator, or an invalid operand for the field;
            ``details["field"]`` names the field.
    """
    if not isinstance(filters, Mapping):
        raise InvalidInput("filters must be a mapping of fields to wanted values", field="filters")
    return tuple(
        FilterTerm(field, operator_, _operand(field, operator_, operand))
        for field, conditions in filters.items()
        for operator_, operand in _conditions(field, conditions)
    )


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
    with_field = [item for item in by_id if _value(item, order.field) is not None]
    # A reversed sort is stable too, so ties stay sorted by id.
    with_field.sort(key=lambda item: _value(item, order.field), reverse=order.descending)
    return with_field + [item for item in by_id if _value(item, order.field) is None]


def _value(item: ContextItem, field: str) -> Any:
    value = getattr(item, field)
    return parse_time(value) if field == "timestamp" else value


def _conditions(field: Any, conditions: Any) -> Iterable[tuple[str, Any]]:
    if field not in FIELDS:
        raise _wrong(str(field), f"unknown field; known: {', '.join(FIELDS)}")
    if not isinstance(conditions, Mapping):
        if field != "tags" and isinstance(conditions, list | tuple | set | frozenset):
            raise _wrong(field, "must not be a list; for one of several values use {'$in': [...]}")
        return [(IN if field == "tags" else EQ, conditions)]
    if not conditions or not conditions.keys() <= set(OPERATORS):
        raise _wrong(field, f"takes operators of {', '.join(OPERATORS)}")
    return conditions.items()


def _operand(field: str, operator_: str, operand: Any) -> Any:
    """Check an operand, and return it in the field's type. Raises InvalidInput."""
    if operator_ == IN or field == "tags":
        if operator_ in _ORDERING or not isinstance(operand, list | tuple | set | frozenset):
            raise _wrong(field, "takes a list, which has no order")
        return tuple(_scalar(field, each) for each in operand)
    checked = _scalar(field, operand)
    if checked is None and operator_ in _ORDERING:
        raise _wrong(field, f"{operator_} compares with a number")
    return checked


def _scalar(field: str, operand: Any) -> Any:
    if field == "timestamp":
        try:
            return parse_time(operand)
        except InvalidInput as error:
            raise _wrong(field, error.message) from None
    if field in _NUMBERS:
        is_number = isinstance(operand, int | float) and not isinstance(operand, bool)
        if operand is not None and not (is_number and -math.inf < operand < math.inf):
            raise _wrong(field, "must be a finite number, or None")
    elif not isinstance(operand, str):
        raise _wrong(field, "must be text")
    return operand


def _wrong(field: str, problem: str) -> InvalidInput:
    return InvalidInput(f"{field[:80]}: {problem}", field=field[:80])
