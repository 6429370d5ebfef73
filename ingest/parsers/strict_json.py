"""Strict JSON: rejects what ``json.loads`` accepts and a database or a reader cannot handle."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from ingest.reasons import RejectionReason, refuse

MAX_DEPTH = 64
MAX_INTEGER = 2**63 - 1
_MAX_DIGITS = 19

# A string, or a bracket. The closing quote may be missing, so that no position is tried twice.
_MARK = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NUL = re.compile(r"\\u0000")
_LONE = re.compile("[\ud800-\udfff]")


class _DuplicateKey(ValueError):
    pass


class _NotANumber(ValueError):
    pass


class _OutOfRange(ValueError):
    pass


def load_json(text: str) -> Any:
    """Return the value in ``text``.

    Raises:
        IngestRejected: json_invalid, json_truncated, json_duplicate_key, json_not_a_number (NaN,
            Infinity), json_number_range (an integer beyond 64 bits, a float that overflows),
            json_lone_surrogate, json_nul or json_too_deep (over ``MAX_DEPTH``).
    """
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_number,
        )
    except _DuplicateKey as error:
        raise refuse(
            RejectionReason.JSON_DUPLICATE_KEY,
            "an object names the same field twice",
            field=str(error),
        ) from None
    except _NotANumber:
        raise refuse(
            RejectionReason.JSON_NOT_A_NUMBER, "NaN and Infinity are no JSON numbers"
        ) from None
    except _OutOfRange:
        raise refuse(
            RejectionReason.JSON_NUMBER_RANGE,
            "a number is too large: write it as text",
            limit=MAX_INTEGER,
        ) from None
    except json.JSONDecodeError as error:
        raise _syntax(text, error) from None
    if _SURROGATE.search(text) or _NUL.search(text):
        _check_text(value)
    return value


def _check_depth(text: str) -> None:
    """Check the depth before parsing: the parser's own limit is the interpreter's stack."""
    depth = 0
    for match in _MARK.finditer(text):
        mark = text[match.start()]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise refuse(
                    RejectionReason.JSON_TOO_DEEP,
                    f"the JSON is nested deeper than {MAX_DEPTH} levels",
                    limit=MAX_DEPTH,
                )
        elif mark in "]}":
            depth -= 1


def _check_text(value: Any) -> None:
    plain = json.dumps(value, ensure_ascii=False)
    if _LONE.search(plain):
        raise refuse(
            RejectionReason.JSON_LONE_SURROGATE, "half of a surrogate pair is no character"
        )
    # Dumping writes NUL as its escape again; an escaped backslash before it is doubled.
    if re.search(r"(?<!\\)(?:\\\\)*\\u0000", plain):
        raise refuse(RejectionReason.JSON_NUL, "a text holds the NUL character")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                raise _DuplicateKey(name[:80].encode("utf-8", "replace").decode())
            names.add(name)
    return fields


def _no_constant(_: str) -> NoReturn:
    raise _NotANumber


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > _MAX_DIGITS:
        raise _OutOfRange
    value = int(digits)
    if not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
        raise _OutOfRange
    return value


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _OutOfRange
    return value


def _syntax(text: str, error: json.JSONDecodeError) -> Exception:
    end = len(text.rstrip())
    rest = text[error.pos : end]
    half_word = any(word.startswith(rest) for word in ("true", "false", "null", "-"))
    cut = error.msg.startswith("Unterminated string") or (len(rest) < 5 and half_word)
    reason = RejectionReason.JSON_TRUNCATED if cut else RejectionReason.JSON_INVALID
    message = "the JSON ends before it is complete" if cut else "the file is not JSON"
    return refuse(reason, message, line=error.lineno, column=error.colno, problem=error.msg)
