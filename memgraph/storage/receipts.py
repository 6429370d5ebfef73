"""Receipts of what was handed out: written after the answer was given, never while it is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from memgraph.model.receipts import Receipt, ReceiptItem
from memgraph.storage.encoding import json_text
from memgraph.storage.visibility import View

MAX_KEPT_QUERY_CHARS = 2_000

_HEAD = "INSERT OR IGNORE INTO recalls (recall_id, created_at, query, request) VALUES (?, ?, ?, ?)"
_ITEM = (
    "INSERT INTO recall_items (recall_id, rank, memory_id, score, explanation)"
    " SELECT ?1, ?2, memory_id, ?3, ?4 FROM memories WHERE memory_id = ?5"
)
_READ_HEAD = "SELECT created_at, query, request FROM recalls WHERE recall_id = ?"
_READ_ITEMS = (
    "SELECT memory_id, score, explanation FROM recall_items WHERE recall_id = ? ORDER BY rank"
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


def read(connection: sa.Connection, receipt_id: str) -> Receipt | None:
    """A stored receipt; None: there is none. ``counts`` is not kept and is True."""
    driver: Any = connection.connection.driver_connection
    head = driver.execute(_READ_HEAD, (receipt_id,)).fetchone()
    if head is None:
        return None
    at, query, asked = head
    found = driver.execute(_READ_ITEMS, (receipt_id,))
    items = tuple(_item(one, score, json.loads(why)) for one, score, why in found)
    return Receipt(receipt_id, at, query, json.loads(asked), items)


def all_visible(connection: sa.Connection, view: View, memory_ids: Iterable[str]) -> bool:
    """Whether every one of these memories that is still there is one that the view shows."""
    driver: Any = connection.connection.driver_connection
    hidden = (
        "SELECT 1 FROM memories m WHERE m.memory_id IN (SELECT value FROM json_each(:ids))"
        f" AND ({view.where('m')}) IS NOT TRUE LIMIT 1"
    )
    values = {**view.params, "ids": json.dumps(list(memory_ids))}
    return driver.execute(hidden, values).fetchone() is None


def _write_head(driver: Any, given: Receipt) -> bool:
    query = given.query[:MAX_KEPT_QUERY_CHARS]
    values = (given.receipt_id, given.at, query, json_text(given.asked))
    return bool(driver.execute(_HEAD, values).rowcount)


def _items(given: Receipt) -> Iterator[tuple[str, int, float, str, str]]:
    for rank, item in enumerate(given.items, start=1):
        why: dict[str, Any] = {"legs": dict(item.legs), "modifiers": dict(item.modifiers)}
        if item.reasons:
            why["reasons"] = list(item.reasons)
        yield given.receipt_id, rank, item.score, json_text(why), item.memory_id


def _item(memory_id: str, score: float, why: dict[str, Any]) -> ReceiptItem:
    reasons = tuple(why.get("reasons", ()))
    return ReceiptItem(memory_id, score, why["legs"], why["modifiers"], reasons)
