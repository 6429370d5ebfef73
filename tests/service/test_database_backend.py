from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import sqlalchemy as sa
from denial_lines import denials
from item_worlds import item
from pair_readers import CHANGES, ScriptedReader, reading
from processes import Process
from pydantic import ValidationError
from working import NAME

from memgraph import MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.context.items import MAX_DEPTH, RECORD, item_of, memory_input_of
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.enums import STORED_STATUSES, MemoryKind, MemoryStatus, MemoryType, Scope
from memgraph.model.remote import TierPage
from memgraph.model.values import Memory
from memgraph.operations.context import database_backend
from memgraph.operations.context.database_backend import DatabaseBackend
from memgraph.operations.context.promotion import retract_all
from memgraph.service.open_orchestrator import Transaction

GRANTED = Viewer(project_ids=frozenset({"web"}))
ROUNDS, MAX_ITEMS = 8, 12
EVERYTHING = Viewer(
    clearance=Sensitivity.RESTRICTED,
    project_ids=frozenset({"web", "ops"}),
    session_ids=frozenset({"t-1"}),
)


@pytest.fixture
def orc(service: MemoryService) -> Orchestrator:
    service.orchestrator(NAME, create=True)
    return service.orchestrator(NAME, viewer=GRANTED, actor="planner")


@pytest.fixture
def web(orc: Orchestrator) -> DatabaseBackend:
    return DatabaseBackend(orc, Scope.PROJECT, "web")


def seen_by(service: MemoryService, **viewer: Any) -> DatabaseBackend:
    granted = Viewer(**{"project_ids": frozenset({"web"}), **viewer})
    return DatabaseBackend(service.orchestrator(NAME, viewer=granted), Scope.PROJECT, "web")


def journal(service: MemoryService) -> list[tuple[str, str | None]]:
    """Return what the planner did, and why."""
    with service.opened(NAME) as opened, opened.database.read() as connection:
        rows = connection.execute(
            sa.text("SELECT action, details FROM audit_log WHERE actor = 'planner' ORDER BY seq")
        )
        return [(action, json.loads(details).get("reason")) for action, details in rows]


def stored(orc: Orchestrator, *statuses: MemoryStatus) -> Sequence[Memory]:
    return orc.memories.list(statuses=statuses or STORED_STATUSES)


def test_the_texts_of_two_items_are_compared_as_statements_are(tmp_path: Path) -> None:
    earlier, later = (f"Access tokens expire after {minutes} minutes." for minutes in (15, 30))
    with reading(tmp_path, ScriptedReader({(earlier, later): CHANGES})) as service:
        service.orchestrator(NAME, create=True)
        orc = service.orchestrator(NAME, viewer=GRANTED)
        web = DatabaseBackend(orc, Scope.PROJECT, "web")
        web.add(item("i-1", payload={"text": earlier}))
        web.add(item("i-2", payload={"text": later}))
        web.add(item("i-3", payload={"tokens": {"minutes": 15}}))
        web.add(item("i-4", payload={"tokens": {"minutes": 30}}))

        marks = orc.settle().compared.marks

        assert [(mark.edge_type, mark.weight) for mark in marks] == [("Updates", CHANGES.changes)]
        assert len(web.list_all()) == 4


def test_an_item_is_a_memory_of_its_scope_and_another_of_its_id_supersedes_it(
    orc: Orchestrator, web: DatabaseBackend
) -> None:
    web.add(item(payload={"decision": "We deploy on Tuesdays"}))

    [memory] = stored(orc)

    assert (memory.kind, memory.type) == (MemoryKind.FACT, MemoryType.DECISION)
    assert (memory.scope, memory.scope_id, memory.item_id) == (Scope.PROJECT, "web", "i-1")
    assert memory.content == "We deploy on Tuesdays"
    assert [each.memory.memory_id for each in orc.recall("Tuesdays").items] == [memory.memory_id]

    web.add(item(payload={"decision": "We deploy on Mondays"}))

    [new] = stored(orc, MemoryStatus.ACTIVE)
    [old] = stored(orc, MemoryStatus.SUPERSEDED)
    assert (new.content, old.memory_id) == ("We deploy on Mondays", memory.memory_id)
    edges = orc.graph.subgraph([new.memory_id]).edges
    assert [(edge.from_id, edge.edge_type, edge.to_id) for edge in edges] == [
        (new.memory_id, "Updates", old.memory_id)
    ]


