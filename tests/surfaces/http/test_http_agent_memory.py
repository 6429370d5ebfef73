"""An agent's private memory over HTTP: the requests, names and shapes of ``MemoryEntity``."""

from __future__ import annotations

from typing import Any

import httpx

ROOT = "/v1/orchestrators/orc-1/agents"


def item(content: str = "Alex likes short answers.", **fields: Any) -> dict[str, Any]:
    known = {"tier": "SemanticMemory", "scope": "GlobalScope", "source": "UserSource"}
    return {**known, "content": content, **fields}


def ask(client: httpx.Client, agent: str, method: str, **payload: Any) -> Any:
    answer = client.post(f"{ROOT}/{agent}/memory/{method}", json=payload)
    assert answer.is_success, answer.text
    return answer.json()


def test_the_four_requests_have_the_names_and_shapes_of_the_document(client: httpx.Client) -> None:
    stored = ask(client, "ada", "store", items=[item(generatedByTurnId="turn-1")])
    [memory_item_id] = stored.pop("storedIds")
    assert stored == {}
    [record] = ask(client, "ada", "listItems", tier="SemanticMemory", limit=5)
    assert record == {
        **item(),
        "memoryItemId": memory_item_id,
        "agentId": "ada",
        "metadataJson": None,
        "generatedByTurnId": "turn-1",
        "sessionId": None,
        "projectId": None,
        "sensitivity": "Internal",
        "createdAt": record["createdAt"],
        "updatedAt": record["createdAt"],
    }
    assert ask(client, "ada", "retrieve", query="How long may answers be?") == [record]
    assert ask(client, "bea", "listItems") == []
    assert ask(client, "ada", "forget", cutoffDate=4_000_000_000_000) == {"deletedCount": 1}
    assert ask(client, "ada", "listItems") == []
