"""Memories over HTTP, through a real server."""

from __future__ import annotations

import httpx
import pytest
from serving_worlds import Served

BASE = "/v1/orchestrators/orc-1"
MEMORIES = f"{BASE}/memories"


def stored(client: httpx.Client, content: str, **fields: object) -> str:
    params = {"project": str(fields["scope_id"])} if "scope_id" in fields else {}
    answer = client.post(MEMORIES, params=params, json={"content": content, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["memory_id"])


def test_more_than_a_thousand_items_are_refused(client: httpx.Client) -> None:
    items = [{"content": f"number {n}"} for n in range(1_001)]
    answer = client.post(f"{MEMORIES}/batch", json={"items": items})
    assert (answer.status_code, answer.json()["code"]) == (422, "input.invalid")


def test_pages_are_whole_while_others_write(served: Served) -> None:
    service = served.service
    pages = service.orchestrator("paged", create=True)
    written = [pages.remember(f"page {n}") for n in range(7)]
    seen: list[str] = []
    cursor = None
    with served.client(served.key()) as client:
        while True:
            params = {"limit": 3} | ({} if cursor is None else {"cursor": cursor})
            page = client.get("/v1/orchestrators/paged/memories", params=params).json()
            seen += [each["memory_id"] for each in page["items"]]
            pages.remember(f"meanwhile {len(seen)}")
            cursor = page["next_cursor"]
            if cursor is None:
                break
    assert seen == written[::-1]


@pytest.mark.parametrize("given", ['"{}"', 'W/"{}"', 'x, "{}"', "*"])
def test_who_has_these_very_bytes_gets_none(client: httpx.Client, given: str) -> None:
    memory_id = stored(client, "Not again.")
    path = f"{MEMORIES}/{memory_id}"
    tag = client.get(path).headers["etag"]
    again = client.get(path, headers={"if-none-match": given.replace('"{}"', tag)})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    client.post(f"{path}/retract", json={"reason": "changed"})
    if given != "*":
        changed = client.get(path, headers={"if-none-match": given.replace('"{}"', tag)})
        assert (changed.status_code, changed.headers["etag"] == tag) == (200, False)
