"""JSON as it is stored: one spelling, so that equal values are equal bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any

# One encoder for all: json.dumps with options would make a new one at every call.
json_text = json.JSONEncoder(ensure_ascii=False, sort_keys=True, allow_nan=False).encode
compact_json = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":")
).encode


def compact_array(values: Iterable[Any]) -> str:
    """``compact_json`` of a list; of texts, integers and None in a third of its time."""
    parts = [
        encode_basestring(value) if type(value) is str else _compact(value) for value in values
    ]
    return f"[{','.join(parts)}]"


def _compact(value: Any) -> str:
    if value is None:
        return "null"
    return repr(value) if type(value) is int else compact_json(value)
