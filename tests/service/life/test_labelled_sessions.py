"""Sessions that were consolidated without a language model are read once one is configured."""

from __future__ import annotations

from pathlib import Path

import pytest
from model_server import ModelServer
from page_models import PageModel, add, settings

from memgraph import MemoryService, Orchestrator

pytestmark = pytest.mark.usefixtures("asks_once")

WITHOUT = {"memory.embedding.provider": "none", "memory.llm.provider": "none"}
TURNS = ("I moved to Oslo in March.", "Fact: the archive is closed on Mondays.")


def start(root: Path, server: ModelServer | None = None) -> MemoryService:
    config = WITHOUT if server is None else settings(server)
    return MemoryService(root, config=config, environ={"KEY": "k"}, background=False)


def say(orchestrator: Orchestrator, session_id: str, *texts: str) -> None:
    for text in texts:
        orchestrator.save_episode(text, session_id=session_id, source_role="Bruno")
    orchestrator.sessions.end(session_id)


def facts(orchestrator: Orchestrator) -> list[str]:
    return sorted(fact.content for fact in orchestrator.memories.list(kinds=["fact"]))


OSLO = {"add": [add("Bruno lives in Oslo.", [1], "I moved to Oslo in March")]}


def test_a_model_reads_once_what_was_consolidated_without_one(
    tmp_path: Path, server: ModelServer
) -> None:
    with start(tmp_path) as service:
        orchestrator = service.orchestrator("ana", create=True)
        say(orchestrator, "monday", *TURNS)
        assert orchestrator.jobs.run("consolidation").counts["sessions"] == 1
        assert facts(orchestrator) == ["the archive is closed on Mondays."]
        assert orchestrator.jobs.run("consolidation").counts["waiting"] == 0
    model = PageModel(server, OSLO)
    with start(tmp_path, server) as service:
        orchestrator = service.orchestrator("ana")
        run = orchestrator.jobs.run("consolidation")
        assert (run.counts["sessions"], run.counts["turns"]) == (1, 2)
        assert facts(orchestrator) == ["Bruno lives in Oslo.", "the archive is closed on Mondays."]
        assert orchestrator.jobs.run("consolidation").counts["waiting"] == 0
        assert len(model.pages) == 1


def test_what_a_model_has_read_before_it_was_gone_is_not_read_again(
    tmp_path: Path, server: ModelServer
) -> None:
    model = PageModel(server, OSLO)
    with start(tmp_path, server) as service:
        orchestrator = service.orchestrator("ana", create=True)
        say(orchestrator, "monday", TURNS[0])
        orchestrator.jobs.run("consolidation")
    with start(tmp_path) as service:
        orchestrator = service.orchestrator("ana")
        say(orchestrator, "monday", "We had herring for lunch.")
        say(orchestrator, "monday", "The harbour was frozen.")
        orchestrator.jobs.run("consolidation")
    model.then({"add": []})
    with start(tmp_path, server) as service:
        orchestrator = service.orchestrator("ana")
        run = orchestrator.jobs.run("consolidation", session_id="monday")
        assert run.counts["turns"] == 2
        assert len(model.pages) == 2
        assert "herring" in model.pages[1]
        assert "harbour" in model.pages[1]
        [session] = orchestrator.sessions.list()
        assert session.pending == 0
