"""Hosts with one PostgreSQL database, each with a drop zone of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ingest_runs import drop, exhaust, interrupt

import ingest.pipeline
from ingest.parse import parse_document
from ingest.pipeline import IngestPipeline, Progress
from ingest.reasons import RejectionReason
from memgraph import MemoryKind, MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.model.enums import STORED_STATUSES, MemoryStatus
from memgraph.operations.ingestion.ingest import ABANDONED_MS

TURNS = 200
TALK = "\n".join(f"{'Ann' if n % 2 else 'Bo'}: Noted, hall {n}." for n in range(TURNS))

Hosts = tuple[Orchestrator, Orchestrator, Orchestrator]


@pytest.fixture
def hosts(tmp_path: Path, clock: FixedClock, postgres_url: str) -> Iterator[Hosts]:
    with ExitStack() as stack:
        services = [
            stack.enter_context(
                MemoryService(
                    tmp_path / name,
                    config={"memory.storage.url": postgres_url},
                    clock=clock,
                    environ={},
                    background=False,
                )
            )
            for name in ("one", "two", "three")
        ]
        one, two, three = (service.orchestrator("orc-1", create=True) for service in services)
        for orc in (one, two, three):
            drop(orc, "talk.txt", TALK)
        yield one, two, three


def outcome(orc: Orchestrator) -> tuple[str, str | None]:
    (result,) = IngestPipeline(orc).run()
    return result.outcome, result.reason


def turns(orc: Orchestrator) -> dict[str, MemoryStatus]:
    """Return the ids of the stored turns with their statuses."""
    every = orc.memories.list(kinds=[MemoryKind.EPISODE], statuses=STORED_STATUSES, limit=1000)
    return {each.memory_id: each.status for each in every}


def test_a_content_that_two_hosts_begin_together_is_stored_once(hosts: Hosts) -> None:
    one, two, _ = hosts
    second: list[tuple[str, str | None]] = []

    def meanwhile(at: Progress) -> None:
        if at.steps:
            second.append(outcome(two))

    (first,) = IngestPipeline(one, progress=meanwhile).run()
    assert first.outcome == "processed"
    assert set(second) == {("skipped", RejectionReason.BEING_STORED)}
    assert outcome(two) == ("duplicate", None)
    assert len(turns(one)) == TURNS


def test_a_host_takes_over_what_another_has_abandoned_and_retracts_nothing(
    hosts: Hosts, clock: FixedClock
) -> None:
    one, two, _ = hosts
    interrupt(one)
    before = set(turns(two))
    clock.advance(ms=ABANDONED_MS)
    assert outcome(two) == ("processed", None)
    assert outcome(one) == ("duplicate", None)
    after = turns(two)
    assert before < set(after)
    assert list(after.values()) == [MemoryStatus.ACTIVE] * TURNS
    assert two.verify().totals == {}


def test_of_two_hosts_that_find_a_content_abandoned_one_takes_it_over(
    hosts: Hosts, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = hosts
    interrupt(one)
    clock.advance(ms=ABANDONED_MS)

    def meanwhile(*given: Any) -> Any:
        monkeypatch.undo()
        interrupt(two)
        return parse_document(*given)

    # The other host begins after this one has found the content abandoned.
    monkeypatch.setattr(ingest.pipeline, "parse_document", meanwhile)
    assert outcome(three) == ("skipped", RejectionReason.BEING_STORED)
    begun = turns(two)
    assert set(begun.values()) == {MemoryStatus.ACTIVE}
    # Nor does the first host give up what is another's by now.
    exhaust(one)
    assert outcome(one) == ("held", RejectionReason.HELD)
    (result,) = IngestPipeline(two).run()
    assert (result.outcome, result.resumed) == ("processed", True)
    assert outcome(three) == ("duplicate", None)
    assert set(begun) < set(turns(two))
    assert list(turns(two).values()) == [MemoryStatus.ACTIVE] * TURNS
