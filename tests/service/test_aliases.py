"""Aliases that a model proposes and somebody decides; protection; types that a model mends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import KEY, ModelServer

from memgraph import MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.errors import NotFound
from memgraph.ids import CountingIds
from memgraph.model.enums import JobState, MemoryStatus
from memgraph.model.values import Source

WHY = {"reason": "she signs so"}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    made = ModelServer()
    yield made
    made.close()


@pytest.fixture
def asked(tmp_path: Path, server: ModelServer) -> Iterator[MemoryService]:
    config = {
        "memory.llm.provider": "litellm/openai/m",
        "memory.llm.api_base": server.url,
        "memory.llm.api_key_env": "KEY",
        "memory.llm.retries": 0,
        "memory.llm.timeout_s": 5.0,
        "memory.entities.accurate": ["regex", "llm"],
    }
    with MemoryService(
        tmp_path / "root",
        clock=FixedClock(),
        ids=CountingIds(),
        environ={"KEY": KEY},
        background=False,
        config=config,
    ) as service:
        yield service


def finds(*named: tuple[str, str]) -> str:
    return json.dumps({"entities": [{"name": name, "type": kind} for name, kind in named]})


def talk(service: MemoryService) -> Orchestrator:
    orc = service.orchestrator("orc-1", create=True)
    orc.remember("Mrs. Vitalia Borges signed the lease.")
    orc.remember("Mrs. Vitka sends her regards about the lease.")
    return orc


def night(service: MemoryService, server: ModelServer, *aliases: dict[str, Any]) -> dict[str, int]:
    answers = [server.writes(finds()), server.writes(finds())]
    server.behave(*answers, *(server.writes(json.dumps(each)) for each in aliases))
    report = service.orchestrator("orc-1").jobs.run("enrichment")
    assert report.state is JobState.DONE
    return dict(report.counts)


def test_an_alias_is_proposed_and_accepted(asked: MemoryService, server: ModelServer) -> None:
    orc = talk(asked)
    assert night(asked, server, {"same_as": 0, "confidence": 0.9})["proposed"] == 1
    [one] = orc.entities.proposals()
    assert (one.entity.canonical_name, one.into.canonical_name) == ("Vitka", "Vitalia Borges")
    found = orc.entities.decide(one.proposal_id, accept=True, **WHY)
    assert (found.canonical_name, found.mention_count) == ("Vitalia Borges", 2)
    assert orc.entities.proposals() == []
    assert orc.entities.get("Vitka").canonical_name == "Vitalia Borges"
    assert orc.verify().as_dict()["findings"] == []


def test_a_rejected_alias_changes_nothing_and_is_not_asked_again(
    asked: MemoryService, server: ModelServer
) -> None:
    orc = talk(asked)
    night(asked, server, {"same_as": 0, "confidence": 0.9})
    [one] = orc.entities.proposals()
    orc.entities.decide(one.proposal_id, accept=False, **WHY)
    with pytest.raises(NotFound):
        orc.entities.decide(one.proposal_id, accept=True, **WHY)
    requests = len(server.requests)
    orc.jobs.run("enrichment")
    assert len(server.requests) == requests
    assert orc.entities.proposals() == []
    assert orc.entities.get("Vitka").canonical_name == "Vitka"


@pytest.mark.parametrize(
    "answer",
    [
        {"same_as": None, "confidence": 0.2},
        {"same_as": 7, "confidence": 0.9},
        {"same_as": 0, "confidence": 3},
        {"same_as": True, "confidence": 0.9},
        {"nonsense": 1},
    ],
)
def test_what_a_model_does_not_know_is_no_proposal(
    asked: MemoryService, server: ModelServer, answer: dict[str, Any]
) -> None:
    orc = talk(asked)
    assert night(asked, server, answer)["proposed"] == 0
    assert orc.entities.proposals() == []


def test_a_proposal_is_there_for_those_who_see_both(
    asked: MemoryService, server: ModelServer
) -> None:
    knowing = asked.orchestrator("orc-1", create=True)
    knowing.remember("Mrs. Vitalia Borges signed the lease.")
    knowing.remember("Mrs. Vitka sends her regards about the lease.", sensitivity="Public")
    night(asked, server, {"same_as": 0, "confidence": 0.9})
    [one] = knowing.entities.proposals()
    narrow = asked.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.PUBLIC))
    assert narrow.entities.proposals() == []
    with pytest.raises(NotFound):
        narrow.entities.decide(one.proposal_id, accept=True, **WHY)
    with pytest.raises(NotFound):
        narrow.entities.protect("Vitalia Borges", **WHY)


def test_names_in_hidden_texts_are_not_sent(asked: MemoryService, server: ModelServer) -> None:
    orc = asked.orchestrator("orc-1", create=True, viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    orc.remember("Mrs. Vitalia Borges signed the lease.", sensitivity="Restricted")
    orc.remember("Mrs. Vitka sends her regards about the lease.")
    server.behave(server.writes(finds()))
    orc.jobs.run("enrichment")
    assert all("Vitalia" not in str(each) for each in server.requests)
    assert orc.entities.proposals() == []


def test_a_model_mends_the_type_that_rules_gave(asked: MemoryService, server: ModelServer) -> None:
    orc = asked.orchestrator("orc-1", create=True)
    orc.remember("A new song by the Velmar Ocean came out.")
    assert orc.entities.get("Velmar Ocean").type == "location"
    entity_id = orc.entities.get("Velmar Ocean").entity_id
    server.behave(server.writes(finds(("Velmar Ocean", "person"))))
    orc.jobs.run("enrichment")
    mended = orc.entities.get("Velmar Ocean")
    assert (mended.type, mended.entity_id, mended.candidates) == ("person", entity_id, ())
    orc.remember("A new song by the Velmar Ocean is long.")
    assert orc.entities.get("Velmar Ocean").mention_count == 2
    orc.maintenance.rebuild(["entities"])
    again = orc.entities.get("Velmar Ocean")
    assert (again.type, again.mention_count, again.candidates) == ("person", 2, ())
    assert orc.verify().as_dict()["findings"] == []


def test_facts_about_a_protected_entity_stay(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    inferred = {"source": Source(captured_by="extractor"), "decay_rate": 0.1}
    kept = orc.remember("Mrs. Vitalia Borges likes tea.", **inferred)
    gone = orc.remember("Mrs. Osane Ruiz likes tea.", **inferred)
    orc.entities.protect("Vitalia Borges", **WHY)
    assert orc.entities.get("Vitalia Borges").protected
    service.clock.advance(ms=400 * MS_PER_DAY)  # type: ignore[attr-defined]  # a FixedClock
    orc.jobs.run("decay")
    assert orc.get(kept).status is MemoryStatus.ACTIVE
    assert orc.get(gone).status is MemoryStatus.RETRACTED
    orc.entities.protect("Vitalia Borges", protected=False, **WHY)
    orc.jobs.run("decay")
    assert orc.get(kept).status is MemoryStatus.RETRACTED
    assert orc.verify().as_dict()["findings"] == []
