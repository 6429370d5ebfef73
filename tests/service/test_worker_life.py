"""A conversation held today is knowledge tomorrow: the worker with the real jobs."""

from __future__ import annotations

import threading
from errno import EMFILE
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from memgraph import MemoryKind, MemoryService, Orchestrator
from memgraph.clock import FixedClock, parse_time
from memgraph.errors import StorageError
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import STOPPED, JobReport, JobRun
from memgraph.operations.life import consolidation as consolidating
from memgraph.operations.life.consolidation import Consolidator
from memgraph.service import job_runs as jobs, pool, worker as worker_module
from memgraph.service.worker import Worker

EVENING = parse_time("2026-11-20T20:00:00Z")
HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(EVENING)


@pytest.fixture
def ran(service: MemoryService) -> tuple[Worker, list[JobRun]]:
    runs: list[JobRun] = []

    def fail(name: str, error: Exception) -> None:
        raise AssertionError(f"{name}: {error}") from error

    worker = Worker(service, ran=lambda _name, run: runs.append(run), failed=fail)
    return worker, runs


def talk(orc: Orchestrator, session_id: str, *texts: str) -> None:
    for text in texts:
        orc.save_episode(text, session_id=session_id, source_role="user")


def facts(orc: Orchestrator) -> list[str]:
    found = orc.memories.list(kinds=[MemoryKind.FACT])
    return [each.content for each in found]


def test_a_session_that_ended_is_consolidated_at_once(
    orc: Orchestrator, ran: tuple[Worker, list[JobRun]], clock: FixedClock
) -> None:
    worker, runs = ran
    talk(orc, "s-1", "I moved to Leeds last spring.", "Decision: SQLite for the archive.")
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
    assert (run.session_id, run.reason) == ("s-1", "consolidated")
    assert any("SQLite" in each for each in facts(orc))
    worker.once()
    assert len(runs) == 1


def test_the_night_does_what_is_left(
    orc: Orchestrator, ran: tuple[Worker, list[JobRun]], clock: FixedClock
) -> None:
    worker, runs = ran
    talk(orc, "s-1", "Decision: SQLite for the archive.", "Goal: finish the catalogue by June.")
    worker.once()
    clock.advance(ms=9 * HOUR_MS)
    worker.once()
    states = {each.job: each.state for each in runs}
    assert states == {
        JobName.ENRICHMENT: JobState.SKIPPED,
        JobName.CONSOLIDATION: JobState.DONE,
        JobName.DECAY: JobState.DONE,
        JobName.VERIFICATION: JobState.DONE,
    }
    assert {each.trigger for each in runs} == {"schedule"}
    assert any("SQLite" in each for each in facts(orc))
    assert orc.maintenance.pending_embeddings() == 0
    plans = {each.job: each for each in orc.jobs.plans()}
    assert all(each.overdue_since is None for each in plans.values())
    # On Sunday the week is looked back at.
    clock.advance(ms=22 * HOUR_MS)
    worker.once()
    [run] = [each for each in runs if each.job is JobName.REFLECTION]
    assert (run.state, run.due_at) == (JobState.DONE, parse_time("2026-11-22T03:00:00Z"))
    [reflection] = orc.memories.list(kinds=[MemoryKind.REFLECTION])
    assert "weekly" in reflection.tags


def pending(orc: Orchestrator) -> set[str]:
    return {each.session_id for each in orc.sessions.list(pending=True)}


