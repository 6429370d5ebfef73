"""Receipts of what was handed out: written after the answer was given, never while it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from memgraph.model.receipts import Receipt
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


def write(connection: sa.Connection, given: Sequence[Receipt]) -> None:
    """Store receipts and count the accesses. One that is stored already is passed over.

    A memory that was erased since leaves the receipt without it.
    """
    # Hundreds of small rows: the driver alone takes a third of the time.
    driver: Any = connection.connection.driver_connection
    new = [each for each in given if _write_head(driver, each)]
    driver.executemany(_ITEM, [row for each in new for row in _items(each)])
    accesses: dict[str, list[int]] = {}
    for each in new:
        for item in each.items:
            accesses.setdefault(item.memory_id, []).append(each.at)
    driver.executemany(
        _COUNT, [(len(times), max(times), memory_id) for memory_id, times in accesses.items()]
    )


def _write_head(driver: Any, given: Receipt) -> bool:
    query = given.query[:MAX_KEPT_QUERY_CHARS]
    values = (given.receipt_id, given.at, query, json_text(given.asked))
    return bool(driver.execute(_HEAD, values).rowcount)


def _items(given: Receipt) -> Iterator[tuple[str, int, float, str, str]]:
    for rank, item in enumerate(given.items, start=1):
        explanation = json_text({"legs": dict(item.legs), "modifiers": dict(item.modifiers)})
        yield given.receipt_id, rank, item.score, explanation, item.memory_id
