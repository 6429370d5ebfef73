"""Whoever is refused is told no more than no, and an auditor of the orchestrator all of it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as driver
import pytest
from denial_lines import denials

from memgraph import MemoryService, Scope, Viewer
from memgraph.clock import FixedClock
from memgraph.errors import (
    AccessDenied,
    DatabaseBusy,
    InvalidInput,
    MemgraphError,
    OrchestratorMissing,
    Unauthenticated,
)
from memgraph.model.access import ANY, Narrowing, Permission, Principal
from memgraph.model.enums import Sensitivity
from memgraph.model.jobs import ServiceReadiness
from memgraph.service.access.gate import KEYLESS, Gate
from memgraph.service.access.keys import KeyStore
from memgraph.surfaces.metrics import PrometheusMeters

READ, WRITE = Permission.READ, Permission.WRITE
ALL = {"permissions": frozenset(Permission)}


@pytest.fixture
def gate(service: MemoryService) -> Gate:
    for name in ("orc-1", "orc-2"):
        service.create(name)
    return Gate(service, KeyStore(service.root, service.clock))


def principal(gate: Gate, **fields: Any) -> Principal:
    given = {"name": "a test", "orchestrators": ("orc-1",), "permissions": {READ}}
    return gate.authenticate(gate.keys.create({**given, **fields}).secret)


def told(gate: Gate, name: str = "orc-1") -> list[tuple[str, dict[str, Any]]]:
    """Return (actor, details) of the refusals in the log of an orchestrator."""
    return [(line.pop("actor"), line) for line in denials(gate.service.root, name)]


def refused(call: Callable[[], object]) -> MemgraphError:
    with pytest.raises(MemgraphError) as raised:
        call()
    return raised.value


def damage(gate: Gate) -> None:
    gate.service.forget("orc-2")
    gate.service.paths("orc-2").database.write_bytes(b"this is no database" * 1_000)


def switch_off(gate: Gate) -> None:
    gate.service.paths("orc-2").config_file.write_text("[memory]\nenabled = false\n", "utf-8")


def remove(gate: Gate) -> None:
    shutil.rmtree(gate.service.paths("orc-2").directory)


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


@pytest.mark.parametrize("state", [damage, switch_off, remove])
def test_anothers_orchestrator_is_none_in_whatever_state_and_the_refusal_is_logged(
    gate: Gate, state: Callable[[Gate], None]
) -> None:
    absent = refused(lambda: gate.enter(principal(gate), "orc-3", READ))
    state(gate)
    other = refused(lambda: gate.enter(principal(gate), "orc-2", READ))
    assert type(other) is type(absent) is OrchestratorMissing
    assert other.as_dict() == absent.as_dict()
    assert other.details == {}
    if state is not remove:
        [(_, line)] = told(gate, "orc-2")
        assert line == {"field": "orchestrator", "code": "orchestrator.missing"}


def test_what_can_be_no_name_is_no_orchestrator_either(gate: Gate) -> None:
    absent = refused(lambda: gate.enter(principal(gate), "orc-3", READ))
    keys = [principal(gate), principal(gate, orchestrators=(ANY,))]
    names = ("", "..", "a/b", "x" * 65, "nul", "\0", "orc-1 ", "ORC-1", "ä")
    for key, name in product(keys, names):
        found = refused(lambda: gate.enter(key, name, READ))  # noqa: B023 - called at once
        assert found.as_dict() == absent.as_dict()


def test_each_refusal_is_a_line_of_the_orchestrator_that_refused(gate: Gate) -> None:
    one = principal(gate, project_ids=("p1",), agent_id="a")
    for _ in range(3):
        refused(lambda: gate.enter(one, "orc-2", READ))
    missing = {"field": "orchestrator", "code": "orchestrator.missing"}
    assert told(gate, "orc-2") == [(one.actor, missing)] * 3
    refused(lambda: gate.enter(one, "orc-1", WRITE))
    assert told(gate) == [(one.actor, {"field": "permission.write", "code": "access.denied"})]
    # What was asked for an auditor finds by its name.
    asked = {"session_ids": "*", "agent_id": "b", "clearance": "Restricted", "project_ids": "p2"}
    for field, name in asked.items():
        given: Any = {"project_ids": ("p1", name), "session_ids": (name,)}.get(field, name)
        refused(lambda: gate.enter(one, "orc-1", READ, Narrowing(**{field: given})))  # noqa: B023 - called at once
    assert told(gate)[1:] == [
        (one.actor, {"field": field, "code": "access.denied", "asked_sha256": digest(name)})
        for field, name in asked.items()
    ]


def test_what_a_handle_refuses_is_one_line_each_time(gate: Gate) -> None:
    one = principal(gate, agent_id="x", **ALL)
    handle = gate.enter(one, "orc-1", WRITE)
    asking: dict[str, Callable[[], object]] = {
        "task": lambda: handle.stores.task("t9"),
        "project_ids": lambda: handle.recall("x", project_ids=["p9"]),
        "agent_id": lambda: handle.context("x", agent_id="y"),
        "source_path": lambda: handle.remember("x", source={"source_path": "/etc/passwd"}),
        "write": lambda: handle.remember("x", sensitivity="Restricted"),
    }
    for ask in (*asking.values(), *asking.values()):
        error = refused(ask)
        gate.miss(one, "orc-1", error)
        assert isinstance(error, AccessDenied)
    lines = [(actor, each["field"]) for actor, each in told(gate)]
    assert lines == [(one.actor, field) for field in asking] * 2
    assert "passwd" not in json.dumps(told(gate))


def test_of_a_batch_every_item_that_is_refused_is_a_line(gate: Gate) -> None:
    one = principal(gate, **ALL)
    handle = gate.enter(one, "orc-1", WRITE)
    items: list[dict[str, Any]] = [
        {"content": "one"},
        {"content": "two", "sensitivity": "Restricted"},
        {"content": "three", "scope": "project", "scope_id": "p9"},
        {"content": "four", "derived_from": ["fact_00000000000000000000000000"]},
        {"content": "five", "source": {"source_path": "/etc/passwd"}},
        {"content": ""},
    ]
    outcomes = handle.remember_many(items)
    assert [each.code for each in outcomes] == [
        None,
        "access.denied",
        "access.denied",
        "memory.not_found",
        "access.denied",
        "input.invalid",
    ]
    codes = sorted(each["code"] for _, each in told(gate))
    assert codes == ["access.denied"] * 3 + ["memory.not_found"]
    assert gate.service.orchestrator("orc-1").verify().findings == []


def test_whatever_is_missed_an_auditor_finds_by_its_name(gate: Gate) -> None:
    one = principal(gate, **ALL)
    orc = gate.enter(one, "orc-1", WRITE)
    host = gate.service.orchestrator("orc-1")
    hidden = host.remember("The code is 0000.", sensitivity="Restricted")
    misses: list[Callable[[str], object]] = [
        lambda asked: orc.trace(asked),
        lambda asked: orc.receipts.get(asked),
        lambda asked: orc.entities.get(asked),
        lambda asked: orc.sessions.end(asked),
        lambda asked: orc.contradictions.resolve(asked, winner=asked, reason="a test"),
        lambda asked: orc.ingestion.get(asked),
        lambda asked: orc.remember("from it", derived_from=[asked]),
    ]
    names = [f"{number:064}" for number in range(len(misses))]
    for miss, asked in zip(misses, names, strict=True):
        gate.miss(one, "orc-1", refused(lambda: miss(asked)))  # noqa: B023 - called at once
    # What is hidden leaves the line of what is not there.
    names += [hidden, f"fact_{0:026}"]
    for asked in names[-2:]:
        gate.miss(one, "orc-1", refused(lambda: orc.get(asked)))  # noqa: B023 - called at once
    # What is no refusal is no line.
    gate.miss(one, "orc-1", refused(lambda: orc.remember("")))
    gate.miss(one, "orc-1", DatabaseBusy("busy"), InvalidInput("wrong"))
    gate.miss(one, "orc-1")
    entries = [entry for _, entry in told(gate)]
    assert [entry.pop("asked_sha256") for entry in entries] == [digest(name) for name in names]
    assert entries[-2] == entries[-1]


def test_a_locked_database_keeps_nobody_in_doubt(gate: Gate) -> None:
    one = principal(gate)
    absent = refused(lambda: gate.enter(one, "orc-3", READ)).as_dict()
    path = gate.service.paths("orc-2").database
    with closing(driver.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert refused(lambda: gate.enter(one, "orc-2", READ)).as_dict() == absent
        assert len(told(gate, "orc-2")) == 1


def test_a_key_that_ends_while_it_is_in_use_enters_no_more(gate: Gate, clock: FixedClock) -> None:
    one = principal(gate, expires_at=clock.now_ms() + 10)
    assert gate.enter(one, "orc-1", READ)
    clock.advance(ms=10)
    assert isinstance(refused(lambda: gate.enter(one, "orc-1", READ)), Unauthenticated)


def test_without_a_key_nobody_is_known_unless_it_was_said_so(gate: Gate) -> None:
    assert isinstance(refused(lambda: gate.authenticate(None)), Unauthenticated)
    open_gate = Gate(gate.service, gate.keys, keyless=True)
    assert open_gate.authenticate(None) is KEYLESS
    assert isinstance(refused(lambda: open_gate.authenticate("")), Unauthenticated)
    handle = open_gate.enter(KEYLESS, "orc-1", WRITE, Narrowing(project_ids=("p1",)))
    stored = handle.remember("x", scope="project", scope_id="p1", sensitivity="Restricted")
    assert handle.get(stored).scope_id == "p1"


def test_a_handle_acts_as_its_key_and_sees_what_it_was_granted(gate: Gate) -> None:
    one = principal(gate, project_ids=("p1", "p2"), clearance=Sensitivity.CONFIDENTIAL, **ALL)
    handle = gate.enter(one, "orc-1", WRITE, Narrowing(project_ids=("p1",)))
    assert handle.actor == one.actor
    assert handle.viewer.project_ids == {"p1"}
    handle.remember("noted", scope="project", scope_id="p1")
    with closing(driver.connect(gate.service.paths("orc-1").database)) as connection:
        [(actor,)] = connection.execute("SELECT DISTINCT actor FROM audit_log").fetchall()
    assert actor == one.actor


def test_it_lists_its_own_orchestrators_alone(gate: Gate) -> None:
    assert gate.orchestrators(principal(gate)) == ["orc-1"]
    assert gate.orchestrators(principal(gate, orchestrators=("orc-9",))) == []
    assert gate.orchestrators(principal(gate, orchestrators=(ANY,))) == ["orc-1", "orc-2"]


def test_what_was_not_granted_is_refused(service: MemoryService) -> None:
    granted = Viewer(session_ids=frozenset({"t1"}), project_ids=frozenset({"p1"}))
    only_global = Viewer(scopes=frozenset({Scope.GLOBAL}))
    no_global = replace(granted, scopes=frozenset({Scope.SESSION, Scope.PROJECT}))
    asked: list[tuple[Viewer, str, str | None]] = [
        *((granted, "task", "t2"), (granted, "task", "p1\ud800")),
        *((granted, "project", "p2"), (granted, "project", "P1"), (only_global, "project", "p1")),
        (no_global, "global", None),
    ]
    for viewer, field, name in asked:
        stores = service.orchestrator("orc-1", create=True, viewer=viewer, actor="reader").stores
        with pytest.raises(AccessDenied) as raised:
            stores.global_tier() if name is None else getattr(stores, field)(name)
        assert raised.value.as_dict()["code"] == "access.denied"
    lines = denials(service.root)
    assert [(each["actor"], each["field"]) for each in lines] == [
        ("reader", field) for _, field, _ in asked
    ]
    assert lines[0]["asked_sha256"] == digest("t2")
    assert {each.keys() - {"asked_sha256"} == {"actor", "field", "code"} for each in lines} == {
        True
    }


def test_each_refusal_is_a_line_and_a_count_and_the_database_stays_as_it_is(
    tmp_path: Path,
) -> None:
    meters = PrometheusMeters()
    with MemoryService(tmp_path / "root", environ={}, background=False, meters=meters) as service:
        orc = service.orchestrator("orc-1", create=True)
        before = orc.maintenance.stats()

        def ask(number: int) -> None:
            with pytest.raises(AccessDenied):
                orc.stores.task(f"t{number % 3}")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(60)))
        assert len(denials(service.root)) == 60
        figures, _ = meters.exposition(ServiceReadiness(status="ready"))
        assert b'memgraph_denials_total{field="task"} 60.0' in figures
        assert orc.maintenance.stats() == before
