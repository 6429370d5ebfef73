"""Whose word replaces a memory: its author's or an operator's."""

from __future__ import annotations

from typing import Any

import httpx
from serving_worlds import Served

ONES = "/v1/orchestrators/orc-1"
LIMITED: dict[str, Any] = {
    "permissions": ["read", "write"],
    "clearance": "Internal",
    "project_ids": [],
    "session_ids": [],
}


def stored(client: httpx.Client, content: str, **fields: Any) -> str:
    answer = client.post(f"{ONES}/memories", json={"content": content, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["memory_id"]


def updates(client: httpx.Client, new: str, old: str) -> dict[str, Any]:
    edge = {"from_id": new, "to_id": old, "edge_type": "Updates", "reason": "it changed"}
    answer = client.post(f"{ONES}/edges", json=edge)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def status_of(client: httpx.Client, memory_id: str) -> str:
    return client.get(f"{ONES}/memories/{memory_id}").json()["status"]


def test_another_keys_word_opens_a_case_and_the_authors_or_an_operators_replaces(
    served: Served,
) -> None:
    with (
        served.client(served.key(**LIMITED)) as author,
        served.client(served.key(**LIMITED)) as other,
        served.client(served.key()) as operator,
    ):
        old = stored(author, "The ferry to Rovinj leaves at nine")
        new = stored(other, "No ferry goes in winter")
        updates(other, new, old)
        assert status_of(author, old) == "active"
        opened = operator.get(f"{ONES}/contradictions", params={"memory_id": old}).json()
        assert [each["edge"]["to_id"] for each in opened["items"]] == [old]
        corrected = other.post(
            f"{ONES}/memories/{old}/correct", json={"content": "It leaves at ten", "reason": "x"}
        )
        assert corrected.is_success
        assert status_of(author, old) == "active"
        # The author's word replaces, and an operator's.
        for who, text in ((author, "Slates cover it"), (operator, "Limestone was taken")):
            old = stored(author, f"Every wall is of brick, not: {text}")
            updates(who, stored(who, text), old)
            assert status_of(author, old) == "superseded"


def test_the_conversations_of_a_key_are_listed(served: Served) -> None:
    with (
        served.client(served.key(**LIMITED)) as one,
        served.client(served.key(**LIMITED)) as other,
        served.client(served.key()) as operator,
    ):
        for talk in ("alpha", "beta"):
            new = stored(one, f"Said in {talk}", source={"conversation_id": talk})
        stored(other, "Said in gamma", source={"conversation_id": "gamma"})
        journal = operator.get(f"{ONES}/memories/{new}/trace").json()["journal"]
        [actor] = {each["actor"] for each in journal if each["action"] == "remember"}
        assert actor.startswith("key:")
        found = operator.get(f"{ONES}/sources", params={"kind": "conversation", "sender": actor})
        assert [each["name"] for each in found.json()["items"]] == ["alpha", "beta"]
