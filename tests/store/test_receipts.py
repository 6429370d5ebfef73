"""A receipt is written once, counts the accesses, and never stands in the way of an erasure."""

from __future__ import annotations

import json

from memgraph import MemoryService, Orchestrator
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.receipts import Receipt
from memgraph.store import receipts
from memgraph.store.receipts import NewReceipt


def given(orc: Orchestrator) -> tuple[RecallRequest, Bundle]:
    for number in range(3):
        orc.remember(f"A lantern, number {number}.")
    orc.settle()
    request = RecallRequest(query="lantern", top_n=2)
    return request, orc.recall(request)


def test_a_receipt_is_written_once(service: MemoryService, orc: Orchestrator) -> None:
    request, bundle = given(orc)
    with service.opened("orc-1") as opened, opened.database.write() as connection:
        receipts.write(connection, [NewReceipt(Receipt.of(request, bundle))])
        receipts.write(connection, [NewReceipt(Receipt.of(request, bundle))])
        remaining = connection.exec_driver_sql("SELECT * FROM recalls").mappings().one()
        items = connection.exec_driver_sql("SELECT * FROM recall_items ORDER BY rank").all()
        accesses = connection.exec_driver_sql(
            "SELECT memory_id, last_accessed_at FROM memories WHERE access_count = 1"
        ).all()
    assert remaining["recall_id"] == bundle.receipt_id
    assert json.loads(remaining["request"]) == {"top_n": 2}
    assert [row.memory_id for row in items] == list(bundle.ids)
    assert json.loads(items[0].explanation)["legs"] == bundle.items[0].legs
    assert dict(tuple(row) for row in accesses) == dict.fromkeys(bundle.ids, bundle.at)


def test_a_memory_that_is_gone_is_left_out(service: MemoryService, orc: Orchestrator) -> None:
    request, bundle = given(orc)
    item = bundle.items[0]
    ghost = item.model_copy(
        update={"memory": item.memory.model_copy(update={"memory_id": "fact_gone"})}
    )
    changed = bundle.model_copy(update={"items": (ghost, *bundle.items[1:])})
    with service.opened("orc-1") as opened, opened.database.write() as connection:
        receipts.write(connection, [NewReceipt(Receipt.of(request, changed))])
        rows = connection.exec_driver_sql("SELECT rank, memory_id FROM recall_items").all()
    assert [tuple(row) for row in rows] == [(2, bundle.ids[1])]
