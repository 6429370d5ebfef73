"""A handle opens what its viewer was granted; everything else is refused, logged and journalled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from memgraph import MemoryService, Orchestrator, Scope, Viewer
from memgraph.audit.findings import Code
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied, DatabaseBusy, InvalidInput
from memgraph.service.denials import tell_denial
from memgraph.service.opened import Opened

VIEWER = Viewer(session_ids=frozenset({"t1"}), project_ids=frozenset({"p1"}))
ONLY_GLOBAL = Viewer(scopes=frozenset({Scope.GLOBAL}))
NO_GLOBAL = Viewer(session_ids=frozenset({"t1"}), scopes=frozenset({Scope.SESSION, Scope.PROJECT}))


def told(service: MemoryService) -> list[tuple[str, dict[str, Any]]]:
    with service.opened("orc-1") as opened, opened.database.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT actor, details FROM audit_log WHERE action = 'deny' ORDER BY seq"
        ).all()
    return [(actor, json.loads(details)) for actor, details in rows]


def logged(service: MemoryService) -> list[dict[str, Any]]:
    path = service.paths("orc-1").log_file
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [each for each in map(json.loads, lines) if each["event"] == "access.denied"]


@pytest.mark.parametrize(
    ("viewer", "opening", "field", "name"),
    [
        (VIEWER, lambda orc: orc.task("t2"), "task", "t2"),
        (VIEWER, lambda orc: orc.task("p1"), "task", "p1"),
        (VIEWER, lambda orc: orc.project("p2"), "project", "p2"),
        (VIEWER, lambda orc: orc.project("P1"), "project", "P1"),
        (ONLY_GLOBAL, lambda orc: orc.project("p1"), "project", "p1"),
        (NO_GLOBAL, lambda orc: orc.everywhere(), "global", None),
    ],
)
def test_what_was_not_granted_is_refused(
    service: MemoryService,
    viewer: Viewer,
    opening: Callable[[Orchestrator], object],
    field: str,
    name: str | None,
) -> None:
    orc = service.orchestrator("orc-1", create=True, viewer=viewer, actor="reader")
    with pytest.raises(AccessDenied) as raised:
        opening(orc)
    assert raised.value.as_dict()["code"] == "access.denied"
    entry = {"field": field, "code": "access.denied"}
    if name is not None:
        entry["asked_sha256"] = hashlib.sha256(name.encode()).hexdigest()
    assert told(service) == [("reader", entry)]
    assert [line | {"actor": "reader"} | entry for line in logged(service)] == logged(service)
    assert orc.verify().findings == []


def test_what_was_granted_is_opened_and_tells_nothing(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True, viewer=VIEWER)
    assert orc.task("t1").task_id == "t1"
    assert orc.project("p1").project_id == "p1"
    assert orc.everywhere().query_preferences() == []
    assert told(service) == []
    assert logged(service) == []


@pytest.mark.parametrize("name", [None, 7, b"t1", ["t1"]])
def test_a_task_and_a_project_have_a_name(orc: Orchestrator, name: Any) -> None:
    for opening in (orc.task, orc.project):
        with pytest.raises(InvalidInput):
            opening(name)


def test_no_text_from_outside_comes_into_log_or_journal(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    with pytest.raises(AccessDenied):
        orc.task("the launch code is 0000\ud800")
    assert "launch" not in json.dumps([told(service), logged(service)])


def test_a_refusal_stands_where_it_cannot_be_journalled(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    orc = service.orchestrator("orc-1", create=True)

    def busy(*_: object) -> None:
        raise DatabaseBusy("busy")

    monkeypatch.setattr(Opened, "transaction", busy)
    with pytest.raises(AccessDenied):
        orc.task("t1")
    assert len(logged(service)) == 1
    events = [
        json.loads(line)["event"]
        for line in service.paths("orc-1").log_file.read_text(encoding="utf-8").splitlines()
    ]
    assert "access.denied.journal" in events


def test_a_refused_recall_is_journalled_too(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True, actor="reader")
    with pytest.raises(AccessDenied):
        orc.recall("anything", project_ids=["p9"])
    assert told(service) == [("reader", {"field": "project_ids", "code": "access.denied"})]
    assert orc.verify().findings == []


def test_a_refusal_does_not_excuse_a_change_that_nobody_told(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    one = orc.remember("a fact")
    clock.advance(ms=5)
    with service.opened("orc-1") as opened:
        with opened.database.write() as connection:
            connection.exec_driver_sql("UPDATE memories SET status = 'retracted'")
            connection.exec_driver_sql("UPDATE memory_status SET until = ?", (clock.now_ms(),))
            connection.exec_driver_sql(
                "INSERT INTO memory_status (memory_id, status, since, actor)"
                " VALUES (?, 'retracted', ?, 'x')",
                (one, clock.now_ms()),
            )
        tell_denial(opened, actor="reader", field="task")
    assert Code.STATUS_UNJOURNALLED in {each.code for each in orc.verify().findings}