def test_every_change_is_journalled_with_its_reason(
    service: MemoryService, orc: Orchestrator, web: DatabaseBackend
) -> None:
    web.add(item("a"))
    web.add(item("a"))
    web.add(item("a", importance=1.0))
    web.delete("a")
    web.add_bounded(item("b"), 1)
    web.add_bounded(item("c"), 1)
    web.clear()
    web.add(item("d"))
    web.clear("moved")

    found = journal(service)

    assert [action for action, _ in found] == [
        *("remember", "remember", "relate", "supersede", "retract"),
        *("remember", "remember", "retract", "retract", "remember", "retract"),
    ]
    reasons = [reason for action, reason in found if action == "retract"]
    assert reasons == ["deleted", "evicted", "cleared", "moved"]
    [memory] = [each for each in stored(orc) if each.item_id == "d"]
    last = orc.trace(memory.memory_id).status_history[-1]
    assert (last.status, last.reason, last.actor) == (MemoryStatus.RETRACTED, "moved", "planner")
    assert service.orchestrator(NAME).verify().findings == []


def test_of_two_memories_of_an_id_the_newest_is_the_item(
    orc: Orchestrator, web: DatabaseBackend
) -> None:
    web.add(item(importance=0.1))
    [memory] = stored(orc)
    web.delete("i-1")
    web.add(item(importance=0.2))
    orc.restore(memory.memory_id, reason="a mistake")

    assert web.get("i-1") == item(importance=0.2)
    assert web.count() == 2
    web.add(item(importance=0.3))
    assert web.list_all() == [item(importance=0.3)]


def test_memories_of_the_scope_are_items_that_correct_them_and_turns_are_none(
    orc: Orchestrator, web: DatabaseBackend
) -> None:
    place = {"scope": "project", "scope_id": "web"}
    known = orc.remember("Ann reviews", type="Identity", **place)
    thought = orc.remember("A quiet week", kind="reflection", **place)
    orc.save_episode("Hello", session_id="s", source_role="user", **place)
    orc.remember("Elsewhere")
    orc.remember("Over", valid_until="2020-01-01", **place)

    assert {each.context_item_id for each in web.list_all()} == {known, thought}
    assert web.get(known) == item_of(orc.get(known))
    assert [each.context_item_id for each in web.query({"kind": "identity"})] == [known]

    found = web.get(thought)
    assert found is not None
    web.add(found)
    assert orc.get(thought).status is MemoryStatus.ACTIVE

    web.add(found.model_copy(update={"payload": {"text": "A loud week"}}))

    [new] = [each for each in stored(orc, MemoryStatus.ACTIVE) if each.item_id == thought]
    assert (new.content, new.kind) == ("A loud week", MemoryKind.REFLECTION)
    assert orc.get(thought).status is MemoryStatus.SUPERSEDED
    assert {each.context_item_id for each in web.list_all()} == {known, thought}


def test_of_a_batch_the_same_text_of_the_same_name_is_one_memory(orc: Orchestrator) -> None:
    same = {"content": "the same", "scope": "project", "scope_id": "web"}
    names = ("a", "b", "a", None, None)
    outcomes = [orc.remember_many([{**same, "item_id": each} for each in names]) for _ in range(2)]
    assert [each.outcome for each in outcomes[0]] == [
        "stored", "stored", "duplicate", "stored", "duplicate"
    ]  # fmt: skip
    assert [each.memory_id for each in outcomes[0]] == [each.memory_id for each in outcomes[1]]


