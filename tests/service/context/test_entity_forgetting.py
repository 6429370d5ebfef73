"""What an agent forgets: what meets every criterion, and nothing of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_items import EVERYTHING, IN_PROJECT, IN_SESSION, NAME, WHERE, call, item
from hypothesis import HealthCheck, given, settings, strategies as st

from memgraph import MemoryEntity, MemoryService, MemoryStatus, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import InvalidInput


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
