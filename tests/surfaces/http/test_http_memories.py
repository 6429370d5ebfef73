"""Memories over HTTP, through a real server."""

from __future__ import annotations

import httpx
from serving_worlds import Served

BASE = "/v1/orchestrators/orc-1"
MEMORIES = f"{BASE}/memories"


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
