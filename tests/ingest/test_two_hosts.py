"""Two hosts with one PostgreSQL database, each with a drop zone of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ingest.pipeline import IngestPipeline, Progress
from ingest.reasons import RejectionReason
from memgraph import MemoryKind, MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.operations.ingestion.ingest import ABANDONED_MS
from tests.postgres_servers import drop_schemas

TURNS = 200
TALK = "\n".join(f"{'Ann' if n % 2 else 'Bo'}: Noted, hall {n}." for n in range(TURNS))


@pytest.fixture
def hosts(
    tmp_path: Path, clock: FixedClock, postgres_url: str
) -> Iterator[tuple[Orchestrator, Orchestrator]]:
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
            for name in ("one", "two")
        ]
        one, two = (service.orchestrator("orc-1", create=True) for service in services)
        for orc in (one, two):
            orc.paths.ingest.mkdir(parents=True, exist_ok=True)
            (orc.paths.ingest / "talk.txt").write_text(TALK)
        yield one, two
    drop_schemas(postgres_url)


def outcome(orc: Orchestrator) -> tuple[str, str | None]:
    (result,) = IngestPipeline(orc).run().results
    return result.outcome, result.reason


def turns(orc: Orchestrator) -> list[str]:
    return [each.content for each in orc.memories.list(kinds=[MemoryKind.EPISODE], limit=1000)]


def test_a_content_that_two_hosts_begin_together_is_stored_once(
    hosts: tuple[Orchestrator, Orchestrator],
) -> None:
    one, two = hosts
    second: list[tuple[str, str | None]] = []

    def meanwhile(at: Progress) -> None:
        if at.steps:
            second.append(outcome(two))

    (first,) = IngestPipeline(one, progress=meanwhile).run().results
    assert first.outcome == "processed"
    assert set(second) == {("skipped", RejectionReason.BEING_STORED)}
    assert outcome(two) == ("duplicate", None)
    assert len(turns(one)) == TURNS


def test_a_host_takes_over_what_another_has_abandoned(
    hosts: tuple[Orchestrator, Orchestrator], clock: FixedClock
) -> None:
    one, two = hosts
    parts: list[Progress] = []
    pipeline = IngestPipeline(
        one, progress=lambda at: parts.extend([at] * (at.steps > 0)), stop=lambda: bool(parts)
    )
    assert pipeline.run().results[0].reason == RejectionReason.INTERRUPTED
    clock.advance(ms=ABANDONED_MS)
    assert outcome(two) == ("processed", None)
    assert outcome(one) == ("duplicate", None)
    assert len(turns(two)) == TURNS
    assert two.verify().totals == {}
