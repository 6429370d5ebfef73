"""Promotion: by hand only, a step at a time, once, and for nobody who did not see it before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from denial_lines import denials
from processes import Process

from memgraph import EdgeType, MemoryService, MemoryStatus, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied, ConfirmationMissing, Conflict, InvalidInput, NotFound
from memgraph.model.values import Memory
from memgraph.operations.context import promotion
from memgraph.store.items import item_id_of

VIEWER = Viewer(session_ids=frozenset({"t1", "t2"}), project_ids=frozenset({"p1", "p2"}))
KEPT = (
    "content", "summary", "kind", "type", "importance", "confidence", "sensitivity", "agent_id",
    "event_time", "decay_rate", "tags", "source_id", "session_id", "source_role",
)  # fmt: skip
OLD = "a thought of the task about the parser"


@pytest.fixture
def orc(service: MemoryService) -> Iterator[Orchestrator]:
    made = service.orchestrator("orc-1", create=True, viewer=VIEWER, actor="tester")
    yield made
    assert made.verify().findings == []


def task_memory(orc: Orchestrator, content: str = OLD, **fields: Any) -> str:
    return orc.remember(content, scope="session", scope_id="t1", **fields)


def promoted(orc: Orchestrator, memory_id: str) -> str:
    """Promote a memory of a task to the project."""
    new = orc.contexts.promote(memory_id, "project", "p1")
    assert new is not None
    return new


def project_memory(
    orc: Orchestrator, content: str = "a lesson of the project", **fields: Any
) -> str:
    return orc.remember(content, scope="project", scope_id="p1", **fields)


def journal(service: MemoryService, action: str) -> list[tuple[str, str | None, dict[str, Any]]]:
    with service.opened("orc-1") as opened, opened.database.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT actor, subject, details FROM audit_log WHERE action = ? ORDER BY seq", (action,)
        ).all()
    return [(actor, subject, json.loads(details)) for actor, subject, details in rows]


def everything(service: MemoryService) -> list[Memory]:
    with service.opened("orc-1") as opened, opened.database.read() as connection:
        ids = connection.exec_driver_sql("SELECT memory_id FROM memories").scalars().all()
    return [
        service.orchestrator(
            "orc-1",
            viewer=Viewer(
                clearance=Sensitivity.RESTRICTED,
                session_ids=VIEWER.session_ids,
                project_ids=VIEWER.project_ids,
            ),
        ).get(one)
        for one in ids
    ]


def test_a_tasks_memory_becomes_its_projects(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    source = {"source_type": "workflow_output", "workflow_run_id": "r1", "step_id": "plan"}
    old_id = task_memory(
        orc,
        type="Todo",
        importance=71,
        confidence=0.8,
        tags=["parser"],
        attributes={"due": "friday", "done": False},
        source=source,
        event_time="2026-01-01T10:00:00Z",
    )
    clock.advance(days=1)
    new_id = orc.contexts.promote(old_id, "project", "p1", reason="it holds for all of them")
    assert new_id is not None
    old, new = orc.get(old_id), orc.get(new_id)
    assert new_id != old_id
    assert [getattr(new, name) for name in KEPT] == [getattr(old, name) for name in KEPT]
    assert (new.scope.value, new.scope_id) == ("project", "p1")
    assert new.attributes == old.attributes
    assert (old.status, old.scope.value, old.scope_id) == (MemoryStatus.ACTIVE, "session", "t1")
    trace = orc.trace(new_id)
    assert [(link.memory_id, link.edge_type) for link in trace.grounds] == [(old_id, None)]
    assert trace.source.workflow_run_id == "r1"
    told = {"from": old_id, "to": "project", "scope_id": "p1", "reason": "it holds for all of them"}
    assert journal(service, "promote") == [("tester", new_id, told)]


def test_a_projects_memory_becomes_everybodys_in_a_second_step_and_does_not_expire(
    orc: Orchestrator,
) -> None:
    old = task_memory(orc, type="Decision", decay_rate=0.2)
    middle = promoted(orc, old)
    new = orc.contexts.promote(middle, "global")
    assert new is not None
    assert orc.get(new).scope_id is None
    assert (orc.get(middle).decay_rate, orc.get(new).decay_rate) == (0.2, 0.0)
    assert {link.memory_id: link.distance for link in orc.trace(new).grounds} == {middle: 1, old: 2}


def test_an_item_is_an_item_of_the_wider_tier(orc: Orchestrator) -> None:
    task, project = orc.stores.task("t1"), orc.stores.project("p1")
    thought = task.add_reasoning("The parser drops the last line.", "plan")
    [memory] = orc.memories.list()
    orc.contexts.promote(memory.memory_id, "project", "p1")
    [item] = project.backend.list_all()
    assert item.source == "project/p1"
    same = ("kind", "tags", "importance", "payload", "token_cost", "timestamp")
    assert [getattr(item, name) for name in same] == [getattr(thought, name) for name in same]
    decision = orc.remember("Use one parser.", type="Decision", scope="session", scope_id="t1")
    orc.contexts.promote(decision, "project", "p1")
    assert [each.payload["text"] for each in project.query_decisions()] == ["Use one parser."]


def test_what_stood_there_before_takes_nobodys_place(orc: Orchestrator) -> None:
    thought = task_memory(orc)
    planted = orc.remember("planted", scope="project", scope_id="p1", item_id=item_id_of(thought))
    same_words = project_memory(orc, OLD)
    new = promoted(orc, thought)
    assert new not in (planted, same_words)
    assert promoted(orc, thought) == new
    assert [each.memory_id for each in orc.trace(new).grounds] == [thought]
    assert orc.trace(same_words).grounds == ()

    other = task_memory(orc, "another thought")
    orc.remember("another thought", scope="project", scope_id="p1", item_id=item_id_of(other))
    with pytest.raises(Conflict):
        orc.contexts.promote(other, "project", "p1")


def promote_all(root: Path, ids: list[str], promoted: Path) -> None:
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", viewer=VIEWER)
        promoted.write_text(
            " ".join(str(orc.contexts.promote(one, "project", "p1")) for one in ids)
        )


def test_two_processes_at_once_promote_once(tmp_path: Path) -> None:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True, viewer=VIEWER)
        ids = [task_memory(orc, f"thought {number}") for number in range(8)]
        files = [tmp_path / "promoted-1", tmp_path / "promoted-2"]
        running = [Process(promote_all, tmp_path, ids, file) for file in files]
        assert [each.wait() for each in running] == [0, 0]
        told = [file.read_text().split() for file in files]
        assert told[0] == told[1]
        assert len(set(told[0])) == len(ids)
        assert len(orc.memories.list()) == 2 * len(ids)
        assert len(journal(service, "promote")) == len(ids)
        assert orc.verify().findings == []


def test_no_step_is_skipped_or_taken_back(orc: Orchestrator) -> None:
    of_task, of_project, of_all = task_memory(orc), project_memory(orc), orc.remember("a fact")
    for old, to, target in (
        (of_task, "global", None),
        (of_project, "project", "p1"),
        (of_all, "project", "p1"),
    ):
        with pytest.raises(Conflict):
            orc.contexts.promote(old, to, target)
    for to, target in (
        *(("task", "t2"), ("session", "t2"), ("", None)),
        *(("project", None), ("project", ""), ("global", "p1")),
    ):
        with pytest.raises((InvalidInput, AccessDenied)):
            orc.contexts.promote(of_task, to, target)
    turn = task_memory(orc, "a turn", kind="episode", session_id="s")
    for no_fact in (turn, task_memory(orc, "a reflection", kind="reflection")):
        with pytest.raises(InvalidInput):
            orc.contexts.promote(no_fact, "project", "p1")
    assert len(orc.memories.list()) == 5


def test_what_is_gone_is_not_promoted(orc: Orchestrator, clock: FixedClock) -> None:
    retracted, replaced, corrected_there = (task_memory(orc, text) for text in ("a", "b", "c"))
    offer = task_memory(orc, "d", valid_until=clock.now_ms() + 10)
    orc.retract(retracted, reason="wrong")
    orc.correct(replaced, "a better thought", reason="better")
    orc.correct(promoted(orc, corrected_there), "a corrected thought", reason="wrong")
    clock.advance(ms=10)
    for each in (retracted, replaced, corrected_there, offer):
        with pytest.raises(Conflict):
            orc.contexts.promote(each, "project", "p1")


def test_what_was_taken_back_in_the_wider_scope_may_be_promoted_anew(orc: Orchestrator) -> None:
    old = task_memory(orc)
    new = promoted(orc, old)
    orc.retract(new, reason="too early")
    again = promoted(orc, old)
    assert again != new
    assert promoted(orc, old) == again
    # In another project it is a copy of its own.
    assert orc.contexts.promote(old, "project", "p2") not in (None, new, again)


def test_whoever_does_not_see_it_cannot_promote_it(
    service: MemoryService, orc: Orchestrator
) -> None:
    hidden = [task_memory(orc, "for other eyes", sensitivity="Confidential")]
    sees_all = Viewer(
        clearance=Sensitivity.RESTRICTED, session_ids=frozenset({"t1"}), agent_id="ann"
    )
    boss = service.orchestrator("orc-1", viewer=sees_all)
    assert boss.get(hidden[0])
    hidden.append(task_memory(orc, "of another agent", agent_id="bob"))
    stranger = service.orchestrator(
        "orc-1",
        viewer=Viewer(project_ids=frozenset({"p1"}), session_ids=frozenset({"t1"}), agent_id="ann"),
    )
    other_task = service.orchestrator(
        "orc-1", viewer=Viewer(project_ids=frozenset({"p1"}), session_ids=frozenset({"t2"}))
    )
    for each in hidden:
        for reader in (stranger, other_task):
            with pytest.raises(NotFound):
                reader.contexts.promote(each, "project", "p1")
    assert not [each for each in everything(service) if each.scope_id == "p1"]


def test_sensitivity_and_agent_stay(service: MemoryService, orc: Orchestrator) -> None:
    seeing = Viewer(
        clearance=Sensitivity.CONFIDENTIAL,
        session_ids=frozenset({"t1"}),
        project_ids=frozenset({"p1"}),
    )
    boss = service.orchestrator("orc-1", viewer=seeing)
    secret = task_memory(boss, "the secret thought", sensitivity="Confidential", agent_id="ann")
    new = boss.contexts.promote(secret, "project", "p1")
    assert new is not None
    assert boss.get(new).sensitivity is Sensitivity.CONFIDENTIAL
    assert boss.get(new).agent_id == "ann"
    with pytest.raises(NotFound):
        orc.get(new)
    assert orc.recall("secret thought").ids == ()
    assert orc.stores.project("p1").backend.count() == 0


def test_a_target_that_is_not_open_is_refused_and_logged(
    service: MemoryService, orc: Orchestrator
) -> None:
    old = task_memory(orc)
    stranger = service.orchestrator(
        "orc-1",
        viewer=Viewer(session_ids=frozenset({"t1"}), project_ids=frozenset({"p2"})),
        actor="stranger",
    )
    with pytest.raises(AccessDenied):
        stranger.contexts.promote(old, "project", "p1")
    [told] = denials(service.root)
    assert told.keys() == {"actor", "field", "code", "asked_sha256"}
    assert (told["actor"], told["field"], told["code"]) == ("stranger", "project", "access.denied")
    assert len(everything(service)) == 1


@pytest.mark.parametrize("kind", ["Preference", "Identity"])
def test_what_a_person_is_takes_the_persons_consent(orc: Orchestrator, kind: str) -> None:
    # For a project nobody is asked.
    old = promoted(orc, task_memory(orc, "prefers short answers", type=kind))
    for callback in (None, lambda _: None, lambda _: "yes", lambda _: 1 / 0):
        with pytest.raises(ConfirmationMissing):
            orc.contexts.promote(old, "global", confirmation_callback=callback)  # type: ignore[arg-type]
    assert orc.contexts.promote(old, "global", confirmation_callback=lambda _: False) is None
    assert len(orc.memories.list()) == 2
    asked: list[str] = []

    def yes(question: str) -> bool:
        asked.append(question)
        return True

    new = orc.contexts.promote(old, "global", confirmation_callback=yes)
    assert new is not None
    assert orc.get(new).type.value == kind
    assert "prefers short answers" in asked[0]
    # Nobody is asked for what is done.
    assert orc.contexts.promote(old, "global") == new


def test_what_is_taken_back_while_a_person_is_asked_is_not_promoted(orc: Orchestrator) -> None:
    old = project_memory(orc, type="Preference")

    def slow(_: str) -> bool:
        orc.retract(old, reason="wrong")
        return True

    with pytest.raises(Conflict):
        orc.contexts.promote(old, "global", confirmation_callback=slow)
    assert orc.memories.list() == []


def standing(orc: Orchestrator, query: str) -> dict[str, float]:
    found = orc.recall(query).items
    return {item.memory.memory_id: item.modifiers["stale_basis"] for item in found}


def test_closing_a_task_refutes_nothing_and_a_lost_contradiction_does_even_then(
    orc: Orchestrator, clock: FixedClock
) -> None:
    old = task_memory(orc)
    new = promoted(orc, old)
    clock.advance(ms=1)
    against = project_memory(orc, "the parser is fine")
    edge = orc.relate(against, EdgeType.CONTRADICTS, old)
    orc.stores.task("t1").clear()
    assert orc.trace(old).status_history[-1].reason == "task_closed"
    assert standing(orc, OLD)[new] == 1.0
    assert orc.trace(new).stale_grounds == orc.trace(old).stale_dependents == ()
    clock.advance(ms=1)
    before = clock.now_ms()
    clock.advance(ms=1)
    orc.contradictions.resolve(edge, winner=against, reason="it was looked at")
    assert orc.trace(new).stale_grounds == (old,)
    assert standing(orc, OLD)[new] == 0.95
    then = orc.recall(OLD, as_of=before)
    assert {item.memory.memory_id: item.modifiers["stale_basis"] for item in then.items}[new] == 1.0


def test_what_was_decayed_or_evicted_refutes_nothing(
    tmp_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promotion, "MAX_PROJECT_ITEMS", 3)
    with MemoryService(tmp_path, clock=clock, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True, viewer=VIEWER)
        expired = project_memory(orc, "a fact that expires", importance=0, decay_rate=0.1)
        kept = orc.contexts.promote(expired, "global")
        assert kept is not None
        orc.confirm(kept)
        clock.advance(days=200)
        orc.jobs.run("decay")
        assert orc.trace(expired).status_history[-1].reason == "decayed"
        assert orc.trace(kept).stale_grounds == ()
        pushed = project_memory(orc, "a fact that is pushed out", importance=0)
        wide = orc.contexts.promote(pushed, "global")
        assert wide is not None
        project = orc.stores.project("p1")
        for number in range(2):
            clock.advance(ms=1)
            project.add_convention(f"Convention {number}.", "x")
        # What is promoted into a full project makes room for itself.
        assert orc.get(promoted(orc, task_memory(orc, importance=1))).status is MemoryStatus.ACTIVE
        assert project.backend.count() == 3
        assert orc.trace(pushed).status_history[-1].reason == "evicted"
        assert orc.trace(wide).stale_grounds == ()
        assert standing(orc, "pushed out")[wide] == 1.0


def test_nothing_is_ever_promoted_by_itself(tmp_path: Path, clock: FixedClock) -> None:
    with MemoryService(tmp_path, clock=clock, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True, viewer=VIEWER)
        orc.stores.task("t1").add_reasoning("Zarquon prefers the green parser.", "plan")
        orc.stores.task("t1").add_tool_output("note", "Zarquon lives in Lisbon.", "plan")
        orc.stores.project("p1").add_decision("Zarquon ships the green parser in June.")
        orc.stores.project("p1").add_failure({"code": 1}, "Zarquon forgot the backup.")
        for number in range(12):
            orc.save_episode(
                f"I am Zarquon and I decided that I will learn {number} songs in Lisbon.",
                session_id="t1",
                source_role="user",
                scope="session",
                scope_id="t1",
            )
        narrow = {each.memory_id for each in everything(service)}
        orc.sessions.end("t1")
        for _ in range(3):
            for job in ("enrichment", "consolidation", "reflection", "decay"):
                orc.jobs.run(job)
            clock.advance(days=8)
        orc.stores.task("t1").clear()
        found = everything(service)
        assert len(found) > len(narrow)
        wider = [each for each in found if each.scope.value == "global"]
        assert [each.content for each in wider if "Zarquon" in each.content] == []
        assert not {each.scope_id for each in found} - {"t1", "p1", None}
        fresh = [each for each in found if each.memory_id not in narrow]
        moved = [each for each in fresh if (each.scope_id, each.kind.value) == ("p1", "fact")]
        assert moved == []
        assert journal(service, "promote") == []
