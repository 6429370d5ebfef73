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
from memgraph.errors import RemoteUnavailable


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


ONCE: dict[str, Callable[[RemoteOrchestrator], Any]] = {
    "erase": lambda orc: orc.erasure.erase(text="five", reason="asked", dry_run=False),
    "retract a source": lambda orc: orc.sources.retract(
        conversation_id="s", reason="asked", dry_run=False
    ),
    "on_message": lambda orc: orc.turns.on_message({"conversation_id": "s", "content": "Hello."}),
    "on_transcript": lambda orc: orc.turns.on_transcript(
        {
            "conversation_id": "s",
            "turns": [
                {"content": "Hello.", "source_role": "user", "turn_id": "t-1"},
                {"content": "Good day.", "source_role": "assistant"},
            ],
        }
    ),
}
AGAIN: dict[str, Callable[[RemoteOrchestrator], Any]] = {
    "erase, dry": lambda orc: orc.erasure.erase(text="five", reason="asked"),
    "retract a source, dry": lambda orc: orc.sources.retract(conversation_id="s", reason="asked"),
    "on_message": lambda orc: orc.turns.on_message(
        {"conversation_id": "s", "content": "Hello.", "turn_id": "t-1"}
    ),
    "on_transcript": lambda orc: orc.turns.on_transcript(
        {
            "conversation_id": "s",
            "turns": [{"content": "Hello.", "source_role": "user", "turn_id": "t-1"}],
        }
    ),
}


def post(served: Served, write: Callable[[RemoteOrchestrator], Any]) -> tuple[list[int], bool]:
    """Return the statuses of a call whose first answer is lost, and whether it got an answer."""
    orc = served.orchestrator()
    orc.remember("The post rises at five.", source={"conversation_id": "s"})
    cut = Cut()
    with Client(served.url, key=served.key(), transport=cut) as client:
        client._server.pause = lambda _seconds: None
        try:
            write(client.orchestrator("orc-1"))
        except RemoteUnavailable:
            return cut.statuses, False
    return cut.statuses, True


@pytest.mark.parametrize("write", ONCE)
def test_what_must_not_happen_twice_is_not_sent_again(served: Served, write: str) -> None:
    assert post(served, ONCE[write]) == ([200], False)


@pytest.mark.parametrize("write", AGAIN)
def test_a_dry_run_and_a_numbered_turn_are_sent_again(served: Served, write: str) -> None:
    assert post(served, AGAIN[write]) == ([200, 200], True)
    assert len(served.orchestrator().memories.list(kinds=["episode"])) == ("on_" in write)
