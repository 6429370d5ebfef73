"""Hooks with a profile: nothing that another agent keeps for itself comes before its prompts."""

from __future__ import annotations

import pytest

from memgraph import ContextAssembler, MemoryHooks, MemoryService, Orchestrator, Viewer
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.context import AgentProfile
from memgraph.model.turns import StepContext

NAME = "a"
LONG_MS = 30_000
ASKED = "Where is the harbour?"


@pytest.fixture
def service(service: MemoryService, orc: Orchestrator) -> MemoryService:
    orc.remember("The harbour is shared by all.", sensitivity="Public")
    orc.remember("The harbour is mine.", agent_id="mine", sensitivity="Public")
    orc.remember("Paint the harbour canary.", type="Todo", agent_id="other", importance=90)
    orc.remember("The harbour is a canary.", agent_id="other", sensitivity="Public")
    return service


def hooks_of(service: MemoryService, **fields: str) -> MemoryHooks:
    profile = AgentProfile.model_validate({"name": "p", **fields})
    return MemoryHooks(service, NAME, deadline_ms=LONG_MS, profile=profile)


def theirs(orc: Orchestrator) -> tuple[str, ...]:
    """The ids of what the other agent keeps for itself."""
    found = [each.memory for each in orc.recall("canary").items]
    return tuple(each.memory_id for each in found if each.agent_id == "other")


def shown(hooks: MemoryHooks) -> list[StepContext]:
    return [
        hooks.on_message(ASKED, conversation_id="c", turn_id="t"),
        hooks.on_step(ASKED, workflow_run_id="r", step_id="s"),
    ]


def test_neither_bulletin_nor_context_nor_evidence_has_another_agents(
    service: MemoryService,
) -> None:
    # Without a profile the agent is the actor.
    with MemoryHooks(service, NAME, deadline_ms=LONG_MS, actor="mine") as hooks:
        assert "is mine" in hooks.on_step(ASKED, workflow_run_id="r", step_id="s").bulletin
    assert "is mine" in ContextAssembler(service, NAME, actor="mine").build_context(None).text
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


def test_where_no_agent_is_known_none_of_theirs_is_shown(
    service: MemoryService, orc: Orchestrator
) -> None:
    canary, _ = theirs(orc)
    assert "canary" in orc.get(canary).content
    assembler = ContextAssembler(service, NAME)
    for hooks in (MemoryHooks(service, NAME, deadline_ms=LONG_MS), hooks_of(service)):
        with hooks:
            for each in shown(hooks):
                assert each.context is not None
                for text in (each.bulletin, each.context.text):
                    assert "shared by all" in text
                    assert "is mine" not in text
                    assert "canary" not in text
            evidence = hooks.on_diagnostics(ASKED, memory_ids=[canary])
            assert evidence.missing == (canary,)
            assert {each.memory.agent_id for each in evidence.items} == {None}
    for task in (None, "t"):
        text = assembler.build_context(task, query=ASKED).text
        assert "shared by all" in text
        assert "is mine" not in text
        assert "canary" not in text


def test_what_another_agent_keeps_for_itself_is_no_end_of_what_is_written_nor_promoted(
    service: MemoryService, orc: Orchestrator
) -> None:
    canary, _ = theirs(orc)
    task = {"scope": "session", "scope_id": "k"}
    mine = orc.remember("My own of the task.", agent_id="mine", **task)
    other = orc.remember("A canary of the task.", agent_id="other", **task)
    with hooks_of(service, agent_id="mine") as hooks:
        said = [{"type": "Decision", "content": "We moor.", "caused_by": [canary]}]
        step = hooks.on_step_output({"memories": said}, workflow_run_id="r", step_id="s")
        finding = {"content": "It is wet.", "caused_by": [canary]}
        found = hooks.record_findings([finding])
        ended = hooks.end_task("k", [mine, other], project_id="p")
    assert [each.locator for each in ended.rejected] == [other]
    assert list(ended.promoted) == [mine]
    for written in (step, found):
        assert len(written.memory_ids) == 1
        assert [each.outcome for each in written.edges] == ["rejected"]


def test_a_turn_of_an_agent_that_is_told_again_is_there_once(service: MemoryService) -> None:
    turn = {"content": "I pull.", "source_role": "tug", "turn_id": "t", "agent_id": "other"}
    with hooks_of(service, agent_id="mine") as hooks:
        [first] = hooks.on_transcript([turn], conversation_id="c").memory_ids
        assert hooks.on_transcript([turn], conversation_id="c").memory_ids == (first,)
        own = turn | {"agent_id": "mine"}
        assert hooks.on_transcript([own], conversation_id="c").memory_ids != (first,)


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
    # Evidence that holds what another agent keeps for itself is refused.
    for fields in ({"agent_id": "other"}, {}):
        with hooks_of(service, **fields) as hooks, pytest.raises(InvalidInput, match="agent"):
            hooks.record_findings(["The quay is wet."], evidence=evidence)
