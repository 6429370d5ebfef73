"""A full project in a database: what goes, with which reason, and in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from memgraph import MemoryService, MemoryStatus, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.operations.context import promotion

MAX = 5
VIEWER = Viewer(session_ids=frozenset({"t1"}), project_ids=frozenset({"p1", "p2"}))


@pytest.fixture
def service(tmp_path: Path, clock: FixedClock) -> Iterator[MemoryService]:
    with (
        patch.object(promotion, "MAX_PROJECT_ITEMS", MAX),
        MemoryService(tmp_path, clock=clock, environ={}, background=False) as made,
    ):
        yield made


@pytest.fixture
def orc(service: MemoryService) -> Iterator[Orchestrator]:
    made = service.orchestrator("orc-1", create=True, viewer=VIEWER, actor="tester")
    yield made
    assert made.verify().findings == []


def remembered(orc: Orchestrator, text: str, **fields: object) -> str:
    return orc.remember(text, scope="project", scope_id="p1", **fields)


def active(orc: Orchestrator) -> set[str]:
    return {each.memory_id for each in orc.memories.list(limit=1000)}


def test_a_full_project_retracts_what_matters_least_in_the_transaction_of_the_write(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    kept = {
        remembered(orc, "a goal", type="Goal", importance=0),
        remembered(orc, "a todo", type="Todo", importance=0),
        remembered(orc, "a decision", type="Decision", importance=0),
    }
    confirmed = remembered(orc, "a fact that a person confirmed", importance=0)
    orc.confirm(confirmed)
    # Turns are no items, and are not evicted.
    kept |= {
        remembered(orc, f"turn {number}", kind="episode", session_id="s", importance=0)
        for number in range(2 * MAX)
    }
    clock.advance(ms=1)
    least = remembered(orc, "the important quokka sleeps", importance=99)
    orc.stores.project("p1").add_convention("Mind the last line.", "files")
    assert orc.get(least).status is MemoryStatus.RETRACTED
    assert kept | {confirmed} <= active(orc)
    with service.opened("orc-1") as opened, opened.database.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT action, subject, details, actor FROM audit_log ORDER BY seq DESC LIMIT 2"
        ).all()
    (action, subject, details, actor), (wrote, *_) = rows
    assert (action, subject, json.loads(details)) == ("retract", least, {"reason": "evicted"})
    assert (actor, wrote) == ("tester", "remember")
    assert least not in orc.recall("where does the quokka sleep?").ids
    orc.restore(least, reason="it was needed")
    assert least in orc.recall("where does the quokka sleep?").ids


def test_nobody_pushes_out_what_they_do_not_see(service: MemoryService, orc: Orchestrator) -> None:
    boss = service.orchestrator(
        "orc-1",
        viewer=Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p1", "p2"})),
    )
    hidden = [
        remembered(boss, f"secret {number}", importance=0, sensitivity="Restricted")
        for number in range(3)
    ]
    elsewhere = boss.remember("of the other project", scope="project", scope_id="p2", importance=0)
    everybodys = boss.remember("of everybody", importance=0)
    project = orc.stores.project("p1")
    for number in range(MAX + 3):
        project.add_convention(f"Convention {number}.", "x")
    assert {*hidden, elsewhere, everybodys} <= active(boss)
    assert project.backend.count() == MAX


def test_tasks_and_everybody_are_not_bounded(orc: Orchestrator) -> None:
    task, everywhere = orc.stores.task("t1"), orc.stores.global_tier()
    for number in range(2 * MAX):
        task.add_reasoning(f"Thought {number}.", "plan")
        everywhere.add_pattern(f"Pattern {number}.", "x")
    assert (task.backend.count(), everywhere.backend.count()) == (2 * MAX, 2 * MAX)
