"""Receipts of what was recalled: written after the answer was given, never while it is read."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from memgraph.model.recall import Bundle, RecallRequest
from memgraph.storage.encoding import json_text

MAX_KEPT_QUERY_CHARS = 2_000


def write(connection: sa.Connection, given: Sequence[tuple[RecallRequest, Bundle]]) -> None:
    """Store receipts and count the accesses. One that is stored already is passed over.

    A memory that was erased since leaves the receipt without it.
    """
    for request, bundle in given:
        if _write_head(connection, request, bundle):
            _write_items(connection, bundle)


def _write_head(connection: sa.Connection, request: RecallRequest, bundle: Bundle) -> bool:
    asked = request.model_dump(mode="json", exclude_defaults=True, exclude={"query"})
    written = connection.exec_driver_sql(
        "INSERT OR IGNORE INTO recalls (recall_id, created_at, query, request) VALUES (?, ?, ?, ?)",
        (bundle.receipt_id, bundle.at, bundle.query[:MAX_KEPT_QUERY_CHARS], json_text(asked)),
    )
    return bool(written.rowcount)


def _write_items(connection: sa.Connection, bundle: Bundle) -> None:
    if not bundle.items:
        return
    connection.exec_driver_sql(
        "INSERT INTO recall_items (recall_id, rank, memory_id, score, explanation)"
        " SELECT ?, ?, m.memory_id, ?, ? FROM memories m WHERE m.memory_id = ?",
        [
            (
                bundle.receipt_id,
                rank,
                item.score,
                json_text({"legs": item.legs, "modifiers": item.modifiers}),
                item.memory.memory_id,
            )
            for rank, item in enumerate(bundle.items, start=1)
        ],
    )
    connection.exec_driver_sql(
        "UPDATE memories SET access_count = access_count + 1,"
        " last_accessed_at = max(coalesce(last_accessed_at, ?), ?) WHERE memory_id = ?",
        [(bundle.at, bundle.at, item.memory.memory_id) for item in bundle.items],
    )
