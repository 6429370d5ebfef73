"""Two server processes over one root, as behind a proxy: the store is theirs together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from server_processes import ServerProcess, server_process

from memgraph import MemoryService

ORCHESTRATOR = "/v1/orchestrators/orc-1"
WRITES = 10


def written(server: ServerProcess, writer: int) -> list[str]:
    """Memories that one client of a server wrote."""
    made = []
    with server.client() as client:
        for number in range(WRITES):
            told = client.post(
                f"{ORCHESTRATOR}/memories",
                json={"content": f"Note {number} of {writer}."},
            )
            assert told.status_code == 201, told.text
            made.append(told.json()["memory_id"])
    return made


def recalled(client: httpx.Client, question: str) -> list[str]:
    told = client.post(f"{ORCHESTRATOR}/recall", json={"query": question})
    items: list[dict[str, Any]] = told.raise_for_status().json()["items"]
    return [each["memory"]["memory_id"] for each in items]


def test_a_retry_at_the_other_server_stores_nothing(
    tmp_path: Path,
) -> None:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        service.create("orc-1")
    with (
        server_process(tmp_path, "--no-worker") as one,
        server_process(tmp_path, "--no-worker") as two,
        ThreadPoolExecutor(4) as pool,
    ):
        writing = [pool.submit(written, (one, two)[n % 2], n) for n in range(4)]
        made = [each.result() for each in writing]
        with two.client() as client:
            assert made[0][3] in recalled(client, "Note 3 of 0.")
        with one.client() as client:
            assert made[1][3] in recalled(client, "Note 3 of 1.")
        # What the first server has answered already, sent to the second one.
        assert written(two, 0) == made[0]
        assert one.end() == two.end() == 0
    with MemoryService(tmp_path, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        assert orc.maintenance.stats()["memories"]["status"] == {"active": 4 * WRITES}
        ids = {each for written_by_one in made for each in written_by_one}
        assert len(ids) == 4 * WRITES
        assert {orc.get(each).memory_id for each in ids} == ids
        assert orc.verify().ok
