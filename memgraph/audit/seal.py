"""The seal of a memory: one hash over all that never changes in it, journalled when it is stored.

``content_hash`` evens out white space and says nothing of where a memory came from; the seal covers
the exact text, who may see it, its source, its place in the conversation and its times.
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
    """SHA-256 (64 hexadecimal digits) of the sealed fields as a JSON array without spaces.

    Args:
        row: the columns of ``memories``; others than ``SEALED_FIELDS`` are not looked at.
    """
    sealed = compact_array([row[name] for name in SEALED_FIELDS])
    return hashlib.sha256(sealed.encode("utf-8", "surrogatepass")).hexdigest()
