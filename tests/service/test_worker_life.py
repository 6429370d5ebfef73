"""A conversation held today is knowledge tomorrow: the worker with the real jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memgraph import MemoryKind, MemoryService, Orchestrator
from memgraph.clock import FixedClock, parse_time
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import JobRun
from memgraph.service.life.worker import Worker

EVENING = parse_time("2026-11-20T20:00:00Z")
HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(EVENING)


@pytest.fixture
def service(tmp_path: Path, clock: FixedClock) -> Iterator[MemoryService]:
    config = {"memory.storage.synchronous": "NORMAL"}
    with MemoryService(
        tmp_path / "root", clock=clock, environ={}, config=config, background=False
    ) as made:
        yield made


@pytest.fixture
def ran(service: MemoryService) -> Iterator[tuple[Worker, list[JobRun]]]:
    runs: list[JobRun] = []

    def fail(name: str, error: Exception) -> None:
        raise AssertionError(f"{name}: {error}") from error

    worker = Worker(service, ran=lambda _name, run: runs.append(run), failed=fail)
    yield worker, runs
    worker.close()


def talk(orc: Orchestrator, session_id: str, *texts: str) -> None:
    for text in texts:
        orc.save_episode(text, session_id=session_id, source_role="user")


def facts(orc: Orchestrator) -> list[str]:
    found = orc.list_memories(kinds=[MemoryKind.FACT])
    return [each.content for each in found]


def test_a_session_that_ended_is_consolidated_at_once(
    orc: Orchestrator, ran: tuple[Worker, list[JobRun]], clock: FixedClock
) -> None:
    worker, runs = ran
    talk(orc, "s-1", "I moved to Leeds last spring.", "We decided to use SQLite for the archive.")
    worker.once()
    assert (runs, facts(orc)) == ([], [])
    clock.advance(ms=60_000)
    talk(orc, "s-2", "Good evening.")
    worker.once()
    [run] = runs
    assert (run.job, run.trigger, run.state) == (
        JobName.CONSOLIDATION,
        "event",
        JobState.DONE,
    )
    assert run.reason == "session s-1: consolidated"
    assert any("SQLite" in each for each in facts(orc))
    worker.once()
    assert len(runs) == 1


def test_the_night_does_what_is_left(
    orc: Orchestrator, ran: tuple[Worker, list[JobRun]], clock: FixedClock
) -> None:
    worker, runs = ran
    talk(orc, "s-1", "We decided to use SQLite for the archive.")
    worker.once()
    clock.advance(ms=9 * HOUR_MS)
    worker.once()
    states = {each.job: each.state for each in runs}
    assert states == {
        JobName.ENRICHMENT: JobState.SKIPPED,
        JobName.CONSOLIDATION: JobState.DONE,
        JobName.DECAY: JobState.DONE,
    }
    assert {each.trigger for each in runs} == {"schedule"}
    assert any("SQLite" in each for each in facts(orc))
    assert orc.pending_embeddings() == 0
    plans = {each.job: each for each in orc.job_plans()}
    assert all(each.overdue_since is None for each in plans.values())


def test_on_sunday_the_week_is_looked_back_at(
    orc: Orchestrator, ran: tuple[Worker, list[JobRun]], clock: FixedClock
) -> None:
    worker, runs = ran
    talk(
        orc,
        "s-1",
        "We decided to use SQLite for the archive.",
        "I prefer tea to coffee.",
        "My goal is to finish the catalogue by June 2027.",
        "Nora Quill moved to Lisbon in March 2026.",
    )
    clock.advance(ms=31 * HOUR_MS)
    worker.once()
    worker.once()
    [run] = [each for each in runs if each.job is JobName.REFLECTION]
    assert (run.state, run.due_at) == (JobState.DONE, parse_time("2026-11-22T03:00:00Z"))
    [reflection] = orc.list_memories(kinds=[MemoryKind.REFLECTION])
    assert "weekly" in reflection.tags


def test_one_session_by_hand_though_it_goes_on(orc: Orchestrator) -> None:
    talk(orc, "s-1", "We decided to use SQLite for the archive.")
    run = orc.run("consolidation", session_id="s-1")
    assert (run.state, run.counts["facts"]) == (JobState.DONE, 1)
    again = orc.run("consolidation", session_id="s-1")
    assert (again.state, again.reason) == (JobState.SKIPPED, "session s-1: unchanged")
    assert [each.job for each in orc.maintain()] == [
        JobName.CONSOLIDATION,
        JobName.DECAY,
        JobName.REFLECTION,
    ]
