"""A simulated year: what a person, a file or a record said stays, an unused inference goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks import year
from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.model.enums import MemoryKind, MemoryStatus
from memgraph.model.values import Memory

TALK = year.conversation(year.EXAMPLES / "conversations.jsonl")
STATED = {"a person typed", "a file or record said", "a person said in a conversation"}
ACTIVE = MemoryStatus.ACTIVE


def a_year(orc: Orchestrator, clock: FixedClock) -> None:
    """A month at a time: a run that was left out changes nothing."""
    for month in range(12):
        clock.advance(days=365 / 12)
        for job in ("enrichment", "consolidation", "decay", "reflection"):
            assert orc.jobs.run(job).state.value in ("done", "skipped"), (month, job)


def gone(orc: Orchestrator) -> list[Memory]:
    return list(orc.memories.list(statuses=[MemoryStatus.RETRACTED], limit=1_000))


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        (year.walk_through, {"a person typed", "a file or record said"}),
        (TALK, {"a person said in a conversation"}),
    ],
)
def test_nothing_that_was_stated_leaves_by_time(
    service: MemoryService,
    clock: FixedClock,
    fill: Callable[[Orchestrator], None],
    expected: set[str],
) -> None:
    orc = service.orchestrator("orc-1", create=True)
    fill(orc)
    clock.advance(days=1)
    for job in ("enrichment", "consolidation"):
        orc.jobs.run(job)
    before = {each.memory_id: each for each in orc.memories.list(limit=1_000)}
    origins = {one: year.origin_of(orc.trace(one)) for one in before}
    assert expected <= set(origins.values())
    assert orc.jobs.run("decay").counts["looked_at"] == sum(
        origin == "a machine inferred" for origin in origins.values()
    )
    a_year(orc, clock)
    left = {each.memory_id for each in gone(orc)}
    assert not {one for one in left if origins[one] in STATED}
    assert all(orc.get(one).status is ACTIVE for one in before if origins[one] in STATED)
    # Lower confidence ranks lower; what does not decay keeps all of it.
    found = orc.recall("", top_n=50, kinds=(MemoryKind.FACT,)).items
    assert all(each.effective_confidence == each.memory.confidence for each in found)
    assert orc.verify().ok


def test_an_allergy_stays_and_an_unused_inference_goes(
    service: MemoryService, clock: FixedClock
) -> None:
    orc = service.orchestrator("orc-1", create=True)
    allergy = orc.remember(year.ALLERGY, importance=100)
    inferred: dict[str, Any] = {"source": {"captured_by": "extractor"}}
    important = orc.remember("Ben seems allergic to nuts.", importance=100, **inferred)
    used, confirmed, unused, *_ = (year.remembered(orc, each) for each in year.FINDINGS)
    orc.confirm(confirmed)
    for day in range(0, 365, 10):
        clock.advance(days=10)
        if day % 20 == 0:
            assert used in orc.context("When is the build slow?").memory_ids
        orc.jobs.run("decay")
    kept = (allergy, important, confirmed, used)
    assert [orc.get(each).status for each in kept] == [ACTIVE] * 4
    last = orc.trace(unused).status_history[-1]
    assert (last.status, last.reason) == (MemoryStatus.RETRACTED, "decayed")
    before = gone(orc)
    assert orc.jobs.run("decay").counts["retired"] == 0
    assert gone(orc) == before


def test_the_table_has_a_row_for_every_store_and_origin() -> None:
    rows = year.live(year.agent, days=40)
    assert {each["origin"]: each["retired_by_time"] for each in rows}["a machine inferred"] == 3
