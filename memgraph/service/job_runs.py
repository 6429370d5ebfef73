"""Jobs: their schedules, leases and runs."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from memgraph.audit import anchor
from memgraph.clock import MS_PER_DAY, Clock, SystemClock
from memgraph.config.schema import ScheduleSettings
from memgraph.errors import Conflict, MemgraphError, StorageError
from memgraph.ids import RUN_PREFIX
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import CRASHED, LEASE_LOST, STOPPED, JobPlan, JobReport, JobRun, Trigger
from memgraph.model.operation import Progress, untold
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

Stop = Callable[[], bool]
WALL: Clock = SystemClock()
"""The clock of leases, which processes share; never that of an orchestrator."""


def run(
    opened: OpenOrchestrator,
    job: JobName,
    *,
    trigger: Trigger = "manual",
    due_at: int | None = None,
    session_id: str | None = None,
    actor: str | None = None,
    progress: Progress = untold,
    stop: Stop = lambda: False,
) -> JobRun:
    """Run a job under its lease and record it.

    A job that fails with a MemgraphError is recorded as such, not raised: see ``state`` and
    ``error_code``. Any other error is recorded and raised.

    Args:
        due_at: the scheduled moment of the run, milliseconds; None: it is not scheduled.
        session_id: the only session to consolidate; None: all.
        actor: the name in the journal; None: the job itself.

    Raises:
        Conflict: another process runs it, or its scheduled moment does not need a run any more.
        StorageError: the run cannot be recorded.
    """
    run_id = opened.ids.new(RUN_PREFIX)
    row = JobRunRow(
        run_id=run_id,
        job=job.value,
        session_id=session_id,
        trigger=trigger,
        due_at=due_at,
        state=JobState.RUNNING,
        holder=process_name(run_id),
    )
    try:
        with patiently():
            _claim(opened, row)
            with _renewed(opened, row) as is_lost:
                report, crash = _reported(opened, row, actor or job.value, progress, stop, is_lost)
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
    row: JobRunRow,
    actor: str,
    progress: Progress,
    stop: Stop,
    is_lost: Stop,
) -> tuple[JobReport, Exception | None]:
    """Do the work of a run; return its report, and the unexpected error that ended it."""
    heard, crash = False, None

    def must_stop() -> bool:
        nonlocal heard
        heard = heard or stop() or is_lost()
        return heard

    how = {
        "now_ms": opened.clock.now_ms(),
        "actor": actor,
        "progress": progress,
        "stop": must_stop,
    }
    try:
        with (
            opened.meters.timed("job", row.job),
            usage_tally() as usage,
            naming_full_disk(opened.paths.root),
        ):
            report = _work(opened, row, how)
        if usage.calls:
            counts = {**report.counts, **usage.as_counts()}
            report = report.model_copy(update={"counts": counts})
    except MemgraphError as error:
        report = JobReport.failed(error)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        report = _failed("job.io", f"the system refused ({name})")
    except Exception as error:  # noqa: BLE001 - raised once the run is recorded
        crash, report = error, _failed(CRASHED, type(error).__name__)
    if is_lost():
        report = _cut_short(report, LEASE_LOST, "the lease was lost")
    elif heard and report.state is not JobState.FAILED:
        report = _cut_short(report, STOPPED, "it was asked to stop")
    return report, crash


def close_left(opened: OpenOrchestrator) -> None:
    """Mark the runs of dead processes as abandoned."""
    with opened.database.read() as snapshot:
        if not jobs.left(snapshot, wall_ms=WALL.now_ms()):
            return
    with opened.database.write() as transaction:
        abandoned = jobs.abandon_left(transaction, at=opened.clock.now_ms(), wall_ms=WALL.now_ms())
    _count(opened, abandoned)


def _claim(opened: OpenOrchestrator, row: JobRunRow) -> None:
    """Record the start of a run, which takes the lease of its job."""
    with opened.database.write() as transaction:
        row.started_at, row.renewed_at = opened.clock.now_ms(), WALL.now_ms()
        # Another worker may have run it between reading the schedule and now.
        if row.due_at is not None:
            schedules, job = opened.settings.memory.schedule, JobName(row.job)
            if plan(transaction, schedules, job, row.started_at).overdue_since != row.due_at:
                raise Conflict(f"{job} has already run for that time", due_at=row.due_at)
        abandoned = jobs.abandon_left(transaction, at=row.started_at, wall_ms=row.renewed_at)
        held_by = jobs.begin(transaction, row)
        if held_by is not None:
            raise Conflict(f"{row.job} is already running, in {held_by}", holder=held_by)
    _count(opened, abandoned)


def _end(opened: OpenOrchestrator, run_id: str, report: JobReport) -> JobRun | None:
    """Record the end of a run, unless it has ended; return the run, or None if it never began."""
    reason = without_root(report.reason, opened.paths.root)
    report = report.model_copy(update={"reason": reason})
    with opened.database.write() as transaction:
        run, is_new = jobs.end(transaction, run_id, report, ended_at=opened.clock.now_ms())
    if run is not None and is_new:
        _count(opened, [run])
    return run


def _count(opened: OpenOrchestrator, runs: Iterable[JobRun]) -> None:
    """Count and log runs that have just ended, each by the process that recorded its end."""
    for run in runs:
        opened.meters.count("jobs", run.job.value, run.state.value)
        opened.log.info("job", job=run.job.value, state=run.state.value, code=run.error_code)


def _failed(code: str, reason: str) -> JobReport:
    return JobReport(state=JobState.FAILED, error_code=code, reason=reason)


def _cut_short(report: JobReport, code: str, reason: str) -> JobReport:
    ending = {"state": JobState.ABANDONED, "error_code": code, "reason": reason}
    return report.model_copy(update=ending)


def _work(opened: OpenOrchestrator, row: JobRunRow, how: dict[str, Any]) -> JobReport:
    match row.job:
        case JobName.ENRICHMENT:
            from memgraph.operations.life.enrichment import enrich

            return enrich(opened, **how)
        case JobName.CONSOLIDATION:
            from memgraph.operations.life.consolidation import consolidate

            return consolidate(opened, row.session_id, **how)
        case JobName.DECAY:
            from memgraph.operations.life.decay import decay

            return decay(opened, **how)
        case JobName.REFLECTION:
            from memgraph.operations.life.reflection import reflect

            return reflect(opened, **how)
        case _:
            return _verify(opened, how["progress"], how["stop"])


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
    return JobReport.done(
        {"findings": report.totals.total(), **report.checked},
        reason=f"found {codes}; run: memgraph verify",
    )


OVERDUE_MS = MS_PER_DAY


def plan(snapshot: Snapshot, schedules: ScheduleSettings, job: JobName, now_ms: int) -> JobPlan:
    """Return when a job runs next, and the scheduled moment for which it must run now."""
    expression, timezone = getattr(schedules, job.value), schedules.timezone
    runs, since_ms = _history(snapshot, job, now_ms)
    next_due_at = schedule.next_due(expression, timezone, now_ms) if expression else None
    retry_at = schedule.retry_at(runs, now_ms)
    if next_due_at is not None and retry_at is not None and retry_at > now_ms:
        next_due_at = min(next_due_at, retry_at)
    return JobPlan(
        job=job,
        schedule=expression,
        timezone=timezone,
        next_due_at=next_due_at,
        overdue_since=schedule.owed(expression, timezone, since_ms=since_ms, now_ms=now_ms),
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
        runs, since_ms = _history(snapshot, job, now_ms)
        expression, by_ms = getattr(schedules, job.value), now_ms - OVERDUE_MS
        if runs and schedule.owed(expression, schedules.timezone, since_ms=since_ms, now_ms=by_ms):
            codes.add("jobs.overdue")
    return sorted(codes)


def _history(snapshot: Snapshot, job: JobName, now_ms: int) -> tuple[list[JobRun], int]:
    """Return a job's runs for its last moment, and the time up to which no run is missing."""
    runs = jobs.of_last_moment(snapshot, job, now_ms)
    since_ms = schedule.served_until(runs, now_ms)
    if since_ms is None:
        since_ms = int(metadata.get(snapshot, "created_at") or 0)
        if since_ms > now_ms:
            # Created under a clock that was ahead, so one run makes up for all.
            since_ms = 0
    return runs, since_ms


RENEWALS = 3
"""The number of renewals within the lifetime of a lease."""


@contextmanager
def _renewed(opened: OpenOrchestrator, row: JobRunRow) -> Iterator[Stop]:
    """Renew the lease of a run that was begun, for the time of the block.

    Yields:
        A function that returns True if another process may have the lease by now; also right after
        a suspend.
    """
    expires_ms, ended = (row.renewed_at or 0) + jobs.LEASE_MS, threading.Event()

    def is_lost() -> bool:
        return WALL.now_ms() >= expires_ms

    def renew() -> None:
        nonlocal expires_ms
        while not ended.wait(jobs.LEASE_MS / 1000 / RENEWALS) and not is_lost():
            try:
                # Not durable: by the end of a power failure the lease has expired anyway.
                with opened.database.write(durable=False) as transaction:
                    now = WALL.now_ms()
                    is_renewed = jobs.renew(transaction, row.run_id, wall_ms=now)
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
