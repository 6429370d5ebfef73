"""Recall, the graph, contradictions, receipts and the bulletin over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import httpx
import pytest
from pydantic import TypeAdapter
from serving_worlds import Served
from working import put

from memgraph.model.recall import Bundle
from memgraph.model.receipts import Receipt, ReceiptList

BASE = "/v1/orchestrators/orc-1"


@dataclass(frozen=True)
class World:
    """Two memories that contradict each other."""

    one: str
    other: str
    edge: str


@pytest.fixture(scope="module")
def world(served: Served, client: httpx.Client) -> World:
    orc = served.orchestrator()
    one = put(orc, "The harbour ferry leaves at nine.")
    other = put(orc, "The harbour ferry leaves at ten.")
    body = {"from_id": other, "to_id": one, "edge_type": "Contradicts", "reason": "both said"}
    made = client.post(f"{BASE}/edges", json=body)
    assert made.status_code == 201
    return World(one, other, made.json()["edge_id"])


def test_recall_answers_as_the_library_does(client: httpx.Client, world: World) -> None:
    answer = client.post(f"{BASE}/recall", json={"query": "When does the ferry leave?"})
    bundle = Bundle.model_validate_json(answer.content)
    assert {world.one, world.other} <= set(bundle.ids)
    kept = client.get(f"{BASE}/receipts/{bundle.receipt_id}")
    receipt = TypeAdapter(Receipt).validate_json(kept.content)
    asked = sha256(bundle.query.encode()).hexdigest()
    assert (receipt.query, receipt.query_sha256, receipt.at) == ("", asked, bundle.at)
    listed = client.get(f"{BASE}/receipts", params={"limit": 1})
    assert TypeAdapter(ReceiptList).validate_json(listed.content).receipts == (receipt,)


def test_the_bulletin_has_a_tag_that_changes_with_it(client: httpx.Client, world: World) -> None:
    first = client.get(f"{BASE}/bulletin")
    assert first.json()["warning"] is None
    assert first.json()["bulletin"]["sections"]
    tag = first.headers["etag"]
    same = client.get(f"{BASE}/bulletin", headers={"if-none-match": tag})
    assert same.status_code == 304
    client.post(f"{BASE}/memories/{world.one}/confirm")
    changed = client.get(f"{BASE}/bulletin", headers={"if-none-match": tag})
    assert (changed.status_code, changed.headers["etag"] != tag) == (200, True)
