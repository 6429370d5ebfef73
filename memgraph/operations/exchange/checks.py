"""Validation of imported lines: strict JSON, and one check for each kind of field."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from memgraph.clock import MAX_MS, MIN_MS
from memgraph.errors import ImportRejected
from memgraph.store.rows import json_text

MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**63 - 1

Check = Callable[[Any], Any]
"""Takes a value from a line and returns the one to store, or raises ImportRejected."""


def refused(reason: str, message: str) -> ImportRejected:
    return ImportRejected(message, reason=reason)


def loads(text: str) -> dict[str, Any]:
    """Parse a JSON object without duplicate keys, NaN, huge numbers, deep nesting or bad
    characters.

    Raises:
        ImportRejected: naming the defect.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except RecursionError:
        raise refused("nesting", "nested too deeply") from None
    except ValueError:
        raise refused("syntax", "not a JSON object") from None
    if not isinstance(value, dict):
        raise refused("syntax", "not a JSON object")
    # Bad characters can only come from escapes, deep nesting only from many brackets.
    if "\\u" in text or "\x00" in text or text.count("[") + text.count("{") > MAX_DEPTH:
        _check_value(value, MAX_DEPTH)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise refused("duplicate_key", "an object names the same field twice")
    return result


def _no_constant(_name: str) -> float:
    raise refused("number", "NaN and Infinity are no JSON numbers")


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -MAX_INTEGER - 1 <= int(digits) <= MAX_INTEGER:
        raise refused("number", "an integer beyond 64 bits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise refused("number", "a number that is too large")
    return number


def _check_value(value: Any, depth: int) -> None:
    if depth == 0:
        raise refused("nesting", "nested too deeply")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, list):
        for item in value:
            _check_value(item, depth - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key)
            _check_value(item, depth - 1)


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise refused("value", "a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise refused("value", "a lone surrogate") from None


def json_check(field: str, statuses_wanted: type) -> Check:
    """Return a check for lists and objects; as text they keep their spelling."""

    def check(value: Any) -> str:
        text = json_text(value)
        if isinstance(value, str):
            # Wrapped, so that lists are read by the same strict rules as objects.
            text, wrapped = value, loads(f'{{"value":{value}}}')
            if wrapped.keys() != {"value"}:
                raise refused("syntax", f"{field} is not JSON")
            value = wrapped["value"]
        if not isinstance(value, statuses_wanted):
            raise refused("value", f"{field} is not a JSON {statuses_wanted.__name__}")
        if isinstance(value, list) and not all(isinstance(tag, str) for tag in value):
            raise refused("value", "a tag is not a text")
        return text

    return check


def type_check(field: str, *kinds: type) -> Check:
    def check(value: Any) -> Any:
        # Not isinstance: True is no number here.
        if type(value) not in kinds:
            raise refused("value", f"{field} is not of its type")
        return value

    return check


def time_check(field: str) -> Check:
    typed = type_check(field, int)

    def check(value: Any) -> Any:
        if not MIN_MS <= typed(value) <= MAX_MS:
            raise refused("value", f"{field} lies outside of the years 0001 to 9999")
        return value

    return check


def text_check(field: str, limit: int) -> Check:
    typed = type_check(field, str)

    def check(value: Any) -> Any:
        if len(typed(value)) > limit:
            raise refused("value", f"{field} is longer than {limit} characters")
        return value

    return check


def choice_check(field: str, choices: Sequence[str]) -> Check:
    def check(value: Any) -> Any:
        if value not in choices:
            raise refused("value", f"{field} is none of: {', '.join(choices)}")
        return value

    return check


def bytes_check(field: str) -> Check:
    typed = type_check(field, str)

    def check(value: Any) -> bytes:
        try:
            return base64.b64decode(typed(value), validate=True)
        except ValueError:
            raise refused("value", f"{field} is not base64") from None

    return check
