"""An agent gets back and forgets what is its own, of the places that are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from agent_items import EVERYTHING, IN_PROJECT, IN_SESSION, NAME, WHERE, call, item
from hypothesis import HealthCheck, given, settings, strategies as st

from memgraph import MemoryEntity, MemoryService, MemoryStatus, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.enums import MemoryKind, Scope

TIERS = (MemoryKind.EPISODE, MemoryKind.FACT)


def test_the_best_fit_comes_first_by_metadata_too_and_a_limit_holds(ana: MemoryEntity) -> None:
    ana.store(
        [
            item("The harbour closes at nine."),
            item("Bread costs two coins."),
            item("The gate is shut.", metadataJson='{"place": "Customs office"}'),
            item("The bread is baked.", metadataJson='{"place": "東京都"}'),
        ]
    )
    for asked, best in (
        ("When does the harbour close?", "The harbour closes at nine."),
        ("customs office", "The gate is shut."),
        ("東京都", "The bread is baked."),
    ):
        assert ana.retrieve(asked)[0].content == best
    assert len(ana.retrieve("", limit=2)) == 2
    assert len(ana.list_items(limit=1)) == 1


def test_tiers_and_scopes_are_filters(ana: MemoryEntity) -> None:
    for tier in TIERS:
        for where in ({}, IN_SESSION, IN_PROJECT):
            ana.store([item(f"The harbour in {where or 'the world'}.", tier=tier, **where)])
    places = {"session_id": "s", "project_id": "p"}
    for tier in (None, *TIERS):
        for scope in (None, *Scope):
            for found in (
                ana.retrieve("harbour", tier, scope, 50, **places),
                ana.retrieve("", tier, scope, 50, **places),
                ana.list_items(tier, scope, 50, **places),
            ):
                assert len(found) == (2 if tier is None else 1) * (3 if scope is None else 1)
                assert {each.tier for each in found} <= (set(TIERS) if tier is None else {tier})
                assert {each.scope for each in found} <= (set(Scope) if scope is None else {scope})


def test_a_request_of_another_place_sees_nothing(ana: MemoryEntity) -> None:
    ana.store([item("In the session.", **IN_SESSION), item("In the project.", **IN_PROJECT)])
    for project in (None, "q", "s"):
        places: dict[str, Any] = {"session_id": "t", "project_id": project}
        assert ana.list_items(**places) == ()
        assert ana.retrieve("session project", **places) == ()
        assert ana.retrieve("session", scope="SessionScope", **places) == ()
    assert [each.content for each in ana.list_items(session_id="s")] == ["In the session."]
    places = {"session_id": "t", "project_id": "p"}
    assert [each.content for each in ana.retrieve("the", **places)] == ["In the project."]


def test_without_a_session_all_sessions_of_the_agent_are_meant(
    ana: MemoryEntity, ben: MemoryEntity
) -> None:
    for session in "st":
        ana.store([item(f"Tea in {session}.", scope="SessionScope", sessionId=session)])
    ben.store([item("Tea elsewhere.", scope="SessionScope", sessionId="u")])
    both = {"Tea in s.", "Tea in t."}
    for scope in ("SessionScope", None):
        assert {each.content for each in ana.retrieve("tea", scope=scope)} == both
        assert {each.content for each in ana.list_items(scope=scope)} == both


def test_an_entity_of_a_project_stays_in_it(
    service: MemoryService, ana: MemoryEntity, all_of: Callable[[str], list[str]]
) -> None:
    ana.store([item("In p.", **IN_PROJECT), item("In q.", scope="ProjectScope", projectId="q")])
    bound = MemoryEntity(service, NAME, "ana", project_id="p")
    assert [each.content for each in bound.list_items()] == ["In p."]
    assert [each.content for each in bound.retrieve("in", project_id="p")] == ["In p."]
    own = service.orchestrator(NAME, viewer=bound.viewer)
    assert [each.memory.content for each in own.recall("in").items] == ["In p."]
    for request in (
        lambda: bound.list_items(project_id="q"),
        lambda: bound.retrieve("in", project_id="q"),
        lambda: bound.forget(scope="ProjectScope", project_id="q"),
        lambda: bound.store([item("More.", scope="ProjectScope", projectId="q")]),
    ):
        with pytest.raises(AccessDenied):
            request()
    denied = [
        entry
        for entry in service.paths(NAME).log_file.read_text().splitlines()
        if json.loads(entry)["event"] == "access.denied"
    ]
    assert len(denied) == 4
    assert bound.forget("2030-01-01").deleted_count == 1
    assert all_of("ana") == ["In q."]


def test_more_sensitive_items_take_clearance_to_read_and_to_forget(
    service: MemoryService, ana: MemoryEntity
) -> None:
    ana.store([item("The code is 4711.", sensitivity="Restricted")])
    assert ana.list_items() == ana.retrieve("code") == ()
    cleared = MemoryEntity(service, NAME, "ana", clearance=Sensitivity.RESTRICTED)
    assert [each.content for each in cleared.retrieve("code")] == ["The code is 4711."]
    assert ana.forget(scope="GlobalScope").deleted_count == 0
    assert len(cleared.list_items()) == 1
    assert cleared.forget(scope="GlobalScope").deleted_count == 1
    assert cleared.list_items() == ()


def test_what_is_retrieved_is_in_a_receipt(service: MemoryService, ana: MemoryEntity) -> None:
    [known] = ana.store([item("The harbour closes at nine.")]).stored_ids
    ana.retrieve("harbour", "SemanticMemory", session_id="s")
    with service.opened(NAME) as opened:
        opened.receipts.flush()
        with opened.database.read() as connection:
            [row] = connection.exec_driver_sql(
                "SELECT r.request, i.memory_id FROM recalls r JOIN recall_items i USING (recall_id)"
            )
    asked = json.loads(row[0])
    assert (asked["purpose"], asked["agent_id"], row[1]) == ("retrieve", "ana", known)
    assert asked["request"] == {"tier": "SemanticMemory", "session_id": "s"}


TEXTS = {"ana": "Ana's canary sings.", "ben": "Ben's canary sings.", None: "A canary sings."}


def test_nothing_of_one_agent_reaches_another(
    service: MemoryService, orc: Orchestrator, ana: MemoryEntity, ben: MemoryEntity
) -> None:
    orc.remember(TEXTS[None])
    for entity, name in ((ana, "ana"), (ben, "ben")):
        for tier in TIERS:
            entity.store([item(TEXTS[name], tier=tier, **where) for where in WHERE])
    bound = MemoryEntity(service, NAME, "ben", project_id="p", clearance=Sensitivity.RESTRICTED)
    for entity in (ben, bound):
        for scope in (None, *Scope):
            places = {"session_id": "s", "project_id": "p"}
            found = [
                *entity.retrieve("Ana's canary sings.", None, scope, 1_000, **places),
                *entity.list_items(None, scope, 1_000, **places),
            ]
            assert {each.content for each in found} == {TEXTS["ben"]}
            assert {each.agent_id for each in found} == {"ben"}
    granted = service.orchestrator(
        NAME, viewer=Viewer(agent_id="ben", session_ids=frozenset("s"), project_ids=frozenset("p"))
    )
    assert "Ana" not in granted.context("canary", budget_tokens=50_000).text
    assert "Ana" not in granted.bulletin().bulletin.text
    assert "Ben's canary sings." in granted.bulletin().bulletin.text


def test_criteria_are_joined_by_and(ana: MemoryEntity, clock: FixedClock) -> None:
    old, other = ana.store([item("Old.", **IN_SESSION), item("Other.")]).stored_ids
    clock.advance(ms=1_000)
    cutoff = clock.now_ms()
    [new] = ana.store([item("New.", **IN_SESSION)]).stored_ids
    assert ana.forget(item_ids=[]) == ana.forget("2030-01-01", item_ids=()) == ana.forget(0)
    assert ana.forget(cutoff, "SessionScope", [other, new]).deleted_count == 0
    assert ana.forget(cutoff, "SessionScope", [old, other, new]).deleted_count == 1
    assert [each.memory_item_id for each in ana.list_items(session_id="s")] == [new, other]
    # A cutoff takes what was stored before it, whatever the zone and the form of the time.
    assert ana.forget("2026-01-01T00:00:00Z").deleted_count == 0
    assert ana.forget("2026-01-01T01:00:00.001+01:00").deleted_count == 1
    assert call(ana, "forget", {"cutoffDate": 4e12}) == {"deletedCount": 1}
    # What was forgotten may be said again.
    assert ana.store([item("Other.")]).stored_ids != (other,)


def test_forgetting_reaches_every_session_project_and_status(
    service: MemoryService, ana: MemoryEntity, all_of: Callable[[str], list[str]]
) -> None:
    orc = service.orchestrator(NAME, viewer=EVERYTHING)
    [first] = ana.store([item("The harbour closes at eight.")]).stored_ids
    orc.correct(first, "The harbour closes at nine.", reason="new hours")
    ana.store([item("In s.", **IN_SESSION), item("In p.", **IN_PROJECT)])
    ana.store([item("In t.", scope="SessionScope", sessionId="t")])
    assert ana.forget(scope="SessionScope", session_id="t").deleted_count == 1
    assert ana.forget(scope="ProjectScope", project_id="q").deleted_count == 0
    assert ana.forget("2030-01-01").deleted_count == 4
    assert all_of("ana") == []
    assert orc.get(first).status is MemoryStatus.RETRACTED


def test_what_is_forgotten_stays_in_the_history_with_its_reason(
    service: MemoryService, orc: Orchestrator, ana: MemoryEntity
) -> None:
    [known] = ana.store([item()]).stored_ids
    ana.forget(item_ids=[known])
    period = orc.trace(known).status_history[-1]
    assert (period.status, period.reason, period.actor) == ("retracted", "forgotten", "ana")
    orc.restore(known, reason="too soon")
    assert [each.memory_item_id for each in ana.list_items()] == [known]


def test_unknown_and_foreign_ids_count_nothing_and_tell_nothing(
    orc: Orchestrator, ana: MemoryEntity, ben: MemoryEntity, all_of: Callable[[str], list[str]]
) -> None:
    [foreign] = ben.store([item("Ben's.")]).stored_ids
    shared = orc.remember("Everybody's.")
    # An equal item of another agent is another item.
    [own] = ana.store([item("Ben's.")]).stored_ids
    assert own != foreign
    for ids in ([foreign], ["fact_none"], [shared], [foreign, shared, "x"]):
        assert ana.forget(item_ids=ids) == ana.forget(item_ids=[])
    assert all_of("ben") == ["Ben's."]
    assert orc.get(shared).status is MemoryStatus.ACTIVE


REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "cutoffDate": st.just("2030-01-01"),
        "scope": st.sampled_from(["SessionScope", "ProjectScope", "GlobalScope"]),
        "itemIds": st.just("all"),
        "sessionId": st.sampled_from(["s", "t"]),
        "projectId": st.sampled_from(["p", "q"]),
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(REQUESTS)
def test_no_forgetting_of_one_touches_another(
    service: MemoryService,
    ana: MemoryEntity,
    ben: MemoryEntity,
    all_of: Callable[[str], list[str]],
    request_: dict[str, Any],
) -> None:
    for entity in (ana, ben):
        entity.store([item("Sings.", **where) for where in WHERE])
    before = all_of("ben")
    if "itemIds" in request_:
        owner = service.orchestrator(NAME, viewer=EVERYTHING)
        request_["itemIds"] = [each.memory_id for each in owner.memories.list(limit=1_000)]
    try:
        call(ana, "forget", request_)
    except InvalidInput:
        assert not {"cutoffDate", "scope", "itemIds"} & request_.keys()
        assert len(all_of("ana")) == len(WHERE)
    assert all_of("ben") == before
