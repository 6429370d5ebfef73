"""What a session was given and says again is no evidence; the turn is stored all the same."""

from __future__ import annotations

import pytest

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.model.enums import MemoryKind, Sensitivity
from memgraph.operations.tools.tools import call_tool
from memgraph.rules.scope import Viewer

KNOWN = "Mira moved to Graz in May."
NEW = "She bought a boat in June."


@pytest.fixture
def known(orc: Orchestrator, clock: FixedClock) -> str:
    memory_id = orc.remember(KNOWN)
    clock.advance(ms=1_000)
    return memory_id


def say(orc: Orchestrator, text: str, session_id: str = "s", role: str = "user") -> str:
    return orc.save_episode(text, session_id=session_id, source_role=role)


def consolidated(orc: Orchestrator, session_id: str = "s") -> tuple[int, list[str]]:
    """How many parts were left out, and the facts that are new."""
    before = {each.memory_id for each in orc.memories.list(kinds=[MemoryKind.FACT])}
    orc.sessions.end(session_id)
    report = orc.jobs.run("consolidation", session_id=session_id)
    facts = orc.memories.list(kinds=[MemoryKind.FACT])
    return report.counts["echoes"], [each.content for each in facts if each.memory_id not in before]


@pytest.mark.engines
def test_a_line_that_was_handed_out_is_no_evidence(
    orc: Orchestrator, known: str, clock: FixedClock
) -> None:
    assert orc.recall("Graz", for_conversation_id="s").ids == (known,)
    clock.advance(ms=1_000)
    confidence = orc.get(known).confidence
    turn = say(orc, "mira  moved to GRAZ in May!", role="assistant")
    assert consolidated(orc) == (1, [])
    assert orc.get(turn).content == "mira  moved to GRAZ in May!"
    assert orc.get(known).confidence == confidence
    assert len(orc.trace(known).supports) == 0


@pytest.mark.engines
def test_what_is_said_beside_it_stays(orc: Orchestrator, known: str, clock: FixedClock) -> None:
    orc.context("Where does Mira live?", exclude_session_id="s")
    clock.advance(ms=1_000)
    say(
        orc,
        f"{KNOWN} TODO: move the archive to SQLite.\nDecision: PostgreSQL for the ledger.",
    )
    echoes, facts = consolidated(orc)
    assert echoes == 1
    assert len(facts) == 2
    assert not any("Graz" in each for each in facts)


def test_another_session_and_an_earlier_turn_are_evidence(
    orc: Orchestrator, known: str, clock: FixedClock
) -> None:
    say(orc, KNOWN, "before")
    clock.advance(ms=1_000)
    orc.recall("Graz", for_conversation_id="before")
    orc.recall("Graz", for_conversation_id="other")
    clock.advance(ms=1_000)
    say(orc, KNOWN, "s")
    assert consolidated(orc, "before")[0] == 0
    assert consolidated(orc, "s")[0] == 0


def test_a_model_does_not_store_again_what_a_search_gave(
    orc: Orchestrator, service: MemoryService
) -> None:
    known = orc.remember(KNOWN, type="Decision")
    agent = service.orchestrator(orc.name, actor="agent")
    call_tool(agent, "search_memory", {"query": "Graz"}, session_id="s")
    for content in (KNOWN, KNOWN.upper()):
        again = call_tool(agent, "remember_fact", {"content": content}, session_id="s")
        assert again == {"outcome": "duplicate", "memory_id": known}


@pytest.mark.engines
def test_a_model_spreads_no_line_to_more_readers(orc: Orchestrator, service: MemoryService) -> None:
    viewer = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=["web"])
    secret = "The safe opens with seven turns."
    owner = service.orchestrator(orc.name, viewer=viewer)
    whole = f"{secret} It stands in the cellar."
    owner.remember(whole, scope="project", scope_id="web", sensitivity="Restricted")
    owner.recall("safe", for_conversation_id="s")
    asked = {"content": f"{secret} {NEW}"}
    refused = call_tool(owner, "remember_fact", asked, session_id="s", scope="global")
    assert refused["error"]["code"] == "access.denied"
    stored = call_tool(owner, "remember_fact", asked, session_id="s")
    assert owner.get(stored["memory_id"]).sensitivity is Sensitivity.RESTRICTED
