"""Whatever a language model does wrong: the page waits, the rest goes on, nothing is doubled."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from model_server import Behaviour, ModelServer, Reply
from page_models import PageModel, add, settings

from memgraph import MemoryService, Orchestrator
from memgraph.model.enums import JobState
from memgraph.operations.life.pages import MAX_FACTS

pytestmark = pytest.mark.usefixtures("asks_once")

TURNS = ("I moved to Oslo in March.", "I work at the harbour library now.")
GOOD = {
    "add": [
        add("Bruno lives in Oslo.", [1], "I moved to Oslo in March"),
        add("Bruno works at the harbour library.", [2], "I work at the harbour library"),
    ]
}


def cut(_request: dict[str, Any]) -> Reply:
    """A stream that ends before its length."""
    return 200, iter([b'{"choices": [{"index": 0, "mess']), {"content-length": "2000"}


FAULTS: dict[str, Behaviour | str] = {
    "hangs": "hangs",
    "dribbles": "dribbles",
    "429": ModelServer.fails(429, retry_after="3600"),
    "500": ModelServer.fails(500),
    "401": ModelServer.fails(401),
    "truncated": ModelServer.writes('{"add": [{"text": "Bruno li', "length"),
    "empty": ModelServer.writes(""),
    "nothing": ModelServer.writes(None),
    "prose": ModelServer.writes("Bruno seems to be a very nice person who has moved."),
    "html": ModelServer.says(200, "<html><body>It works!</body></html>"),
    "bad gateway": ModelServer.says(502, "<html><body>502</body></html>"),
    "ten megabytes": ModelServer.writes(json.dumps({"add": [], "x": "y" * 10_000_000})),
    "no UTF-8": ModelServer.says(200, b'{"choices": [{"message": {"content": "\xff\xfe'),
    "cut": cut,
    "another shape": ModelServer.writes('{"memories": 7, "facts": "none"}'),
    "numbers": ModelServer.writes("[1, 2, 3]"),
    "NaN": ModelServer.writes('{"add": NaN}'),
}


def start(root: Path, server: ModelServer, **more: Any) -> MemoryService:
    config = settings(server, **{"memory.llm.timeout_s": 1.0, **more})
    return MemoryService(root, config=config, environ={"KEY": "k"}, background=False)


def conversation(service: MemoryService) -> Orchestrator:
    orchestrator = service.orchestrator("ana", create=True)
    for text in TURNS:
        orchestrator.save_episode(text, session_id="s-1", source_role="Bruno")
    orchestrator.sessions.end("s-1")
    return orchestrator


def facts(orchestrator: Orchestrator) -> list[str]:
    return sorted(fact.content for fact in orchestrator.memories.list(kinds=["fact"]))


def test_a_page_waits_for_a_model_that_works_and_is_read_once(
    tmp_path: Path, server: ModelServer
) -> None:
    with start(tmp_path, server) as service:
        orchestrator = conversation(service)
        orchestrator.remember("The roof is black.")
        for fault, behaviour in FAULTS.items():
            server.behave(getattr(server, behaviour) if isinstance(behaviour, str) else behaviour)
            before = len(server.requests)
            run = orchestrator.jobs.run("consolidation")
            assert run.state is JobState.FAILED, fault
            assert str(run.error_code).startswith("provider."), fault
            # A question and its repair at most.
            assert 1 <= len(server.requests) - before <= 2, fault
            assert facts(orchestrator) == ["The roof is black."]
            [session] = orchestrator.sessions.list()
            assert (session.pending, session.consolidated_at) == (2, None)
            assert "jobs.failing" in service.health("ana")["degraded"]
        assert orchestrator.recall("harbour library").items[0].memory.content == TURNS[1]
        model = PageModel(server, GOOD)
        for _ in range(2):
            orchestrator.jobs.run("consolidation")
        assert facts(orchestrator) == [
            "Bruno lives in Oslo.",
            "Bruno works at the harbour library.",
            "The roof is black.",
        ]
        assert len(model.pages) == 1
        assert service.health("ana")["degraded"] == []
        assert orchestrator.verify().ok


def test_a_server_that_is_not_there_does_not_lose_a_page(
    tmp_path: Path, server: ModelServer
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with start(tmp_path, server, **{"memory.llm.api_base": nobody}) as service:
            orchestrator = conversation(service)
            run = orchestrator.jobs.run("consolidation")
            assert (run.state, run.error_code) == (JobState.FAILED, "provider.unavailable")
            assert orchestrator.maintenance.stats()["model"]["tokens_in"] == 0
            assert "model.failing" in service.health("ana")["degraded"]
    PageModel(server, GOOD)
    with start(tmp_path, server) as service:
        orchestrator = service.orchestrator("ana")
        assert orchestrator.jobs.run("consolidation").counts["facts"] == 2


def test_a_flood_of_operations_is_bounded_and_the_rest_is_counted(
    tmp_path: Path, server: ModelServer
) -> None:
    flood = [
        add(f"Bruno owns boat number {number}.", [1], "I moved to Oslo in March")
        for number in range(10_000)
    ]
    model = PageModel(server, {"add": flood[:5_000]})
    # Ten thousand operations are over a million characters, fewer are not.
    model.then({"add": [{**each, "text": each["text"][:30]} for each in flood][:4_000]})
    with start(tmp_path, server) as service:
        orchestrator = conversation(service)
        run = orchestrator.jobs.run("consolidation")
        assert run.state is JobState.DONE
        assert 1 <= run.counts["facts"] <= MAX_FACTS
        assert run.counts["rejected"] >= 3_900
        assert len(run.rejected) <= 200
        assert len(model.checks) <= 3
