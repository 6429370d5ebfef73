"""Memories over HTTP, through a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serving_worlds import Served, serving

MEMORIES = "/v1/orchestrators/orc-1/memories"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root: Path = tmp_path_factory.mktemp("http")
    with serving(root) as made:
        made.orchestrator()
        yield made


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client(served.key()) as made:
        yield made


def test_what_is_stored_is_read_back(client: httpx.Client) -> None:
    stored = client.post(MEMORIES, json={"content": "Tea is at four.", "tags": ["tea"]})
    assert stored.status_code == 201
    read = client.get(f"{MEMORIES}/{stored.json()['memory_id']}")
    assert (read.status_code, read.json()["content"]) == (200, "Tea is at four.")
    assert read.json()["tags"] == ["tea"]


def test_who_shows_no_key_is_told_nothing(served: Served) -> None:
    with served.client() as nobody:
        answer = nobody.get(f"{MEMORIES}/x")
    assert answer.status_code == 401
    assert answer.json()["code"] == "access.unauthenticated"