def test_a_memory_that_claims_to_be_a_deep_item_is_its_text(
    orc: Orchestrator, web: DatabaseBackend
) -> None:
    for levels in (MAX_DEPTH + 1, 5_000):
        deep = '{"a":' * levels + "1" + "}" * levels
        claim = {RECORD: {"text": None}}
        known = orc.remember(deep, scope="project", scope_id="web", attributes=claim)

        found = web.get(known)
        assert found is not None
        assert found.payload == {"text": deep}


def test_a_scope_that_is_none_or_was_not_granted_is_refused(
    service: MemoryService, orc: Orchestrator
) -> None:
    refused = [(Scope.PROJECT, "ops"), (Scope.PROJECT, ""), (Scope.SESSION, "web")]
    for tier, scope_id in refused:
        with pytest.raises(AccessDenied, match="not open"):
            DatabaseBackend(orc, tier, scope_id)
    logged = [(each["actor"], each["field"]) for each in denials(service.root)]
    assert logged == [("planner", tier.tier) for tier, _ in refused]
    # A tier has a name or is everybody's.
    for tier, name in ((Scope.PROJECT, None), (Scope.SESSION, None), (Scope.GLOBAL, "web")):
        with pytest.raises(InvalidInput):
            DatabaseBackend(orc, tier, name)


def test_no_scope_sees_another(service: MemoryService) -> None:
    service.orchestrator(NAME, create=True)
    orc = service.orchestrator(NAME, viewer=EVERYTHING)
    places = [
        (Scope.PROJECT, "web"),
        (Scope.PROJECT, "ops"),
        (Scope.SESSION, "t-1"),
        (Scope.GLOBAL, None),
    ]
    backends = [DatabaseBackend(orc, *place) for place in places]
    for number, each in enumerate(backends):
        each.add(item("canary", payload={"text": f"canary {number}"}))

    assert [each.list_all() for each in backends] == [
        [item("canary", payload={"text": f"canary {number}"})] for number in range(4)
    ]
    [thought] = [each for each in stored(orc) if each.scope is Scope.SESSION]
    assert backends[0].clear() == backends[2].clear() == 1
    assert [each.count() for each in backends] == [0, 1, 0, 1]
    assert orc.trace(thought.memory_id).status_history[-1].reason == "task_closed"


def test_what_a_reader_may_not_see_is_not_there_and_what_replaces_a_secret_stays_one(
    service: MemoryService, orc: Orchestrator, web: DatabaseBackend
) -> None:
    secret = service.orchestrator(NAME, viewer=EVERYTHING)
    place = {"scope": "project", "scope_id": "web"}
    secret.remember("The code is 4711", item_id="i-1", sensitivity="Restricted", **place)
    assert (web.get("i-1"), web.count(), web.delete("i-1"), web.clear()) == (None, 0, False, 0)
    seeing = DatabaseBackend(secret, Scope.PROJECT, "web")

    seeing.add(item(payload={"text": "The code is 4712"}))

    assert web.list_all() == []
    [new] = stored(secret, MemoryStatus.ACTIVE)
    assert (new.content, new.sensitivity) == ("The code is 4712", Sensitivity.RESTRICTED)

    web.add(item(payload={"text": "mine"}))

    assert (web.count(), seeing.count()) == (1, 2)


def test_a_writer_sees_what_it_wrote(service: MemoryService, orc: Orchestrator) -> None:
    public = seen_by(service, clearance=Sensitivity.PUBLIC)
    alone = seen_by(service, agent_id="ann", shared=False)
    public.add(item("public"))
    alone.add(item("ann's"))

    assert [each.context_item_id for each in public.list_all()] == ["public"]
    assert [each.context_item_id for each in alone.list_all()] == ["ann's"]
    assert seen_by(service).count() == 2
    assert seen_by(service, agent_id="bob", shared=False).count() == 0


