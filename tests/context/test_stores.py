"""The stores of a task, a project and everybody, over either backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from item_worlds import item

from memgraph import MemoryService, Viewer
from memgraph.clock import FixedClock, iso
from memgraph.context.items import memory_input_of
from memgraph.context.stores import (
    MAX_OUTPUT_CHARS,
    GlobalMemoryStore,
    InMemoryBackend,
    MemoryBackend,
    ProjectMemoryStore,
    TaskMemoryStore,
)
from memgraph.errors import ConfirmationMissing, Conflict, InvalidInput, NotFound
from memgraph.ids import CountingIds
from memgraph.model.context import ContextItem
from memgraph.model.enums import Scope
from memgraph.operations.context.database_backend import DatabaseBackend

Open = Callable[[Scope, str | None], MemoryBackend]


@pytest.fixture(params=["memory", "database"])
def open_backend(request: pytest.FixtureRequest) -> Open:
    if request.param == "memory":
        return lambda _tier, _scope_id: InMemoryBackend()
    service: MemoryService = request.getfixturevalue("service")
    viewer = Viewer(session_ids=frozenset({"t1", "t2"}), project_ids=frozenset({"p1", "p2"}))
    orc = service.orchestrator("orc-1", create=True, viewer=viewer)
    return lambda tier, scope_id: DatabaseBackend(orc, tier, scope_id)


@pytest.fixture
def task(open_backend: Open, clock: FixedClock) -> TaskMemoryStore:
    return TaskMemoryStore("t1", open_backend(Scope.SESSION, "t1"), clock=clock, ids=CountingIds())


@pytest.fixture
def project(open_backend: Open, clock: FixedClock) -> ProjectMemoryStore:
    backend = open_backend(Scope.PROJECT, "p1")
    return ProjectMemoryStore("p1", backend, 10, clock=clock, ids=CountingIds())


@pytest.fixture
def everywhere(open_backend: Open, clock: FixedClock) -> GlobalMemoryStore:
    backend = open_backend(Scope.GLOBAL, None)
    return GlobalMemoryStore(backend, lambda _: True, clock=clock, ids=CountingIds())


def test_a_task_keeps_what_its_stages_think_and_get(
    task: TaskMemoryStore, clock: FixedClock
) -> None:
    thought = task.add_reasoning("The parser drops the last line.", "plan")
    clock.advance(ms=1)
    got = task.add_tool_output("grep", {"hits": [3, 5]}, "plan")
    task.add_tool_output("clock", "noon")
    task.add_reasoning("Write the test first.", "work")
    assert thought == ContextItem(
        context_item_id=thought.context_item_id,
        kind="reasoning",
        source="task/t1/plan",
        timestamp=iso(clock.now_ms() - 1),
        tags=("task", "plan"),
        importance=0.5,
        token_cost=7,
        payload={"text": "The parser drops the last line."},
    )
    assert thought.context_item_id.startswith("reasoning-plan-")
    assert got.context_item_id.startswith("tool-grep-")
    assert (got.kind, got.importance, got.tags) == (
        "tool_output",
        0.7,
        ("task", "tool", "grep", "plan"),
    )
    assert got.payload == {"tool_id": "grep", "output": {"hits": [3, 5]}}
    assert task.get_stage_outputs("plan") == [got, thought]
    assert task.get_stage_outputs("nothing") == []
    task.clear()
    assert task.get_stage_outputs("plan") == []
    assert task.backend.count() == 0


def test_a_stage_with_many_outputs_gives_all_of_them(task: TaskMemoryStore) -> None:
    for number in range(120):
        task.add_tool_output("count", number, "loop")
    assert len(task.get_stage_outputs("loop")) == 120


def test_an_output_without_a_stage_is_no_stages(task: TaskMemoryStore) -> None:
    item = task.add_tool_output("clock", "noon")
    assert item.source == "task/t1"
    assert item.tags == ("task", "tool", "clock")
    assert task.get_stage_outputs("clock") == []


def test_a_long_output_is_kept_in_short(task: TaskMemoryStore) -> None:
    item = task.add_tool_output("cat", '"\\\n' * MAX_OUTPUT_CHARS, "read")
    assert item.payload["shortened"] is True
    assert item.payload["length"] == 3 * MAX_OUTPUT_CHARS
    assert task.get_stage_outputs("read") == [item]


def test_a_project_keeps_decisions_conventions_and_failures(project: ProjectMemoryStore) -> None:
    decision = project.add_decision("Store times as integers.", ["storage", "time"])
    other = project.add_decision("Use one database for each orchestrator.")
    convention = project.add_convention("Lines have at most 100 characters.", "python")
    failure = project.add_failure({"code": "TIMEOUT", "after": 3}, "Ask for less at a time.")
    told = [(each.kind, each.importance, each.tags) for each in (decision, convention, failure)]
    assert told == [
        ("decision", 0.9, ("project", "decision", "storage", "time")),
        ("convention", 0.8, ("project", "convention", "python")),
        ("failure", 0.85, ("project", "failure", "TIMEOUT")),
    ]
    assert decision.payload == {"decision": "Store times as integers."}
    assert convention.payload == {
        "convention": "Lines have at most 100 characters.",
        "scope": "python",
    }
    assert failure.payload == {
        "failure": {"code": "TIMEOUT", "after": 3},
        "lesson": "Ask for less at a time.",
    }
    assert {each.source for each in (decision, convention, failure)} == {"project/p1"}
    found = {each.context_item_id for each in project.query_decisions()}
    assert found == {decision.context_item_id, other.context_item_id}
    assert project.query_decisions(["time", "nothing"]) == [decision]
    assert project.query_decisions(["nothing"]) == []
    assert project.backend.get(failure.context_item_id) == failure


def test_a_full_project_gives_up_what_matters_least(
    project: ProjectMemoryStore, clock: FixedClock
) -> None:
    kept = [project.add_decision(f"Decision {number}.") for number in range(7)]
    clock.advance(ms=1)
    first = project.add_convention("First.", "x")
    clock.advance(ms=1)
    second = project.add_convention("Second.", "x")
    failure = project.add_failure({"code": 1}, "Careful.")
    assert project.backend.count() == 10
    third = project.add_convention("Third.", "x")
    assert project.backend.get(first.context_item_id) is None
    there = {each.context_item_id for each in project.backend.list_all()}
    assert there == {each.context_item_id for each in (*kept, second, failure, third)}


def test_preferences_take_a_persons_consent(open_backend: Open, clock: FixedClock) -> None:
    asked: list[str] = []
    answers = [True, False, False, True]

    def callback(question: str) -> bool:
        asked.append(question)
        return answers.pop(0)

    store = GlobalMemoryStore(open_backend(Scope.GLOBAL, None), callback, clock=clock)
    kept = store.add_preference("Answer in one sentence.", "verbosity")
    assert kept is not None
    assert (kept.kind, kept.source, kept.importance) == ("preference", "global", 0.9)
    assert kept.payload == {"preference": "Answer in one sentence.", "category": "verbosity"}
    assert store.add_preference("Use tabs.", "style") is None
    assert store.clear_all() is False
    assert store.query_preferences() == store.query_preferences("verbosity") == [kept]
    assert store.query_preferences("style") == []
    pattern = store.add_pattern("Measure before changing.", "speed")
    assert (pattern.kind, pattern.importance) == ("pattern", 0.7)
    assert pattern.tags == ("global", "pattern", "speed")
    assert store.query_preferences() == [kept]
    assert len(asked) == 3
    assert store.clear_all() is True
    assert store.backend.count() == 0


@pytest.mark.parametrize("callback", [None, lambda _: "yes", lambda _: 1])
def test_without_consent_nothing_changes(open_backend: Open, callback: Any) -> None:
    backend = open_backend(Scope.GLOBAL, None)
    [there] = [GlobalMemoryStore(backend, lambda _: True).add_preference("Be brief.", "style")]
    assert there is not None
    store = GlobalMemoryStore(backend, callback)
    with pytest.raises(ConfirmationMissing):
        store.add_preference("Be long.", "style")
    with pytest.raises(ConfirmationMissing):
        store.change_preference(there.context_item_id, "Be long.")
    with pytest.raises(ConfirmationMissing):
        store.clear_all()
    assert backend.list_all() == [there]
    store.add_pattern("Ask first.", "tools")
    assert backend.count() == 2


def test_a_callback_that_fails_consents_to_nothing_and_its_text_stays_out() -> None:
    def callback(question: str) -> bool:
        raise ConnectionError("token=abc")

    with pytest.raises(ConfirmationMissing) as raised:
        GlobalMemoryStore(InMemoryBackend(), callback).add_preference("Be long.", "style")
    assert raised.value.details == {"error": "ConnectionError"}
    assert "token" not in str(raised.value.as_dict())


def test_the_caller_may_have_asked_already(open_backend: Open) -> None:
    store = GlobalMemoryStore(open_backend(Scope.GLOBAL, None))
    assert store.add_preference("Be brief.", "style", require_confirmation=False) is not None


def test_a_preference_is_changed_in_its_place(everywhere: GlobalMemoryStore) -> None:
    old = everywhere.add_preference("Be brief.", "style")
    assert old is not None
    new = everywhere.change_preference(old.context_item_id, "Be precise.")
    assert new is not None
    assert new.payload == {"preference": "Be precise.", "category": "style"}
    assert (new.context_item_id, new.tags) == (old.context_item_id, old.tags)
    assert everywhere.query_preferences("style") == [new]
    pattern = everywhere.add_pattern("Measure.", "speed")
    for unknown in ("nothing", pattern.context_item_id):
        with pytest.raises(NotFound):
            everywhere.change_preference(unknown, "Be precise.")
    everywhere.confirmation_callback = lambda _: False
    assert everywhere.change_preference(old.context_item_id, "Be vague.") is None
    assert everywhere.query_preferences("style") == [new]


@pytest.mark.parametrize("payload", [{"text": "Be brief."}, {"why": "a"}, {"preference": 3}])
def test_a_preference_that_was_stored_otherwise_is_changed_too(
    open_backend: Open, payload: dict[str, Any]
) -> None:
    backend = open_backend(Scope.GLOBAL, None)
    backend.add(item("p", kind="preference", source="global", tags=(), payload=payload))
    changed = GlobalMemoryStore(backend, lambda _: True).change_preference("p", "Be precise.")
    assert changed is not None
    key = "text" if "text" in payload else "preference"
    assert (changed.payload, changed.importance) == ({**payload, key: "Be precise."}, 0.5)
    [stored] = backend.list_all()
    assert memory_input_of(stored, Scope.GLOBAL, None).content == "Be precise."


def test_a_preference_that_somebody_else_changed_meanwhile_stays(open_backend: Open) -> None:
    backend = open_backend(Scope.GLOBAL, None)
    other = GlobalMemoryStore(backend)
    old = other.add_preference("Be brief.", "style", require_confirmation=False)
    assert old is not None

    def meanwhile(_: str) -> bool:
        other.change_preference(old.context_item_id, "Be kind.", require_confirmation=False)
        return True

    with pytest.raises(Conflict):
        GlobalMemoryStore(backend, meanwhile).change_preference(old.context_item_id, "Be vague.")
    assert [each.payload["preference"] for each in other.query_preferences()] == ["Be kind."]


def test_a_question_shows_a_text_that_would_hide_as_it_is(everywhere: GlobalMemoryStore) -> None:
    asked: list[str] = []
    everywhere.confirmation_callback = lambda question: bool(asked.append(question))
    everywhere.add_preference("Be brief.\x1b[2K\rAdd a comma?", "style")
    [question] = asked
    assert question.isprintable()
    assert "Be brief." in question


@pytest.mark.parametrize("text", ["", "x" * 32_001])
def test_what_no_memory_holds_is_refused_and_changes_nothing(
    task: TaskMemoryStore, project: ProjectMemoryStore, everywhere: GlobalMemoryStore, text: str
) -> None:
    for add in (
        lambda: task.add_reasoning(text, "plan"),
        lambda: project.add_decision(text, []),
        lambda: project.add_convention(text, "x"),
        lambda: project.add_failure({"code": 1}, text),
        lambda: everywhere.add_preference(text, "style"),
        lambda: everywhere.add_pattern(text, "speed"),
    ):
        with pytest.raises(InvalidInput):
            add()
    assert [store.backend.count() for store in (task, project, everywhere)] == [0, 0, 0]


@pytest.mark.parametrize("name", ["", 7])
def test_a_name_is_a_name(
    task: TaskMemoryStore, project: ProjectMemoryStore, everywhere: GlobalMemoryStore, name: Any
) -> None:
    for add in (
        lambda: task.add_reasoning("A thought.", name),
        lambda: task.add_tool_output(name, "noon"),
        lambda: project.add_decision("A decision.", [name]),
        lambda: project.add_convention("A convention.", name),
        lambda: everywhere.add_preference("A preference.", name),
        lambda: everywhere.add_pattern("A pattern.", name),
    ):
        with pytest.raises(InvalidInput):
            add()


def test_a_project_holds_something() -> None:
    with pytest.raises(InvalidInput):
        ProjectMemoryStore("p", InMemoryBackend(), 0)
