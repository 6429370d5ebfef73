"""Jobs: their schedules, leases and runs."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from memgraph.audit import anchor
from memgraph.clock import MS_PER_DAY, Clock, SystemClock
from memgraph.config.schema import ScheduleSettings
from memgraph.errors import Conflict, JobFailed, MemgraphError, StorageError
from memgraph.ids import RUN_PREFIX
from memgraph.log import bug_fields
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import LEASE_LOST, STOPPED, JobPlan, JobReport, JobRun, Trigger
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

    A job that fails is recorded as such, not raised: see ``state`` and ``error_code``. A bug is
    also logged.

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
        holder=process_name(),
    )
    try:
        with patiently():
            _claim(opened, row)
            with _renewed(opened, row) as is_lost:
                report = _reported(opened, row, actor or job.value, progress, stop, is_lost)
            return _end(opened, run_id, report)
    except (KeyboardInterrupt, SystemExit):
        # It may come between any two steps, even before the lease is taken or after the end. Where
        # this cannot be recorded, the lease expires.
        with suppress(StorageError):
            _end(opened, run_id, _cut_short(JobReport.done({}), STOPPED, "it was interrupted"))
        raise


def _reported(
    opened: OpenOrchestrator,
    row: JobRunRow,
    actor: str,
    progress: Progress,
    stop: Stop,
    is_lost: Stop,
) -> JobReport:
    """Do the work of a run and return its report."""
    heard = False

    def must_stop() -> bool:
        nonlocal heard
        heard = heard or stop() or is_lost()
        return heard

    now_ms = opened.clock.now_ms()
    how = {"now_ms": now_ms, "actor": actor, "progress": progress, "stop": must_stop}
    try:
        with (
            opened.meters.timed("job", row.job),
            usage_tally() as usage,
            naming_full_disk(opened.paths.root),
        ):
            report = _work(opened, row, how)
        if usage.calls:
            report = report.model_copy(update={"counts": report.counts | usage.as_counts()})
    except MemgraphError as error:
        report = JobReport.failed(error)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        report = JobReport.failed(JobFailed(f"the system refused ({name})"))
    except Exception as error:  # noqa: BLE001 - logged; a bug in a job stops no other
        opened.log.error("job.bug", **bug_fields(error))  # noqa: TRY400 - no logger of logging
        report = JobReport.failed(JobFailed(type(error).__name__))
    if not heard or report.state is JobState.FAILED:
        return report
    lost, asked = (LEASE_LOST, "the lease was lost"), (STOPPED, "it was asked to stop")
    return _cut_short(report, *(lost if is_lost() else asked))


def close_left(opened: OpenOrchestrator) -> None:
    """Mark the runs of dead processes as abandoned."""
    with opened.database.read() as snapshot:
        if not jobs.left(snapshot, wall_ms=WALL.now_ms()):
            return
    with opened.database.write() as transaction:
        abandoned = jobs.abandon_left(transaction, at=opened.clock.now_ms(), wall_ms=WALL.now_ms())
    _count(opened, *abandoned)


def _claim(opened: OpenOrchestrator, row: JobRunRow) -> None:
    """Record the start of a run, which takes the lease of its job."""
    close_left(opened)
    with opened.database.write() as transaction:
        row.started_at, row.renewed_at = opened.clock.now_ms(), WALL.now_ms()
        # Another worker may have run it between reading the schedule and now.
        if row.due_at is not None:
            schedules, job = opened.settings.memory.schedule, JobName(row.job)
            if _plan(transaction, schedules, job, row.started_at).overdue_since != row.due_at:
                raise Conflict(f"{job} has already run for that time", due_at=row.due_at)
        jobs.begin(transaction, row)


def _end(opened: OpenOrchestrator, run_id: str, report: JobReport) -> JobRun:
    """Record the end of a run, unless it has ended, and return the run.

    Raises:
        StorageError: the run was never recorded.
    """
    reason = without_root(report.reason, opened.paths.root)
    report = report.model_copy(update={"reason": reason})
    with opened.database.write() as transaction:
        run, is_new = jobs.end(transaction, run_id, report, ended_at=opened.clock.now_ms())
    if is_new:
        _count(opened, run)
    return run


def _count(opened: OpenOrchestrator, *runs: JobRun) -> None:
    """Count and log runs that have just ended, each by the process that recorded its end."""
    for run in runs:
        opened.meters.count("jobs", run.job.value, run.state.value)
        opened.log.info("job", job=run.job.value, state=run.state.value, code=run.error_code)


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


def plans(opened: OpenOrchestrator) -> list[JobPlan]:
    """Return when each job runs next, and the scheduled moment for which it must run now."""
    schedules, now_ms = opened.settings.memory.schedule, opened.clock.now_ms()
    with opened.database.read() as snapshot:
        return [_plan(snapshot, schedules, job, now_ms) for job in JobName]


def _plan(snapshot: Snapshot, schedules: ScheduleSettings, job: JobName, now_ms: int) -> JobPlan:
    expression, timezone = getattr(schedules, job.value), schedules.timezone
    since_ms, retry_at = _served(snapshot, jobs.of_last_moment(snapshot, job, now_ms), now_ms)
    next_due_at = schedule.next_due(expression, timezone, now_ms)
    if next_due_at is not None and retry_at is not None and retry_at > now_ms:
        next_due_at = min(next_due_at, retry_at)
    # One run makes up for all missed moments.
    due_at = schedule.latest_due(expression, timezone, now_ms)
    overdue_since = due_at if due_at is not None and due_at > since_ms else None
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
        expression, by_ms = getattr(schedules, job.value), now_ms - OVERDUE_MS
        due_at = schedule.latest_due(expression, schedules.timezone, by_ms)
        runs = jobs.of_last_moment(snapshot, job, now_ms)
        if runs and due_at is not None and due_at > _served(snapshot, runs, now_ms)[0]:
            codes.add("jobs.overdue")
    return sorted(codes)


def _served(snapshot: Snapshot, runs: Sequence[JobRun], now_ms: int) -> tuple[int, int | None]:
    """Return the time up to which no run is missing, and when the last moment is tried again.

    Args:
        runs: the job's runs for its last moment.
    """
    if not runs:
        created_at = int(metadata.get(snapshot, "created_at") or 0)
        # One that was created under a clock that was ahead: one run makes up for all.
        return (created_at if created_at <= now_ms else 0), None
    due_at, retry_at = runs[0].due_at or 0, schedule.retry_at(runs, now_ms)
    return (due_at - 1 if retry_at is not None and retry_at <= now_ms else due_at), retry_at


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