def test_items_outlive_the_process(tmp_path: Path) -> None:
    for number in range(3):
        with MemoryService(tmp_path, environ={}, background=False) as service:
            service.orchestrator(NAME, create=not number)
            web = seen_by(service)
            assert web.count() == number
            web.add(item(f"i-{number}", importance=0.555))
            assert web.get("i-0") == item("i-0", importance=0.555)


def add_items(root: Path, who: str) -> None:
    """Runs in a process: add items of its own, and one that all of them write."""
    with MemoryService(root, environ={}, background=False) as service:
        web = seen_by(service)
        for number in range(ROUNDS):
            web.add(item("shared", payload={"text": f"{who} wrote the {number}th"}))
            web.add_bounded(item(f"{who}-{number}"), MAX_ITEMS)


def test_processes_add_at_once(tmp_path: Path) -> None:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        service.orchestrator(NAME, create=True)
    running = [Process(add_items, tmp_path, who) for who in ("one", "two")]

    assert [each.wait() for each in running] == [0, 0]

    with MemoryService(tmp_path, environ={}, background=False) as service:
        web = seen_by(service)
        ids = [each.context_item_id for each in web.list_all()]
        assert len(ids) == len(set(ids)) == web.count() == MAX_ITEMS
        shared = web.get("shared")
        assert shared is None or "wrote the 7th" in shared.payload["text"]
        orc = service.orchestrator(NAME)
        assert orc.verify().findings == []
        # Not one write was lost.
        assert orc.maintenance.stats()["memories"]["kind"] == {"fact": 2 * 2 * ROUNDS}


def test_clearing_gives_others_their_turn_and_takes_nothing_that_came_meanwhile(
    service: MemoryService, web: DatabaseBackend
) -> None:
    for number in range(5):
        web.add(item(f"i-{number}"))
    turns: list[int] = []

    def interrupted(transaction: Transaction, ids: Sequence[str], reason: str) -> None:
        turns.append(len(ids))
        retract_all(transaction, ids, reason)
        if len(turns) == 1:
            with service.opened(NAME) as opened:
                late = memory_input_of(item("late"), Scope.PROJECT, "web")
                opened.writer.store(transaction, [opened.writer.prepare(late)], [])
        if len(turns) == 3:
            raise InvalidInput("the third step failed")

    with (
        patch.object(database_backend, "CLEARED_AT_A_TIME", 2),
        patch.object(database_backend, "retract_all", interrupted),
        pytest.raises(InvalidInput),
    ):
        web.clear()

    assert turns == [2, 2, 1]
    left = {each.context_item_id for each in seen_by(service).list_all()}
    assert len(left) == 2
    assert "late" in left
    assert web.clear() == 2


def test_a_write_that_fails_leaves_everything_as_it_was(web: DatabaseBackend) -> None:
    web.add(item("a"))

    with (
        patch.object(database_backend, "evict", side_effect=InvalidInput("no")),
        pytest.raises(InvalidInput, match="no"),
    ):
        web.add_bounded(item("a", importance=1.0), 5)

    assert web.list_all() == [item("a")]


def test_no_item_of_a_host_expires(service: MemoryService, clock: FixedClock) -> None:
    service.orchestrator(NAME, create=True)
    orc = service.orchestrator(NAME, viewer=EVERYTHING)
    everywhere = DatabaseBackend(orc, Scope.GLOBAL)
    web = DatabaseBackend(orc, Scope.PROJECT, "web")
    for each in (everywhere, web):
        each.add(item())

    clock.advance(days=400)

    assert orc.jobs.run("decay").counts["retired"] == 0
    assert (everywhere.list_all(), web.list_all()) == ([item()], [item()])


def test_a_session_is_called_a_task_where_a_tier_is_sent() -> None:
    page = TierPage(tier="task", scope_id="t-1", count=0, items=())  # type: ignore[arg-type]
    assert page.tier is Scope.SESSION
    assert page.model_dump(mode="json")["tier"] == "task"
    with pytest.raises(ValidationError, match="task, project, global"):
        TierPage(tier="session", scope_id="t-1", count=0, items=())  # type: ignore[arg-type]
