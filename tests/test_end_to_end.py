"""What the service is for, from message to message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memgraph import (
    EdgeType,
    MemoryService,
    MemoryType,
    Orchestrator,
    Scope,
    Sensitivity,
    Source,
    SourceType,
    Viewer,
)
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied, DatabaseCorrupt, NotFound
from memgraph.ids import short_id


def logged(service: MemoryService, name: str) -> list[dict[str, str]]:
    lines = service.paths(name).log_file.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_what_message_a_says_message_b_recalls(orc: Orchestrator) -> None:
    orc.remember(
        "My sister Ana moved to Lisbon.",
        kind="episode",
        session_id="channel-a",
        source_role="user",
        source=Source(source_type=SourceType.CHANNEL_TRANSCRIPT, conversation_id="channel-a"),
    )
    bundle = orc.recall("Where does Ana live?")
    assert bundle.items[0].memory.content == "My sister Ana moved to Lisbon."
    assert bundle.items[0].source.conversation_id == "channel-a"


def test_other_channels_of_the_same_orchestrator_recall_it_too(orc: Orchestrator) -> None:
    told = orc.remember("The spare key is with Ben.", kind="episode", session_id="channel-a")
    assert orc.recall("spare key", exclude_session_id="channel-b").ids == (told,)
    assert orc.recall("spare key", exclude_session_id="channel-a").ids == ()


def test_no_orchestrator_recalls_what_another_one_knows(service: MemoryService) -> None:
    one = service.orchestrator("one", create=True)
    two = service.orchestrator("two", create=True)
    told = one.remember("The spare key is with Ben.")
    assert two.recall("Where is the spare key?").ids == ()
    with pytest.raises(NotFound):
        two.trace(told)


def test_reaching_beyond_the_grant_is_denied_and_logged(service: MemoryService) -> None:
    owner = service.orchestrator("o", create=True, viewer=Viewer(project_ids=frozenset({"atlas"})))
    told = owner.remember("Atlas ships in June.", scope=Scope.PROJECT, scope_id="atlas")
    reader = service.orchestrator("o", actor="reader")
    assert reader.recall("when does Atlas ship").ids == ()
    for asked in ({"project_ids": ["atlas"]}, {"clearance": Sensitivity.RESTRICTED}):
        with pytest.raises(AccessDenied):
            reader.recall("when does Atlas ship", **asked)
    denials = [line for line in logged(service, "o") if line["event"] == "access.denied"]
    assert [line["actor"] for line in denials] == ["reader", "reader"]
    assert owner.recall("when does Atlas ship").ids == (told,)


def test_a_workflow_steps_output_shapes_the_next_bulletin(orc: Orchestrator) -> None:
    before = orc.bulletin().bulletin
    source = Source(source_type=SourceType.WORKFLOW_OUTPUT, workflow_run_id="run-7", step_id="plan")
    decision = orc.remember("We ship on Monday.", type=MemoryType.DECISION, source=source)
    todo = orc.remember("Tell the customers.", type=MemoryType.TODO, source=source)
    orc.relate(todo, EdgeType.CAUSED_BY, decision)
    after = orc.bulletin().bulletin
    assert decision not in before.text
    assert f" #{short_id(decision)}\n" in after.text
    assert f" #{short_id(todo)}\n" in after.text
    assert len(after.text) <= 4_000
    assert orc.bulletin().bulletin == after


def test_diagnostics_gets_bounded_evidence_with_provenance(orc: Orchestrator) -> None:
    source = Source(source_type=SourceType.DIAGNOSTICS, workflow_run_id="run-8")
    cause = orc.remember("Disk log-store-3 is full.", type="Observation", source=source)
    effects = [orc.remember(f"Job {n} failed at 03:1{n}.", type="Event") for n in range(6)]
    for effect in effects:
        orc.relate(effect, EdgeType.CAUSED_BY, cause)
    graph = orc.graph.subgraph([cause], hops=1, max_nodes=4)
    assert (len(graph.nodes), graph.cut) == (4, True)
    assert {source.source_id for source in graph.sources} == {
        node.source_id for node in graph.nodes
    }


def test_an_answer_is_a_graph_too(orc: Orchestrator) -> None:
    cause = orc.remember("Disk log-store-3 is full.", type="Observation")
    effect = orc.remember("The disk made the night job fail.", type="Event")
    edge = orc.relate(effect, EdgeType.CAUSED_BY, cause)
    bundle = orc.recall("disk full night job")
    graph = bundle.to_networkx()
    assert [one for one, _ in sorted(graph.nodes(data="rank"), key=lambda each: each[1])] == list(
        bundle.ids
    )
    assert list(graph.edges(keys=True)) == [(effect, cause, edge)]
    assert graph.edges[effect, cause, edge]["edge_type"] == "CausedBy"


def test_as_of_gives_the_memory_as_it_was(orc: Orchestrator, clock: FixedClock) -> None:
    first = orc.remember("The office is in Porto.")
    then = clock.now_ms()
    clock.advance(days=30)
    second = orc.correct(first, "The office is in Leeds.", reason="moved")
    assert orc.recall("Where is the office?").ids[0] == second
    assert first not in orc.recall("Where is the office?").ids
    assert orc.recall("Where is the office?", as_of=then).ids == (first,)


def test_a_damaged_database_disables_one_orchestrator_alone(
    service: MemoryService, tmp_path: Path
) -> None:
    for name in ("sound", "broken"):
        service.orchestrator(name, create=True).remember("The gate closes at nine.")
    assert service.orchestrator("broken").bulletin().warning is None
    service.forget("broken")
    database = service.paths("broken").database
    garbled = b"\x00garbage" * 4_000
    database.write_bytes(garbled)
    with pytest.raises(DatabaseCorrupt):
        service.orchestrator("broken").recall("gate")
    assert service.health("broken")["status"] == "disabled"
    assert service.health("broken")["code"] == "storage.corrupt"
    issued = service.orchestrator("broken").bulletin()
    assert (issued.warning, issued.cause) == ("bulletin.stale", "storage.corrupt")
    assert "The gate closes at nine." in issued.bulletin.text
    assert database.read_bytes() == garbled
    assert service.orchestrator("sound").recall("gate").items
    assert service.health("sound") == {"orchestrator": "sound", "status": "ready", "degraded": []}


def test_the_same_database_request_and_clock_give_the_same_bytes(
    tmp_path: Path, clock: FixedClock
) -> None:
    from memgraph.ids import CountingIds

    answers = []
    for name in ("a", "b"):
        with MemoryService(
            tmp_path / name, clock=FixedClock(), ids=CountingIds(), environ={}, background=False
        ) as service:
            orc = service.orchestrator("o", create=True)
            orc.remember_many({"content": f"Note {n} about the harbour."} for n in range(30))
            orc.settle()
            answers.append(orc.recall("harbour notes").model_dump_json())
    assert answers[0] == answers[1]
