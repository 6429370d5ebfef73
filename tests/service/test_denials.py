"""A handle opens what its viewer was granted; everything else is refused, logged and journalled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from memgraph import MemoryService, Orchestrator, Scope, Viewer
from memgraph.audit.findings import FindingCode
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied, DatabaseBusy, DatabaseFull, InvalidInput
from memgraph.service.denials import MAX_WINDOWS, WINDOW_MS, Denial, record_denial, record_denials
from memgraph.service.open_orchestrator import OpenOrchestrator

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
        (VIEWER, lambda orc: orc.stores.task("t2"), "task", "t2"),
        (VIEWER, lambda orc: orc.stores.task("p1"), "task", "p1"),
        (VIEWER, lambda orc: orc.stores.project("p2"), "project", "p2"),
        (VIEWER, lambda orc: orc.stores.project("P1"), "project", "P1"),
        (ONLY_GLOBAL, lambda orc: orc.stores.project("p1"), "project", "p1"),
        (NO_GLOBAL, lambda orc: orc.stores.global_tier(), "global", None),
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
    assert orc.stores.task("t1").task_id == "t1"
    assert orc.stores.project("p1").project_id == "p1"
    assert orc.stores.global_tier().query_preferences() == []
    assert told(service) == []
    assert logged(service) == []


@pytest.mark.parametrize("name", [None, 7, b"t1", ["t1"]])
def test_a_task_and_a_project_have_a_name(orc: Orchestrator, name: Any) -> None:
    for opening in (orc.stores.task, orc.stores.project):
        with pytest.raises(InvalidInput):
            opening(name)


def test_no_text_from_outside_comes_into_log_or_journal(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    with pytest.raises(AccessDenied):
        orc.stores.task("the launch code is 0000\ud800")
    assert "launch" not in json.dumps([told(service), logged(service)])


def test_a_refusal_stands_where_it_cannot_be_journalled(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    orc = service.orchestrator("orc-1", create=True)

    def busy(*_: object, **__: object) -> None:
        raise DatabaseBusy("busy")

    monkeypatch.setattr(OpenOrchestrator, "transaction", busy)
    with pytest.raises(AccessDenied):
        orc.stores.task("t1")
    assert len(logged(service)) == 1
    events = [
        json.loads(line)["event"]
        for line in service.paths("orc-1").log_file.read_text(encoding="utf-8").splitlines()
    ]
    assert "access.denied.journal" in events


def ask(orc: Orchestrator, *names: str) -> None:
    for name in names:
        with pytest.raises(AccessDenied):
            orc.stores.task(name)


def tell_all(service: MemoryService) -> None:
    with service.opened("orc-1") as opened:
        opened.denials.flush()


def times(service: MemoryService) -> list[int]:
    return [entry.get("times", 1) for _, entry in told(service)]


def test_equal_refusals_of_a_minute_are_counted(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    began = clock.now_ms()
    ask(orc, *["t1"] * 500)
    assert times(service) == [1]
    ask(service.orchestrator("orc-1", actor="another"), "t1")
    ask(orc, "t2")
    assert times(service) == [1, 1, 1]
    clock.advance(ms=WINDOW_MS)
    ask(orc, "t1", "t2", "t1")
    # The last of them is counted in a new minute.
    assert sorted(times(service)) == [1, 1, 1, 1, 499 + 1]
    [counted] = [entry for _, entry in told(service) if "times" in entry]
    assert counted["since"] == began
    assert counted["asked_sha256"] == hashlib.sha256(b"t1").hexdigest()
    assert len(logged(service)) == 505


def test_every_refusal_is_journalled_at_the_latest_when_it_is_closed(
    service: MemoryService, orc: Orchestrator
) -> None:
    ask(orc, *["t1", "t2"] * 20)
    service.close()
    with MemoryService(service.root) as again:
        assert sorted(times(again)) == [1, 1, 19, 19]


def test_an_export_holds_every_refusal(service: MemoryService, orc: Orchestrator) -> None:
    ask(orc, *["t1"] * 5)
    records = [json.loads(line) for line in orc.exchange.export_lines()]
    entries = [json.loads(each["details"]) for each in records if each.get("action") == "deny"]
    assert [each.get("times", 1) for each in entries] == [1, 4]


def test_a_count_is_journalled_in_the_background(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    ask(orc, "t1", "t1", "t1")
    with service.opened("orc-1") as opened:
        for ms, entries in ((WINDOW_MS - 1, [1]), (1, [1, 2]), (1, [1, 2])):
            clock.advance(ms=ms)
            opened.background.wake()
            assert opened.background.wait_idle(30)
            assert times(service) == entries


def test_names_without_end_make_no_entries_without_end(
    service: MemoryService, orc: Orchestrator
) -> None:
    ask(orc, *(f"guess-{number}" for number in range(MAX_WINDOWS * 3)))
    assert len(told(service)) == MAX_WINDOWS + 1
    assert told(service)[-1][1]["asked_sha256"] == "various"
    tell_all(service)
    assert sum(times(service)) == MAX_WINDOWS * 3
    assert len(told(service)) == MAX_WINDOWS + 2


def test_threads_that_are_refused_at_once_are_all_counted(
    service: MemoryService, orc: Orchestrator
) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ask(orc, f"t{number % 3}"), range(60)))
    tell_all(service)
    assert sum(times(service)) == 60
    assert len(times(service)) == 6


def test_what_could_not_be_journalled_is_journalled_later(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise DatabaseBusy("busy")

    with monkeypatch.context() as patch:
        patch.setattr(OpenOrchestrator, "transaction", busy)
        ask(orc, "t1", "t1", "t2")
    assert times(service) == []
    tell_all(service)
    assert sorted(times(service)) == [1, 2]


def test_what_cannot_be_journalled_for_long_takes_no_memory_without_end(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a gate's refusals each has an entry of its own, as long as there is a journal."""

    def full(*_: object, **__: object) -> None:
        raise DatabaseFull("full")

    denials = [Denial("id", f"guess-{number}") for number in range(MAX_WINDOWS * 3)]
    with service.opened("orc-1") as opened:
        with monkeypatch.context() as patch:
            patch.setattr(OpenOrchestrator, "transaction", full)
            record_denials(opened, denials, actor="key:0")
            for _ in range(2):
                with pytest.raises(DatabaseFull):
                    opened.denials.flush()
        opened.denials.flush()
    assert len(times(service)) == MAX_WINDOWS + 1
    assert sum(times(service)) == len(denials)


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
        record_denial(opened, actor="reader", field="task")
    assert FindingCode.STATUS_UNJOURNALLED in {each.code for each in orc.verify().findings}