def test_being_asked_to_stop_counts_as_no_attempt(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(orc, "s-1", "Decision: SQLite for the archive.")
    talk(orc, "s-2", "Good evening.")
    real = Consolidator.session
    with monkeypatch.context() as patched:
        for _ in range(2):
            worker = Worker(service)

            def stops(*given: Any, worker: Worker = worker) -> Any:
                worker.stop()
                return real(*given)

            patched.setattr(Consolidator, "session", stops)
            worker.once()
            assert orc.jobs.list(limit=1)[0].error_code == STOPPED
            assert service.health(orc.name)["degraded"] == []
    worker = Worker(service)
    worker.once()
    assert pending(orc) == {"s-2"}


def test_a_page_waits_for_recalls_of_any_orchestrator(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(orc, "s-1", "Decision: SQLite for the archive.")
    talk(orc, "s-2", "Good evening.")
    other = service.orchestrator("orc-2", create=True)
    monkeypatch.setattr(consolidating, "PATIENCE_S", 60.0)
    worker = Worker(service)
    working = threading.Thread(target=worker.once)
    with service.opened(other.name) as opened, opened.recalls:
        working.start()
        working.join(0.3)
        assert working.is_alive()
        assert facts(orc) == []
    working.join(30.0)
    assert len(facts(orc)) == 1


def test_many_sessions_wait_quietly_while_another_process_consolidates(
    service: MemoryService, orc: Orchestrator, ran: tuple[Worker, list[JobRun]]
) -> None:
    worker, runs = ran
    for number in range(12):
        talk(orc, f"s-{number}", "Good evening.")
        orc.sessions.end(f"s-{number}")

    def work(*_: object) -> JobReport:
        with patch.object(worker, "_visit", wraps=worker._visit) as visit:
            for _round in range(6):
                worker.once()
        assert visit.call_count <= 2
        assert runs == []
        return JobReport.done({})

    with patch.object(jobs, "_work", work):
        orc.jobs.run(JobName.CONSOLIDATION)
    worker.once()
    worker.once()
    assert pending(orc) == set()


def test_a_session_that_fails_is_left_to_the_nightly_job(
    service: MemoryService, orc: Orchestrator, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(orc, "s-1", "Decision: SQLite for the archive.")
    orc.sessions.end("s-1")
    worker = Worker(service)
    with monkeypatch.context() as patched:
        patched.setattr(Consolidator, "session", Mock(side_effect=StorageError("full")))
        worker.once()
        talk(orc, "s-2", "Good evening.")
        worker.once()
    assert [run.state for run in orc.jobs.list()] == [JobState.FAILED]
    clock.advance(ms=1)
    talk(orc, "s-1", "It is on the second disk.")
    orc.sessions.end("s-1")
    worker.once()
    assert pending(orc) == {"s-2"}


def test_due_jobs_come_first_and_many_sessions_keep_nobody_waiting(
    service: MemoryService,
    orc: Orchestrator,
    ran: tuple[Worker, list[JobRun]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_module, "SESSIONS_AT_ONCE", 2)
    worker, runs = ran
    other = service.orchestrator("zz-other", create=True)
    for each in (orc, other):
        for number in range(6):
            talk(each, f"s-{number}", "Good evening.")
    worker.once()
    assert len(runs) == 4
    assert len(pending(other)) == 4
    worker.once()
    worker.once()
    assert (pending(orc), pending(other)) == ({"s-5"}, {"s-5"})


def test_what_ends_while_the_worker_looks_elsewhere_is_not_missed(
    service: MemoryService, orc: Orchestrator, ran: tuple[Worker, list[JobRun]]
) -> None:
    worker, runs = ran
    talk(orc, "s-1", "Decision: SQLite for the archive.")
    real = worker._again

    def again(*given: Any) -> int:
        told = real(*given)
        if not runs:
            # By another process, after the last look at what there is to do.
            orc.sessions.end("s-1")
        return told

    with patch.object(worker, "_again", again):
        worker.once()
        worker.once()
    assert [each.trigger for each in runs] == ["event"]


def test_who_has_nothing_to_do_is_not_looked_at_again(
    tmp_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MAX_OPEN", 1)
    config = {"memory.embedding.provider": "none"}
    with MemoryService(
        tmp_path, clock=clock, environ={}, config=config, background=False
    ) as crowded:
        for name in ("a", "b", "c"):
            talk(crowded.orchestrator(name, create=True), "s-1", "Good evening.")
            crowded.orchestrator(name).sessions.end("s-1")
        worker = Worker(crowded)
        for _ in range(3):
            worker.once()
        with patch.object(worker, "_visit") as visit:
            worker.once()
    assert visit.call_count == 0


def test_a_root_that_cannot_be_listed_for_a_moment_ends_no_worker(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    worker = Worker(service, failed=lambda name, error: looked.append(f"{name}: {error.code}"))
    worker.once()
    with monkeypatch.context() as failing:
        failing.setattr(service, "orchestrators", Mock(side_effect=OSError(EMFILE, "")))
        failing.setattr(service, "located", Mock(side_effect=OSError(EMFILE, "")))
        worker.once()
    worker.once()
    assert looked == [f"{orc.name}: {StorageError.code}"]
