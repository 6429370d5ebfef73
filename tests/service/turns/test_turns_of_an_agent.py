"""Hooks with a profile: nothing that another agent keeps for itself comes before its prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from working import working

from memgraph import MemoryHooks, MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.errors import AccessDenied
from memgraph.model.context import AgentProfile
from memgraph.model.turns import StepContext

NAME = "o"
LONG_MS = 30_000
ASKED = "Where is the harbour?"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with working(tmp_path) as made:
        orc = made.orchestrator(NAME, create=True)
        orc.remember("The harbour is shared by all.", sensitivity="Public")
        orc.remember("The harbour is mine.", agent_id="mine", sensitivity="Public")
        orc.remember("Paint the harbour canary.", type="Todo", agent_id="other", importance=90)
        orc.remember("The harbour is a canary.", agent_id="other", sensitivity="Public")
        yield made


@pytest.fixture
def orc(service: MemoryService) -> Orchestrator:
    return service.orchestrator(NAME)


def hooks_of(service: MemoryService, **fields: str) -> MemoryHooks:
    profile = AgentProfile.model_validate({"name": "p", **fields})
    return MemoryHooks(service, NAME, deadline_ms=LONG_MS, profile=profile)


def shown(hooks: MemoryHooks) -> list[StepContext]:
    return [
        hooks.on_message(ASKED, conversation_id="c", turn_id="t"),
        hooks.on_step(ASKED, workflow_run_id="r", step_id="s"),
    ]


def test_neither_bulletin_nor_context_nor_evidence_has_another_agents(
    service: MemoryService,
) -> None:
    with hooks_of(service, agent_id="mine") as hooks:
        for each in shown(hooks):
            assert each.warnings == ()
            assert each.context is not None
            for text in (each.bulletin, each.context.text):
                assert "shared by all" in text
                assert "is mine" in text
            assert "canary" not in each.prompt
        evidence = hooks.on_diagnostics(ASKED)
    assert "is mine" in evidence.text
    assert "canary" not in evidence.text


def test_where_no_agent_is_known_those_of_all_are_shown(service: MemoryService) -> None:
    with hooks_of(service) as hooks:
        for each in shown(hooks):
            assert "harbour canary" in each.bulletin
            assert each.context is not None
            assert "a canary" in each.context.text
        assert "a canary" in hooks.on_diagnostics(ASKED).text


def test_what_is_above_the_profiles_clearance_is_not_shown(
    service: MemoryService, orc: Orchestrator
) -> None:
    orc.remember("The harbour has an internal secret.", sensitivity="Internal")
    with hooks_of(service, agent_id="mine", clearance="Public") as hooks:
        for each in shown(hooks):
            assert "shared by all" in each.bulletin
            assert "secret" not in each.prompt
        assert "secret" not in hooks.on_diagnostics(ASKED).text
    with pytest.raises(AccessDenied):
        hooks_of(service, clearance="Restricted")


def test_a_finding_that_rests_on_an_agents_own_is_the_agents_own(
    service: MemoryService, orc: Orchestrator
) -> None:
    with hooks_of(service, agent_id="mine") as hooks:
        evidence = hooks.on_diagnostics(ASKED)
        written = hooks.record_findings(["The quay is beside the harbour."], evidence=evidence)
    assert written.acknowledged
    [found] = written.memory_ids
    assert orc.get(found).agent_id == "mine"
    other = service.orchestrator(NAME, viewer=Viewer(agent_id="other"))
    assert found not in {each.memory.memory_id for each in other.recall("quay").items}


def test_a_finding_that_rests_on_several_agents_own_is_restricted(
    service: MemoryService,
) -> None:
    with hooks_of(service) as hooks:
        evidence = hooks.on_diagnostics(ASKED)
        assert {each.memory.agent_id for each in evidence.items} == {None, "mine", "other"}
        [found] = hooks.record_findings(["The quay is wet."], evidence=evidence).memory_ids
    seen = service.orchestrator(NAME, viewer=Viewer(clearance=Sensitivity.RESTRICTED)).get(found)
    assert (seen.agent_id, seen.sensitivity) == (None, Sensitivity.RESTRICTED)
