"""Summaries of entities: a model writes them, every reader sees only those that he may."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import KEY, ModelServer
from page_models import settings

from memgraph import MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.errors import NotFound
from memgraph.model.enums import JobState
from memgraph.operations.tools.tools import call_tool

pytestmark = pytest.mark.usefixtures("asks_once")

ASKED = "What do you know about Nora Field?"
FACTS = (
    "Nora Field is a landlady in Leeds.",
    "Nora Field has a cat named Otis.",
    "Nora Field rents a flat to Sam Hale for £720.",
)
SAYS = "Nora Field lets flats in Leeds."


@pytest.fixture
def service(tmp_path: Path, server: ModelServer) -> Iterator[MemoryService]:
    more = {"memory.embedding.provider": "local", "memory.receipts.query_text": True}
    config = settings(server, **more)
    with MemoryService(
        tmp_path, config=config, environ={"KEY": KEY}, clock=FixedClock(), background=False
    ) as service:
        yield service


@pytest.fixture
def orc(service: MemoryService) -> Orchestrator:
    return service.orchestrator("nora", create=True, viewer=Viewer(Sensitivity.RESTRICTED))


def writes(server: ModelServer, *sentences: tuple[str, list[int]], entity: int = 1) -> None:
    listed = [{"text": text, "lines": lines} for text, lines in sentences]
    profile = {"entity": entity, "sentences": listed}
    server.behave(server.writes(json.dumps({"profiles": [profile]})))


def night(orc: Orchestrator) -> Any:
    return orc.jobs.run("consolidation")


def told(orc: Orchestrator, **fields: Any) -> list[str]:
    return [orc.remember(text, **fields) for text in FACTS]


def profile(orc: Orchestrator, **fields: Any) -> str | None:
    block = orc.context(ASKED, **fields)
    assert (block.profile is not None) == ("[0] " in block.text)
    return None if block.profile is None else block.profile.text


def prompt(server: ModelServer) -> str:
    return str(server.requests[-1]["messages"][1]["content"])


def test_a_profile_stands_first_in_a_block_about_its_entity(
    orc: Orchestrator, server: ModelServer
) -> None:
    ids = told(orc)
    writes(server, (SAYS, [1, 3]), ("She has a cat, Otis.", [2]))
    assert night(orc).counts["profiles"] == 1
    assert "Entity 1: Nora Field, person\n[1] Thu 2026-01-01, Fact: " in prompt(server)
    block = orc.context(ASKED)
    assert block.text.splitlines()[2] == (
        f"[0] Thu 2026-01-01, profile of Nora Field (person): {SAYS} She has a cat, Otis."
    )
    assert block.profile is not None
    assert {*block.profile.memory_ids} == {*ids}
    assert "[1] " in block.text.splitlines()[3]
    assert orc.entities.get("Nora Field").summary == f"{SAYS} She has a cat, Otis."
    assert SAYS in call_tool(orc, "get_entity_info", {"name": "Nora Field"})
    assert orc.context("What about the weather in Leeds?").profile is None
    assert orc.verify().totals == {}


def test_it_is_written_anew_only_when_its_memories_change(
    orc: Orchestrator, server: ModelServer
) -> None:
    told(orc)
    writes(server, (SAYS, [1]))
    night(orc)
    calls = len(server.requests)
    assert night(orc).counts["profiles"] == 0
    assert len(server.requests) == calls
    orc.remember("Nora Field plays the cello.")
    writes(server, ("She plays the cello.", [4]))
    assert night(orc).counts["profiles"] == 1
    assert "She plays the cello." in str(profile(orc))


def test_nothing_uncited_and_no_more_than_120_words(orc: Orchestrator, server: ModelServer) -> None:
    told(orc)
    long = " ".join(["word"] * 119)
    writes(server, ("She is rich.", []), ("She is tall.", [9]), (long, [1]), ("And more.", [2]))
    night(orc)
    summary = orc.entities.get("Nora Field").summary
    assert summary == long
    orc.remember("Nora Field plays the cello.")
    writes(server, ("She is rich.", []))
    assert night(orc).counts["profiles"] == 0
    assert profile(orc) is None
    # Asked once, not every night.
    calls = len(server.requests)
    night(orc)
    assert len(server.requests) == calls


@pytest.mark.parametrize("way", ["superseded", "erased"])
def test_it_is_dropped_with_a_memory_that_it_cites(
    orc: Orchestrator, server: ModelServer, way: str
) -> None:
    _, cited, uncited = told(orc)
    writes(server, ("She has a cat.", [2]))
    night(orc)
    orc.retract(uncited, reason="wrong")
    assert profile(orc) is not None
    if way == "superseded":
        orc.correct(cited, "Nora Field had a cat named Otis.", reason="it died")
    else:
        orc.erasure.erase(memory_id=cited, reason="asked for", dry_run=False)
        assert orc.verify().totals == {}
    assert profile(orc) is None
    assert orc.entities.get("Nora Field").summary is None


def test_who_may_not_see_what_the_model_read_sees_no_profile(
    orc: Orchestrator, service: MemoryService, server: ModelServer
) -> None:
    told(orc, sensitivity="Public")
    writes(server, (SAYS, [1]))
    night(orc)
    public = service.orchestrator("nora", viewer=Viewer(Sensitivity.PUBLIC))
    assert profile(public) is not None
    orc.remember("Nora Field plays the cello.", sensitivity="Internal")
    writes(server, (SAYS, [1]))
    night(orc)
    assert profile(orc) is not None
    assert profile(public) is None
    assert public.entities.get("Nora Field").summary is None


def test_only_what_every_ordinary_reader_sees_is_sent(
    orc: Orchestrator, service: MemoryService, server: ModelServer
) -> None:
    told(orc)
    everything = Viewer(Sensitivity.RESTRICTED, project_ids=frozenset({"web"}))
    other = service.orchestrator("nora", viewer=everything)
    other.remember("Nora Field has a secret debt.", sensitivity="Confidential")
    other.remember("Nora Field leads the web project.", scope="project", scope_id="web")
    other.remember("Nora Field likes short answers.", agent_id="pilot")
    writes(server, (SAYS, [1]))
    night(orc)
    for hidden in ("debt", "web project", "short answers"):
        assert hidden not in prompt(server)
    assert all(fact in prompt(server) for fact in FACTS)


def test_a_consolidation_is_done_though_the_profiles_failed(
    orc: Orchestrator, server: ModelServer
) -> None:
    told(orc)
    server.behave(server.fails(500))
    run = night(orc)
    assert (run.state, run.reason) == (JobState.DONE, "provider.unavailable")
    assert profile(orc) is None
    writes(server, (SAYS, [1]))
    assert night(orc).counts["profiles"] == 1


def test_an_answer_may_cite_the_profile_and_an_erasure_takes_it(
    orc: Orchestrator, service: MemoryService, server: ModelServer
) -> None:
    ids = told(orc)
    writes(server, (SAYS, [1, 2, 3]))
    night(orc)
    answer_of = {"answered": True, "sentences": [{"text": "She lets flats.", "lines": [0]}]}
    server.behave(server.writes(json.dumps(answer_of)))
    answer = orc.ask("Who is Nora Field?", budget_tokens=300)
    assert answer.text == "She lets flats. [0]"
    assert {*answer.memory_ids} == {*ids}
    assert {one.line for one in answer.citations} == {profile(orc)}
    orc.receipts.get(answer.receipt_id)
    orc.erasure.erase(memory_id=ids[1], reason="asked for", dry_run=False)
    receipt = orc.receipts.get(answer.receipt_id)
    assert receipt.answer is not None
    assert receipt.answer["text"] == receipt.answer["block"]["text"] == "[erased]"
    public = service.orchestrator("nora", viewer=Viewer(Sensitivity.PUBLIC))
    with pytest.raises(NotFound):
        public.receipts.get(answer.receipt_id)
