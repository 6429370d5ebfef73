"""Boxes that a step ticks."""

from __future__ import annotations

from memgraph import MemoryHooks, MemoryService, Orchestrator, Viewer
from memgraph.model.enums import MemoryStatus as Status

PLAN = {"workflow_run_id": "r", "step_id": "plan"}
WORK = {"workflow_run_id": "r", "step_id": "work"}


def test_what_a_step_ticks_is_open_no_longer(orc: Orchestrator, hooks: MemoryHooks) -> None:
    opened = hooks.on_step_output("- [ ] Tell the pilot\n- [ ] Buy rope", **PLAN).memory_ids
    written = hooks.on_step_output("- [x]  Tell the  pilot", **WORK)
    [event] = written.memory_ids
    assert orc.get(event).content == "Done: Tell the pilot"
    assert [each.outcome for each in written.edges] == ["stored"]
    assert [orc.get(each).status for each in opened] == [Status.SUPERSEDED, Status.ACTIVE]
    text = hooks.on_step("What is left?", **WORK).bulletin
    assert "Buy rope" in text
    assert ", Todo: Tell the pilot" not in text
    # Told again it changes nothing; opened anew and done anew it is done.
    assert hooks.on_step_output("- [x] Tell the pilot", **WORK).edges == ()
    [again] = hooks.on_step_output("- [ ] Tell the pilot", **PLAN).memory_ids
    assert orc.get(again).status is Status.ACTIVE
    hooks.on_step_output("- [x] Tell the pilot", **WORK)
    assert orc.get(again).status is Status.SUPERSEDED


def test_what_a_person_or_another_place_has_to_do_stays_open(
    service: MemoryService, hooks: MemoryHooks
) -> None:
    orc = service.orchestrator("a", viewer=Viewer(project_ids=frozenset({"p"})))
    of_a_person = orc.remember("Tell the pilot", type="Todo", importance=44)
    decided = hooks.on_step_output("Decision: Buy rope", **PLAN).memory_ids
    there = hooks.on_step_output("- [ ] Tell the pilot", **PLAN, project_id="p").memory_ids
    written = hooks.on_step_output("- [x] Tell the pilot\n- [x] Buy rope", **WORK)
    assert len(written.memory_ids) == 2
    assert written.edges == ()
    for each in (of_a_person, *decided, *there):
        assert orc.get(each).status is Status.ACTIVE
