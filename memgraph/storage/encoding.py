"""JSON as it is stored: one spelling, so that equal values are equal bytes."""

from __future__ import annotations

import json

# One encoder for all: json.dumps with options would make a new one at every call.
json_text = json.JSONEncoder(ensure_ascii=False, sort_keys=True, allow_nan=False).encode
compact_json = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":")
).encode
