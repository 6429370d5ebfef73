"""An agent's private memory over HTTP: the requests, names and shapes of ``MemoryEntity``."""

from __future__ import annotations

from typing import Any

import httpx
from serving_worlds import Served

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


def test_a_key_reaches_only_the_agent_and_the_places_that_it_was_granted(
    served: Served, client: httpx.Client
) -> None:
    places = [{}, {"scope": "SessionScope", "sessionId": "s"}, {"scope": "SessionScope"}]
    places[2] |= {"sessionId": "t"}
    places += [{"scope": "ProjectScope", "projectId": one} for one in "pq"]
    stored = ask(client, "eve", "store", items=[item(f"Eve {one}.", **one) for one in places])
    secret = served.key(
        agent_id="eve", session_ids=("s",), project_ids=("p",), clearance="Internal"
    )
    with served.client(secret) as limited:
        seen = {record["content"] for record in ask(limited, "eve", "listItems", limit=50)}
        assert seen == {f"Eve {one}." for one in (places[0], places[1], places[3])}
        refused = [
            ("ada", "listItems", {}),
            ("eve", "listItems", {"sessionId": "t"}),
            ("eve", "retrieve", {"query": "Eve", "projectId": "q"}),
            ("eve", "store", {"items": [item("Eve.", **places[2])]}),
            ("eve", "store", {"items": [item("Eve.", sensitivity="Restricted")]}),
        ]
        for agent, method, payload in refused:
            answer = limited.post(f"{ROOT}/{agent}/memory/{method}", json=payload)
            assert (answer.status_code, answer.json()["code"]) == (403, "access.denied"), method
        gone = ask(limited, "eve", "forget", itemIds=stored["storedIds"])
        assert gone == {"deletedCount": 3}
    left = {record["content"] for record in ask(client, "eve", "listItems", projectId="q")}
    assert left == {f"Eve {places[2]}.", f"Eve {places[4]}."}
