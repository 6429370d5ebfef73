"""Running jobs by hand and by schedule, and what is recorded of it."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from processes import wait_until
from working import INFERRED, NAME, filled, tampering

from memgraph import MemoryService, Sensitivity, Viewer
from memgraph.clock import FixedClock, parse_time
from memgraph.errors import MemgraphError, ProviderUnavailable
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import LEASE_LOST, STOPPED, JobReport, JobRun, RejectedItem
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service import job_runs as jobs
from memgraph.service.readiness import Readiness
from memgraph.service.worker import Worker
from memgraph.store import jobs as jobs_rows
from memgraph.surfaces.metrics import PrometheusMeters

ONLY_DECAY = {
    "memory.schedule.enrichment": "",
    "memory.schedule.consolidation": "",
    "memory.schedule.reflection": "",
    "memory.schedule.verification": "",
    "memory.storage.synchronous": "NORMAL",
}
MADE = parse_time("2026-11-20T12:00:00Z")
FIRST = parse_time("2026-11-21T04:00:00Z")
DAY_MS = 86_400_000

Work = Callable[[Callable[[], bool]], JobReport]


@contextmanager
def working_as(work: Work) -> Iterator[None]:
    """Every job does this instead of what it does."""

    def instead(_opened: Any, _run: Any, how: dict[str, Any]) -> JobReport:
        return work(how["stop"])

    with patch.object(jobs, "_work", instead):
        yield


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(MADE)


@pytest.fixture
def service(tmp_path: Path, clock: FixedClock) -> Iterator[MemoryService]:
    with MemoryService(
        tmp_path / "root", clock=clock, environ={}, config=ONLY_DECAY, background=False
    ) as made:
        yield made


def moved(clock: FixedClock, to: int) -> None:
    clock.advance(ms=to - clock.now_ms())


def passed(service: MemoryService) -> list[JobRun]:
    """What ended in one look of a worker."""
    ended: list[JobRun] = []
    failed: list[MemgraphError] = []
    worker = Worker(
        service,
        ran=lambda _name, run: ended.append(run),
        failed=lambda _name, error: failed.append(error),
    )
    worker.once()
    assert failed == []
    return ended


def test_a_job_by_hand_is_recorded(orc: Orchestrator, clock: FixedClock) -> None:
    orc.remember("The office is in Berlin.", source=INFERRED)
    clock.advance(days=60)
    told: list[str] = []
    run = orc.jobs.run("decay", progress=lambda part, _done, _total: told.append(part))
    assert (run.state, run.trigger, run.due_at) == (JobState.DONE, "manual", None)
    assert run.counts["retired"] == 1
    assert told
    assert list(orc.jobs.list()) == [run]


@pytest.mark.parametrize("step", ["_claim", "_work", "_end"])
def test_an_interrupt_at_any_step_leaves_no_lease(orc: Orchestrator, step: str) -> None:
    """Also when all that is there is the lease, or when all is done but the record."""
    real, calls = getattr(jobs, step), list[Any]()

    def interrupted(*given: Any) -> object:
        calls.append(given)
        done = real(*given) if step == "_claim" or len(calls) > 1 else None
        if len(calls) == 1:
            raise KeyboardInterrupt
        return done

    with patch.object(jobs, step, interrupted), pytest.raises(KeyboardInterrupt):
        orc.jobs.run("decay")
    [run] = orc.jobs.list()
    assert (run.state, run.error_code) == (JobState.ABANDONED, STOPPED)
    assert logged(orc) == [("abandoned", STOPPED)]
    assert orc.jobs.run("decay").state is JobState.DONE


def logged(orc: Orchestrator) -> list[tuple[str, str | None]]:
    """The ends of runs in the log: their state and code."""
    lines = map(json.loads, orc._service.paths(orc.name).log_file.read_text().splitlines())
    return [(each["state"], each["code"]) for each in lines if each["event"] == "job"]


def test_a_lost_lease_stops_the_run_and_its_end_is_logged_once(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = FixedClock(5_000)
    monkeypatch.setattr(jobs, "WALL", wall)

    def sleeps(stop: Callable[[], bool], *, is_taken: bool) -> JobReport:
        assert not stop()
        # As after a night in which the machine slept.
        wall.advance(days=1)
        assert stop()
        if is_taken:
            Worker(service).once()
        return JobReport.done({})

    for is_taken in (False, True):
        with working_as(partial(sleeps, is_taken=is_taken)):
            run = orc.jobs.run(JobName.DECAY)
        assert (run.state, run.error_code) == (JobState.ABANDONED, LEASE_LOST)
    assert logged(orc) == [("abandoned", LEASE_LOST)] * 2


def test_of_runs_about_hidden_sessions_only_the_end_is_told(
    service: MemoryService, orc: Orchestrator
) -> None:
    turn = {"source_role": "user", "content": "I live in Berlin."}
    orc.save_episodes([{**turn, "session_id": "open"}])
    orc.save_episodes([{**turn, "session_id": "quiet", "sensitivity": "Restricted"}])
    wide = service.orchestrator(orc.name, viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    report = JobReport.done({"facts": 1}, [RejectedItem(code="x", where="session quiet")])
    with working_as(lambda _stop: report.model_copy(update={"reason": "done"})):
        for session_id in ("open", "quiet", None):
            wide.jobs.run("consolidation", session_id=session_id)
    assert [run.rejected[0].where for run in wide.jobs.list()] == ["session quiet"] * 3
    whole, quiet, open_ = orc.jobs.list()
    for run, session_id in ((whole, None), (open_, "open")):
        assert (run.session_id, run.reason, run.counts["facts"]) == (session_id, "done", 1)
        assert [(each.code, each.where) for each in run.rejected] == [("x", "")]
    assert quiet.state is JobState.DONE
    assert (quiet.session_id, quiet.reason, quiet.counts, quiet.rejected) == (None, None, {}, ())


def test_a_due_job_runs_once_and_a_clock_that_was_ahead_switches_nothing_off(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    moved(clock, FIRST - 1)
    assert passed(service) == []
    moved(clock, FIRST)
    [run] = passed(service)
    assert (run.job, run.trigger, run.due_at) == (JobName.DECAY, "schedule", FIRST)
    assert passed(service) == []
    # Of the moments that were missed, the last one alone is made up for.
    moved(clock, FIRST + 30 * DAY_MS + 1)
    [run] = passed(service)
    assert run.due_at == FIRST + 30 * DAY_MS
    moved(clock, FIRST + 3_650 * DAY_MS)
    assert len(passed(service)) == 1
    moved(clock, FIRST + 30 * DAY_MS)
    for _ in range(3):
        clock.advance(days=1)
        assert [each.due_at for each in passed(service)] == [clock.now_ms()]
    clock.advance(days=3)
    assert service.health(orc.name)["degraded"] == ["jobs.overdue"]


def test_a_run_that_is_asked_to_stop_is_caught_up(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    moved(clock, FIRST)
    worker = Worker(service)

    def stops(stop: Callable[[], bool]) -> JobReport:
        worker.stop()
        assert stop()
        return JobReport.done({"retired": 1})

    with working_as(stops):
        worker.once()
    [run] = orc.jobs.list()
    assert (run.state, run.error_code, run.counts["retired"]) == (JobState.ABANDONED, STOPPED, 1)
    [again] = passed(service)
    assert (again.state, again.due_at) == (JobState.DONE, FIRST)


def test_a_lease_is_renewed_while_a_job_runs(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_rows, "LEASE_MS", 1_000)

    def renewed_at() -> int:
        with service.opened(orc.name) as opened, opened.database.read() as connection:
            row = connection.exec_driver_sql("SELECT renewed_at FROM job_runs").one()
        return int(row[0])

    def works(_stop: Callable[[], bool]) -> JobReport:
        begun = renewed_at()
        assert wait_until(lambda: renewed_at() > begun)
        return JobReport.done({})

    with working_as(works):
        assert orc.jobs.run("decay").state is JobState.DONE


def test_health_tells_of_a_failing_job_until_it_succeeds(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    assert service.health(orc.name)["degraded"] == []
    with working_as(lambda _stop: JobReport.failed(ProviderUnavailable("no answer"))):
        failed = orc.jobs.run("decay")
    assert (failed.error_code, failed.reason) == ("provider.unavailable", "no answer")
    assert service.health(orc.name)["degraded"] == ["jobs.failing"]
    service.forget(orc.name)
    (closed,) = Readiness(service).look().orchestrators or ()
    assert (closed.status, closed.codes) == ("degraded", ("jobs.failing",))
    clock.advance(ms=1)
    with working_as(lambda _stop: JobReport.skipped("nothing to do")):
        orc.jobs.run("decay")
    assert service.health(orc.name)["degraded"] == ["jobs.failing"]
    clock.advance(ms=1)
    orc.jobs.run("decay")
    assert service.health(orc.name)["degraded"] == []


def test_a_scheduled_run_that_met_a_full_disk_is_tried_again_after_a_minute(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    def full(_stop: object) -> JobReport:
        raise OSError(errno.ENOSPC, "no space")

    moved(clock, FIRST)
    with working_as(full):
        (failed,) = passed(service)
        assert (failed.state, failed.error_code) == (JobState.FAILED, "storage.full")
        assert passed(service) == []
    (plan,) = (each for each in orc.jobs.plans() if each.job is JobName.DECAY)
    assert (plan.next_due_at, plan.overdue_since) == (FIRST + 60_000, None)
    clock.advance(ms=60_000)
    (done,) = passed(service)
    assert (done.state, done.due_at) == (JobState.DONE, FIRST)
    assert passed(service) == []


def test_health_tells_of_a_worker_that_is_gone_but_not_of_one_that_never_was(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    clock.advance(days=20)
    assert service.health(orc.name)["degraded"] == []
    plan = next(each for each in orc.jobs.plans() if each.job is JobName.DECAY)
    assert plan.overdue_since == FIRST + 19 * DAY_MS
    assert plan.next_due_at == FIRST + 20 * DAY_MS
    passed(service)
    clock.advance(days=1)
    assert service.health(orc.name)["degraded"] == []
    clock.advance(days=1)
    assert service.health(orc.name)["degraded"] == ["jobs.overdue"]
    passed(service)
    assert service.health(orc.name)["degraded"] == []


def test_orchestrators_come_and_go_and_a_broken_one_holds_up_nobody(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    ran: list[str] = []
    failed: list[tuple[str, str]] = []
    worker = Worker(
        service,
        ran=lambda name, _run: ran.append(name),
        failed=lambda name, error: failed.append((name, error.code)),
    )
    worker.once()
    service.create("aa-broken")
    service.create("zz-new")
    service.paths("aa-broken").database.write_bytes(b"no database at all, but some bytes")
    moved(clock, FIRST)
    worker.once()
    worker.once()
    assert ran == ["orc-1", "zz-new"]
    assert [name for name, _code in failed] == ["aa-broken"]
    for each in service.paths("zz-new").memory.glob("**/*"):
        if each.is_file():
            each.unlink()
    service.paths("zz-new").memory.rename(service.paths("zz-new").directory / "gone")
    clock.advance(days=1)
    worker.once()
    assert ran == ["orc-1", "zz-new", "orc-1"]
    assert len(failed) == 1


def test_a_changed_schedule_is_heeded_by_a_worker_that_runs(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    with MemoryService(service.root, clock=clock, environ={}, background=False) as plain:
        config = plain.paths(orc.name).config_file
        off = "enrichment = ''\nconsolidation = ''\nreflection = ''\nverification = ''\n"
        config.write_text(f"[memory.schedule]\ndecay = ''\n{off}")
        ran: list[JobRun] = []
        worker = Worker(plain, ran=lambda _name, run: ran.append(run))
        moved(clock, FIRST)
        worker.once()
        assert ran == []
        config.write_text(f"[memory.schedule]\ndecay = '30 3 * * *'\n{off}")
        worker.once()
    assert [each.due_at for each in ran] == [FIRST - 30 * 60_000]


def test_what_was_made_under_a_clock_that_was_ahead_is_kept_in_order(
    service: MemoryService, clock: FixedClock
) -> None:
    service.create("early")
    clock.advance(days=-3650)
    assert [each.due_at for each in passed(service)] == [FIRST - 3651 * DAY_MS]
    assert passed(service) == []


def test_a_bug_that_one_brings_out_stops_no_other(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    service.create("zz-other")
    real = jobs._work
    ran: list[tuple[str, JobState, str | None]] = []

    def work(opened: Any, *given: Any) -> JobReport:
        if opened.paths.name == "orc-1":
            raise KeyError("secret")
        return real(opened, *given)

    worker = Worker(service, ran=lambda name, run: ran.append((name, run.state, run.reason)))
    moved(clock, FIRST)
    with patch.object(jobs, "_work", work):
        worker.once()
    assert ran == [
        ("orc-1", JobState.FAILED, "KeyError"),
        ("zz-other", JobState.DONE, None),
    ]
    log = service.paths("orc-1").log_file.read_text()
    assert "test_jobs.py:" in log
    assert "secret" not in log
    assert service.health("orc-1")["degraded"] == ["jobs.failing"]


def test_what_a_nightly_audit_finds_is_told_until_it_is_mended(tmp_path: Path) -> None:
    clock = FixedClock()

    def is_told() -> bool:
        """Whether health, readiness and the figures of a server say so; all say the same."""
        look = Readiness(service).look()
        [standing] = look.orchestrators or ()
        text, _ = PrometheusMeters().exposition(look)
        [unsound] = re.findall(rb"^memgraph_unsound_orchestrators (\S+)$", text, re.MULTILINE)
        degraded: list[str] = service.health(NAME)["degraded"]
        [told] = {
            *("verify.failed" in codes for codes in (degraded, standing.codes)),
            float(unsound) == 1,
        }
        return told

    with filled(tmp_path, clock=clock) as (service, opened, _):
        orc, worker = service.orchestrator(NAME), Worker(service)
        with tampering(opened.paths.database) as connection:
            connection.execute("UPDATE memories SET tags = '[\"edited\"]' WHERE pk = 1")
        worker.once()
        assert not is_told()
        clock.advance(days=1)
        worker.once()
        assert is_told()
        run = next(each for each in orc.jobs.list() if each.job == "verification")
        assert (run.state, run.trigger, run.counts["findings"]) == ("done", "schedule", 1)
        assert run.reason == "found table.edited; run: memgraph verify"
        orc.maintenance.accept_journal(reason="the tag is right")
        assert not is_told()
        done = orc.jobs.run("verification")
        assert (done.state, done.trigger, done.reason) == ("done", "manual", None)
        assert done.counts["memories"] == orc.verify().checked["memories"]
        assert not is_told()
        cut = orc.jobs.run("verification", stop=lambda: True)
        assert (cut.state, cut.error_code) == ("abandoned", STOPPED)
