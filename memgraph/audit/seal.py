"""The seal of a memory: one hash over all its immutable fields, journalled when it is stored.

``content_hash`` normalises white space and ignores a memory's origin; the seal covers the exact
text, its visibility, its source, its place in the conversation and its times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from memgraph.store.rows import compact_array

SEALED_FIELDS = (
    "memory_id",
    "kind",
    "type",
    "content",
    "summary",
    "sensitivity",
    "scope",
    "scope_id",
    "agent_id",
    "session_id",
    "sequence",
    "turn_id",
    "source_role",
    "event_time",
    "created_at",
    "source_id",
)


def memory_seal(row: Mapping[str, Any]) -> str:
    """Return the SHA-256 (64 hexadecimal digits) of the sealed fields as a JSON array without
    spaces.

    Args:
        row: the columns of ``memories``; others than ``SEALED_FIELDS`` are ignored.
    """
    sealed = compact_array([row[name] for name in SEALED_FIELDS])
    return hashlib.sha256(sealed.encode("utf-8", "surrogatepass")).hexdigest()
