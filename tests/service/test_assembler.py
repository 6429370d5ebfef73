"""Contexts for tasks, built from one orchestrator's memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import Process
from working import put, working

from memgraph import ContextAssembler, MemoryService, Sensitivity
from memgraph.errors import AccessDenied, InvalidInput, OrchestratorMissing
from memgraph.ids import CountingIds
from memgraph.model.context import AgentProfile, BlockFormat, ContextRequest, Task, TierShares
from memgraph.model.enums import Scope
from memgraph.model.receipts import Receipt
from memgraph.rules.budget import token_cost
from memgraph.rules.scope import Viewer

NAME = "orc"
TASK = Task(task_id="t1", project_id="web")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with working(tmp_path) as made:
        made.create(NAME)
        yield made


def assembler(service: MemoryService, **fields: Any) -> ContextAssembler:
    return ContextAssembler(service, NAME, confirmation_callback=lambda _question: True, **fields)


def remember(service: MemoryService, text: str, place: str = "global", **fields: Any) -> str:
    """``place``: ``global``, ``task:<id>`` or ``project:<id>``."""
    kind, _, scope_id = place.partition(":")
    scope = {"task": "session"}.get(kind, kind)
    viewer = Viewer(
        clearance=Sensitivity.RESTRICTED,
        project_ids=frozenset({scope_id or "-"}),
        session_ids=frozenset({scope_id or "-"}),
    )
    handle = service.orchestrator(NAME, viewer=viewer)
    return put(handle, text, scope=scope, scope_id=scope_id or None, **fields)


def receipt(service: MemoryService, receipt_id: str) -> Receipt:
    viewer = Viewer(session_ids=frozenset({"t1"}))
    return service.orchestrator(NAME, viewer=viewer).receipts.get(receipt_id)


def test_a_context_holds_what_the_task_its_project_and_everybody_know(
    service: MemoryService,
) -> None:
    building = assembler(service)
    building.task_store("t1").add_reasoning("The parser stumbles over tabs.", "plan")
    building.project_store("web").add_decision("The shop runs in containers.")
    building.global_store().add_preference("Answers are short.", "style")
    service.orchestrator(NAME).settle()
    found = building.build_context(TASK, query="parser")
    assert [each.tier for each in found.items] == [Scope.SESSION, Scope.PROJECT, Scope.GLOBAL]
    assert [each.item.kind for each in found.items] == ["reasoning", "decision", "preference"]
    assert found.items[0].reasons == ("head", "tail", "recall:1")
    assert all(each.text in found.text for each in found.items)
    assert found.token_cost == token_cost(found.text) <= found.budget_tokens == 2_000
    assert (found.degraded, found.summary) == ((), None)
    assert found.model_dump(mode="json")["tiers"]["task"]["chosen"] == 1


@pytest.mark.parametrize("query", ["", "canary secret"])
def test_nothing_of_another_task_project_agent_or_level_gets_in(
    service: MemoryService, query: str
) -> None:
    for number, place in enumerate(["task:t2", "project:shop", "task:web", "project:t1"]):
        remember(service, f"canary secret {number}", place, importance=100)
    remember(service, "canary secret level", sensitivity="Confidential", importance=100)
    remember(service, "canary secret level", "task:t1", sensitivity="Restricted")
    remember(service, "canary secret level", "project:web", sensitivity="Confidential")
    remember(service, "canary secret agent", agent_id="other")
    seen = remember(service, "The canary secret that may be seen", agent_id="mine")
    building = assembler(service, profile=AgentProfile(name="p", agent_id="mine"))
    found = building.build_context(TASK, query=query)
    assert found.memory_ids == (seen,)
    assert found.left_out_count == 0
    assert "canary" not in building.build_context(None, query=query, kinds=("episode",)).text


def test_no_task_sees_what_belongs_to_none(service: MemoryService) -> None:
    remember(service, "Of a task", "task:t1")
    remember(service, "Of a project", "project:web")
    everybody = remember(service, "Of everybody")
    building = assembler(service)
    assert building.build_context(None).memory_ids == (everybody,)
    assert len(building.build_context("t1").items) == 2
    named = Task(task_id="t1", metadata={"project_id": "web"})
    assert len(building.build_context(named).items) == 3


def test_turns_of_other_conversations_are_recalled_and_this_one_is_left_out(
    service: MemoryService,
) -> None:
    handle = service.orchestrator(NAME)
    other = handle.save_episode("Dana wrote the parser", session_id="c1", source_role="user")
    handle.save_episode("Who wrote the parser?", session_id="c2", source_role="user")
    found = assembler(service).build_context(
        TASK, query="who wrote the parser", exclude_session_id="c2"
    )
    assert found.memory_ids == (other,)


def test_both_sides_of_a_contradiction_come_though_one_was_asked_for(
    service: MemoryService,
) -> None:
    one = remember(service, "The port of the shop is 80", "project:web")
    other = remember(service, "Quite another number: 8080", "project:web", importance=0)
    viewer = Viewer(project_ids=frozenset({"web"}))
    service.orchestrator(NAME, viewer=viewer).relate(one, "Contradicts", other)
    for number in range(30):
        remember(service, f"Filler about ducks {number}", "project:web", importance=60)
    found = assembler(service).build_context(TASK, query="port of the shop", max_items=3)
    assert {one, other} <= set(found.memory_ids)


def test_the_receipt_names_exactly_the_items_and_whom_they_were_for(
    service: MemoryService,
) -> None:
    for number in range(30):
        remember(service, f"The parser fails on line {number}", "task:t1")
    found = assembler(service).build_context(
        TASK, query="parser line 7", budget_tokens=400, conversation_id="c", step_id="s"
    )
    kept = receipt(service, found.receipt_id)
    asked = kept.asked
    assert tuple(each.memory_id for each in kept.items) == found.memory_ids
    assert 0 < len(kept.items) < 30
    assert found.left_out_count == 30 - len(kept.items)
    assert asked["purpose"] == "build_context"
    assert (asked["task_id"], asked["project_id"]) == ("t1", "web")
    assert (asked["conversation_id"], asked["step_id"]) == ("c", "s")
    assert asked["sha256"] == hashlib.sha256(found.text.encode()).hexdigest()


def test_the_request_wins_over_the_profile_and_the_profile_over_the_settings(
    service: MemoryService,
) -> None:
    remember(service, "Something")
    plain = assembler(service).build_context(TASK)
    assert (plain.budget_tokens, plain.format) == (2_000, BlockFormat.FENCED)
    profile = AgentProfile(
        name="p", budget_tokens=300, format=BlockFormat.LIST, shares=TierShares(task=1.0)
    )
    building = assembler(service, profile=profile)
    of_profile = building.build_context(TASK)
    assert (of_profile.budget_tokens, of_profile.format) == (300, BlockFormat.LIST)
    request = ContextRequest(budget_tokens=200)
    asked = building.build_context(TASK, request, format="sections")
    assert (asked.budget_tokens, asked.format) == (200, BlockFormat.SECTIONS)
    assert building.build_context(TASK, budget_tokens=0).text == ""
    # Mappings say the same.
    building = assembler(service, profile={"name": "p", "format": "list"})
    given = building.build_context({"task_id": "t1"}, {"budget_tokens": 300})
    assert (given.budget_tokens, given.format) == (300, BlockFormat.LIST)


def test_a_task_that_is_closed_leaves_nothing_behind(service: MemoryService) -> None:
    building = assembler(service)
    building.task_store("t1").add_reasoning("A thought", "plan")
    remember(service, "For few eyes", "task:t1", sensitivity="Restricted")
    kept = building.task_store("t2").add_reasoning("A thought", "plan")
    assert building.cleanup_task("t1") == 2
    assert building.cleanup_task("t1") == 0
    assert building.build_context("t1").items == ()
    assert building.task_store("t2").backend.get(kept.context_item_id) == kept
    with service.opened(NAME) as opened, opened.database.read() as connection:
        told = connection.exec_driver_sql(
            "SELECT h.reason, h.actor FROM memory_status h WHERE h.status = 'retracted'"
        )
        assert set(told) == {("task_closed", "orchestrator")}


def test_what_was_promoted_is_shown_once_while_the_task_lasts(service: MemoryService) -> None:
    building = assembler(service)
    building.task_store("t1").add_reasoning("Tabs break the parser", "plan")
    [held] = building.build_context(TASK).items
    viewer = Viewer(session_ids=frozenset({"t1"}), project_ids=frozenset({"web"}))
    orc = service.orchestrator(NAME, viewer=viewer)
    promoted = orc.contexts.promote(held.memory_id, "project", "web")
    both = building.build_context(TASK)
    assert both.memory_ids == (held.memory_id,)
    assert [(each.memory_id, each.reason) for each in both.left_out] == [(promoted, "duplicate")]
    building.cleanup_task("t1")
    assert building.build_context(TASK).memory_ids == (promoted,)


def test_wrong_requests_are_refused(service: MemoryService) -> None:
    building = assembler(service)
    tasks: list[Any] = ["", 5, {}, {"task_id": "t", "more": 1}]
    for task in tasks:
        with pytest.raises(InvalidInput):
            building.build_context(task)
    requests: list[Any] = ["query", {"shares": {"task": -1}}]
    for request in requests:
        for options in ({}, {"max_items": 3}):
            with pytest.raises(InvalidInput):
                building.build_context(TASK, request, **options)
    with pytest.raises(InvalidInput):
        building.build_context(TASK, budget_tokens=-1)
    with pytest.raises(InvalidInput):
        assembler(service, profile={"name": "p", "budget": 3})
    with pytest.raises(AccessDenied):
        assembler(service, profile=AgentProfile(name="p", clearance=Sensitivity.RESTRICTED))
    with pytest.raises(OrchestratorMissing):
        ContextAssembler(service, "nobody")


def test_a_receipt_tells_why_what_is_in_it_and_how_many_were_left_out(
    service: MemoryService,
) -> None:
    held = remember(service, "many words of the old days, " * 200, "task:t1")
    remember(service, "The harbour closes at nine.")
    remember(service, "When does the harbour close?")
    for number in range(5):
        remember(service, f"Number {number} of what else there is to say of it. " * 8)
    query = "When does the harbour close?"
    found = assembler(service).build_context("t1", query=query, budget_tokens=400)
    kept = receipt(service, found.receipt_id)
    for item, packed in zip(kept.items, found.items, strict=True):
        assert item.memory_id == packed.memory_id
        assert item.reasons == packed.reasons + (("shortened",) if packed.shortened else ())
    [cut] = [each.reasons for each in kept.items if each.memory_id == held]
    assert {"head", "tail", "shortened"} <= set(cut)
    reasons = [each.reason for each in found.left_out]
    assert kept.asked["left_out"] == {each: reasons.count(each) for each in set(reasons)}
    assert kept.asked["left_out"]["query"] == 1
    assert not any(each.memory_id in json.dumps(kept.asked) for each in found.left_out)


def build(root: Path, told: Path) -> None:
    with working(root, ids=CountingIds()) as service:
        service.create(NAME)
        building = assembler(service)
        for number in range(10):
            building.task_store("t1").add_reasoning(f"The parser fails on line {number}", "plan")
            building.project_store("web").add_decision(f"Decision {number}: no tabs", ["b", "a"])
        service.orchestrator(NAME).settle()
        told.write_text(building.build_context(TASK, query="parser tabs").model_dump_json())


def test_the_same_database_clock_and_ids_give_the_same_bytes(tmp_path: Path) -> None:
    """In another process, too, which hashes strings otherwise."""
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    build(tmp_path / "here", here)
    assert Process(build, tmp_path / "there", there).wait() == 0
    assert here.read_bytes() == there.read_bytes()
    assert len(json.loads(here.read_text())["items"]) > 10
