"""Receipts of what was recalled: written after the answer was given, never while it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from memgraph.model.recall import Bundle, RecallRequest
from memgraph.storage.encoding import json_text

MAX_KEPT_QUERY_CHARS = 2_000

_HEAD = "INSERT OR IGNORE INTO recalls (recall_id, created_at, query, request) VALUES (?, ?, ?, ?)"
_ITEM = (
    "INSERT INTO recall_items (recall_id, rank, memory_id, score, explanation)"
    " SELECT ?1, ?2, memory_id, ?3, ?4 FROM memories WHERE memory_id = ?5"
)
_COUNT = (
    "UPDATE memories SET access_count = access_count + ?1,"
    " last_accessed_at = max(coalesce(last_accessed_at, ?2), ?2) WHERE memory_id = ?3"
)


def write(connection: sa.Connection, given: Sequence[tuple[RecallRequest, Bundle]]) -> None:
    """Store receipts and count the accesses. One that is stored already is passed over.

    A memory that was erased since leaves the receipt without it.
    """
    # Hundreds of small rows: the driver alone takes a third of the time.
    driver: Any = connection.connection.driver_connection
    new = [bundle for request, bundle in given if _write_head(driver, request, bundle)]
    driver.executemany(_ITEM, [row for bundle in new for row in _items(bundle)])
    accesses: dict[str, list[int]] = {}
    for bundle in new:
        for item in bundle.items:
            accesses.setdefault(item.memory.memory_id, []).append(bundle.at)
    driver.executemany(
        _COUNT, [(len(times), max(times), memory_id) for memory_id, times in accesses.items()]
    )


def _write_head(driver: Any, request: RecallRequest, bundle: Bundle) -> bool:
    asked = request.model_dump(mode="json", exclude_defaults=True, exclude={"query"})
    values = (bundle.receipt_id, bundle.at, bundle.query[:MAX_KEPT_QUERY_CHARS], json_text(asked))
    return bool(driver.execute(_HEAD, values).rowcount)


def _items(bundle: Bundle) -> Iterator[tuple[str, int, float, str, str]]:
    for rank, item in enumerate(bundle.items, start=1):
        explanation = json_text({"legs": item.legs, "modifiers": item.modifiers})
        yield bundle.receipt_id, rank, item.score, explanation, item.memory.memory_id
