"""Jobs: their schedules, leases and runs."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from memgraph.audit import anchor
from memgraph.clock import MS_PER_DAY, Clock, SystemClock
from memgraph.config.schema import ScheduleSettings
from memgraph.errors import Conflict, MemgraphError, StorageError
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import CRASHED, LEASE_LOST, STOPPED, JobPlan, JobReport, JobRun, Trigger
from memgraph.model.tables import JobRunRow
from memgraph.paths import naming_full_disk
from memgraph.providers.usage import usage_tally
from memgraph.rules import schedule
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.service.sanitizer import without_root
from memgraph.store import jobs, metadata
from memgraph.store.engine import patiently
from memgraph.store.files import process_name
from memgraph.store.snapshot import Snapshot

Progress = Callable[[str, int, int], None]
Stop = Callable[[], bool]
WALL = SystemClock()
KEEP_RUNS = 1_000
"""The number of finished runs kept."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request for a run.

    Attributes:
        due_at: the scheduled moment of the run, milliseconds; None: it is not scheduled.
        session_id: the only session to consolidate; None: all.
        actor: the name in the journal; None: the job itself.
    """

    job: JobName
    trigger: Trigger = "manual"
    due_at: int | None = None
    session_id: str | None = None
    actor: str | None = None


def run(
    opened: OpenOrchestrator,
    request: RunRequest,
    *,
    progress: Progress = lambda _part, _done, _total: None,
    stop: Stop = lambda: False,
    wall: Clock = WALL,
) -> JobRun:
    """Run a job under its lease and record it.

    A job that fails with a MemgraphError is recorded as such, not raised: see ``state`` and
    ``error_code``. Any other error is recorded and raised.

    Args:
        wall: the clock for the lease, which other processes share.

    Raises:
        Conflict: another process runs it, or its scheduled moment does not need a run any more.
        StorageError: the run cannot be recorded.
    """
    run_id, crash = opened.ids.new("run_"), None
    try:
        with patiently():
            acquired_ms = _claim(opened, run_id, request, wall)
            with _renewed(opened, run_id, wall, acquired_ms) as is_lost:
                try:
                    report = _reported(opened, request, progress, stop, is_lost)
                except Exception as error:  # noqa: BLE001 - raised once the run is recorded
                    crash, name = error, type(error).__name__
                    report = JobReport(state=JobState.FAILED, error_code=CRASHED, reason=name)
            ended = _end(opened, run_id, report)
    except (KeyboardInterrupt, SystemExit):
        # It may come between any two steps, even right after the lease is taken or at the end.
        _end(opened, run_id, _cut_short(JobReport.done({}), STOPPED, "it was interrupted"))
        raise
    if crash is not None:
        raise crash
    if ended is None:
        raise StorageError("the record of the run was removed meanwhile")
    return ended


def _reported(
    opened: OpenOrchestrator,
    request: RunRequest,
    progress: Progress,
    stop: Stop,
    is_lost: Stop,
) -> JobReport:
    """Do the work of a job, and return its report."""
    heard = False

    def must_stop() -> bool:
        nonlocal heard
        heard = heard or stop() or is_lost()
        return heard

    try:
        with (
            opened.timed("job", request.job.value),
            usage_tally() as usage,
            naming_full_disk(opened.paths.root),
        ):
            report = _work(opened, request, progress, must_stop)
        if usage.calls:
            counts = {**report.counts, **usage.as_counts()}
            report = report.model_copy(update={"counts": counts})
    except MemgraphError as error:
        report = JobReport.failed(error)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        report = JobReport(
            state=JobState.FAILED, error_code="job.io", reason=f"the system refused ({name})"
        )
    if is_lost():
        return _cut_short(report, LEASE_LOST, "the lease was lost")
    if heard and report.state is not JobState.FAILED:
        return _cut_short(report, STOPPED, "it was asked to stop")
    return report


def close_left(opened: OpenOrchestrator, wall: Clock = WALL) -> None:
    """Mark the runs of dead processes as abandoned."""
    with opened.database.read() as snapshot:
        if not jobs.left(snapshot, wall_ms=wall.now_ms()):
            return
    with opened.database.write() as transaction:
        jobs.abandon_left(transaction, at=opened.clock.now_ms(), wall_ms=wall.now_ms())


def _claim(opened: OpenOrchestrator, run_id: str, request: RunRequest, wall: Clock) -> int:
    """Record the start of a run; return its time by the wall clock, in milliseconds."""
    with opened.database.write() as transaction:
        at, wall_ms, due_at = opened.clock.now_ms(), wall.now_ms(), request.due_at
        run = JobRunRow(
            run_id=run_id,
            job=request.job.value,
            session_id=request.session_id,
            trigger=request.trigger,
            due_at=due_at,
            started_at=at,
            state=JobState.RUNNING,
            holder=process_name(run_id),
            renewed_at=wall_ms,
        )
        # Another worker may have run it between reading the schedule and now.
        schedules = opened.settings.memory.schedule
        if due_at is not None and _due(transaction, schedules, request.job, at) != due_at:
            raise Conflict(f"{request.job} has already run for that time", due_at=due_at)
        held_by = jobs.begin(transaction, run)
        if held_by is not None:
            raise Conflict(f"{request.job} is already running, in {held_by}", holder=held_by)
    return wall_ms


def _end(opened: OpenOrchestrator, run_id: str, report: JobReport) -> JobRun | None:
    """Record the end of a run, unless it has ended; return the run, or None if it never began."""
    now = opened.clock.now_ms()
    reason = without_root(report.reason, opened.paths.root)
    report = report.model_copy(update={"reason": reason})
    with opened.database.write() as transaction:
        is_ended = jobs.end(transaction, run_id, report, ended_at=now)
        run = jobs.get(transaction, run_id)
        jobs.prune(transaction, KEEP_RUNS, now)
    if is_ended and run is not None:
        opened.meters.job_ended(run.job, run.state)
        opened.log.info("job", job=run.job.value, state=run.state.value, code=run.error_code)
    return run


def _cut_short(report: JobReport, code: str, reason: str) -> JobReport:
    ending = {"state": JobState.ABANDONED, "error_code": code, "reason": reason}
    return report.model_copy(update=ending)


def _work(
    opened: OpenOrchestrator, request: RunRequest, progress: Progress, stop: Stop
) -> JobReport:
    now_ms = opened.clock.now_ms()
    how: dict[str, Any] = {
        "now_ms": now_ms,
        "actor": request.actor or request.job.value,
        "progress": progress,
        "stop": stop,
    }
    match request.job:
        case JobName.ENRICHMENT:
            from memgraph.operations.life.enrichment import enrich

            return enrich(opened, **how)
        case JobName.CONSOLIDATION:
            from memgraph.operations.life.consolidation import consolidate_pending

            if request.session_id is not None:
                return _one_session(opened, request.session_id, how)
            report = consolidate_pending(opened, **how)
            return _with_summaries(opened, report, now_ms, progress, stop)
        case JobName.DECAY:
            from memgraph.operations.life.decay import decay

            return decay(opened, **how)
        case JobName.REFLECTION:
            from memgraph.operations.life.reflection import reflect

            return reflect(opened, **how)
        case JobName.VERIFICATION:
            return _verify(opened, progress, stop)


def _with_summaries(
    opened: OpenOrchestrator, report: JobReport, now_ms: int, progress: Progress, stop: Stop
) -> JobReport:
    """Write the summaries of entities after a consolidation, and return the report of both.

    If the model fails at them, the consolidation is done: the report has the error as its reason,
    and the next run writes what is missing.
    """
    from memgraph.operations.life.summaries import write_summaries

    if report.state is not JobState.DONE or report.reason is not None:
        return report
    after = write_summaries(opened, now_ms=now_ms, progress=progress, stop=stop)
    if after is None:
        return report
    counts = {**after.counts, **report.counts}
    if after.error_code is not None:
        opened.log.warning("profiles.unwritten", code=after.error_code)
        return report.model_copy(update={"counts": counts, "reason": after.error_code})
    return report.model_copy(update={"counts": counts})


def _verify(opened: OpenOrchestrator, progress: Progress, stop: Stop) -> JobReport:
    """Audit the database; health reports findings until they are fixed."""
    from memgraph.operations.maintenance.maintenance import verify

    report = verify(opened, progress, stop)
    if stop():
        return JobReport.done(report.checked)
    with opened.database.write() as transaction:
        seen = metadata.last_verification(transaction).seen
        if report.ok and (head := anchor.read_durable(opened.anchor_file)) is not None:
            seen = (head.seq, head.hash)
        metadata.note_verification(transaction, opened.clock.now_ms(), report.totals, seen)
    if report.ok:
        return JobReport.done(report.checked)
    codes = ",".join(sorted(report.totals))
    opened.log.warning("verify.failed", findings=report.totals.total(), codes=codes)
    result = JobReport.done({"findings": report.totals.total(), **report.checked})
    return result.model_copy(update={"reason": f"found {codes}; run: memgraph verify"})


def _one_session(opened: OpenOrchestrator, session_id: str, how: dict[str, Any]) -> JobReport:
    from memgraph.operations.life.consolidation import consolidate_session

    session = consolidate_session(opened, session_id, **how)
    state = JobState.SKIPPED if session.state == "unchanged" else JobState.DONE
    ending = {
        "state": state if session.error_code is None else JobState.FAILED,
        "error_code": session.error_code,
        "reason": session.reason or session.state,
    }
    return JobReport.done(session.counts, session.rejected).model_copy(update=ending)


OVERDUE_MS = MS_PER_DAY


def plan(opened: OpenOrchestrator, job: JobName, now_ms: int) -> JobPlan:
    """Return when a job runs next, and the scheduled moment for which it must run now."""
    schedules = opened.settings.memory.schedule
    expression, timezone = getattr(schedules, job.value), schedules.timezone
    with opened.database.read() as snapshot:
        overdue_since = _due(snapshot, schedules, job, now_ms)
        retry_at = schedule.retry_at(jobs.of_last_moment(snapshot, job, now_ms), now_ms)
    next_due_at = schedule.next_due(expression, timezone, now_ms) if expression else None
    if next_due_at is not None and retry_at is not None and retry_at > now_ms:
        next_due_at = min(next_due_at, retry_at)
    return JobPlan(
        job=job,
        schedule=expression,
        timezone=timezone,
        next_due_at=next_due_at,
        overdue_since=overdue_since,
    )


def shortcomings(snapshot: Snapshot, schedules: ScheduleSettings, now_ms: int) -> list[str]:
    """Return codes for missed or failed jobs.

    ``jobs.failing``: the last run of a job failed. ``jobs.overdue``: a job that a worker ran before
    was due more than a day ago. A job that no worker ever ran is not reported.
    """
    codes = set()
    for job in JobName:
        last = jobs.last_ended(snapshot, job, now_ms)
        if last is not None and last.state is JobState.FAILED:
            codes.add("jobs.failing")
        due_at = _due(snapshot, schedules, job, now_ms, by=now_ms - OVERDUE_MS)
        if due_at is not None and jobs.of_last_moment(snapshot, job, now_ms):
            codes.add("jobs.overdue")
    return sorted(codes)


def _due(
    snapshot: Snapshot,
    schedules: ScheduleSettings,
    job: JobName,
    now_ms: int,
    by: int | None = None,
) -> int | None:
    """Return the last moment that no run has served yet, or None.

    Args:
        by: ignore later moments; None: those up to now count.
    """
    expression, timezone = getattr(schedules, job.value), schedules.timezone
    since = schedule.served_until(jobs.of_last_moment(snapshot, job, now_ms), now_ms)
    if since is None:
        since = int(metadata.get(snapshot, "created_at") or 0)
        if since > now_ms:
            # Created under a clock that was ahead, so one run makes up for all.
            since = 0
    by = now_ms if by is None else by
    return schedule.owed(expression, timezone, since_ms=since, now_ms=by)


RENEWALS = 3
"""The number of renewals within the lifetime of a lease."""


@contextmanager
def _renewed(
    opened: OpenOrchestrator, run_id: str, wall: Clock, acquired_ms: int
) -> Iterator[Stop]:
    """Renew the lease of a run that was begun, for the time of the block.

    Args:
        wall: the wall clock, which other processes share; not the clock of the orchestrator.
        acquired_ms: when the run was begun, by that clock.

    Yields:
        A function that returns True if another process may have the lease by now; also right after
        a suspend.
    """
    expires_ms, ended = acquired_ms + jobs.LEASE_MS, threading.Event()

    def is_lost() -> bool:
        return wall.now_ms() >= expires_ms

    def renew() -> None:
        nonlocal expires_ms
        while not ended.wait(jobs.LEASE_MS / 1000 / RENEWALS) and not is_lost():
            try:
                # Not durable: by the end of a power failure the lease has expired anyway.
                with opened.database.write(durable=False) as transaction:
                    now = wall.now_ms()
                    is_renewed = jobs.renew(transaction, run_id, wall_ms=now)
                expires_ms = now + jobs.LEASE_MS if is_renewed else 0
            except MemgraphError as error:
                # The lease is still valid for a while, and the next renewal may succeed.
                opened.log.failure("lease.renew", error)

    thread = threading.Thread(target=renew, name="memgraph-lease", daemon=True)
    thread.start()
    try:
        yield is_lost
    finally:
        ended.set()
        thread.join()
