"""A write whose answer was lost is sent again to a real server, and stores nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving_worlds import Served, serving

from memgraph import Orchestrator
from memgraph.client import Client, RemoteOrchestrator


class Cut(httpx.HTTPTransport):
    """A connection that breaks when the first answers to writes arrive."""

    def __init__(self, cuts: int = 1) -> None:
        super().__init__()
        self.statuses: list[int] = []
        self.cuts = cuts

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if request.method == "POST":
            self.statuses.append(response.status_code)
            if self.cuts:
                self.cuts -= 1
                response.read()
                raise httpx.ReadError("the connection was cut", request=request)
        return response


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "root") as made:
        yield made


Said = Callable[[RemoteOrchestrator, str, str], Any]
WRITES: dict[str, Said] = {
    "remember_many": lambda orc, _one, _two: [
        each.memory_id for each in orc.remember_many([{"content": "The gate is green."}])
    ],
    "an item": lambda orc, _one, _two: orc.remember('{"colour": "green"}', item_id="item_gate"),
    "save_episodes": lambda orc, _one, _two: [
        each.memory_id
        for each in orc.save_episodes(
            [{"content": "Hello.", "session_id": "s", "source_role": "user", "turn_id": "t-1"}]
        )
    ],
    "update": lambda orc, one, two: orc.relate(one, "Updates", two, reason="it was wrong"),
    "correct": lambda orc, one, _two: orc.correct(one, "The post rises at six.", reason="seen"),
    "forget": lambda orc, one, _two: [
        each.outcome for each in orc.memories.forget([one], reason="x")
    ],
}


def rows(orc: Orchestrator) -> list[tuple[str, str, str]]:
    found = [(each.memory_id, each.status, each.content) for each in orc.memories.list(statuses=[])]
    with orc._service.opened(orc.name) as opened, opened.database.read() as snapshot:
        edges = snapshot.exec_driver_sql(
            "SELECT edge_id, edge_type, from_memory_id || to_memory_id FROM memory_edges"
        ).fetchall()
    return sorted(found) + sorted(tuple(edge) for edge in edges)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_whose_answer_was_lost_stores_nothing_twice(served: Served, write: str) -> None:
    orc = served.orchestrator()
    one, two = orc.remember("The post rises at five."), orc.remember("The lock is red.")
    cut = Cut()
    with Client(served.url, key=served.key(), transport=cut) as client:
        remote = client.orchestrator("orc-1")
        seen: list[list[tuple[str, str, str]]] = []
        client._server.pause = lambda _seconds: seen.append(rows(orc))
        answer = WRITES[write](remote, one, two)
        again = WRITES[write](remote, one, two)
    # The first attempt was done, and the others added nothing.
    assert len(cut.statuses) == 3
    assert {status // 100 for status in cut.statuses} == {2}
    assert answer == again
    assert seen == [rows(orc)]
    assert orc.verify().ok
