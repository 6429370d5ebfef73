"""Jobs: their schedules, leases and runs."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from memgraph.audit import anchor
from memgraph.clock import MS_PER_DAY, Clock, SystemClock
from memgraph.errors import Conflict, MemgraphError
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import CRASHED, LEASE_LOST, STOPPED, JobPlan, JobReport, JobRun, Trigger
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
    outlives: bool = False,
) -> JobRun:
    """Run a job under its lease and record it.

    A job that fails is recorded as such, not raised: see ``state`` and ``error_code``.

    Args:
        wall: the clock for the lease, which other processes share.
        outlives: record and log an error other than a MemgraphError, but do not raise it, so that a
            worker for many orchestrators continues with the others.

    Raises:
        Conflict: another process runs it, or its scheduled moment does not need a run any more.
        StorageError: the run cannot be recorded.
    """
    run_id = opened.ids.new("run_")
    try:
        with patiently():
            acquired_ms = _claim(opened, run_id, request, wall)
            with _renewed(opened, run_id, wall, acquired_ms) as is_lost:
                report, crash = _reported(opened, request, progress, stop, is_lost)
            ended = _end(opened, run_id, report)
    except KeyboardInterrupt:
        # It may come between any two steps, even right after the lease is taken or at the end.
        _give_back(opened, run_id, request.job)
        raise
    if crash is not None:
        if not (outlives and isinstance(crash, Exception)):
            raise crash
        opened.log.failure("job.crashed", crash, job=request.job.value)
    return ended


def _reported(
    opened: OpenOrchestrator,
    request: RunRequest,
    progress: Progress,
    stop: Stop,
    is_lost: Stop,
) -> tuple[JobReport, BaseException | None]:
    """Do the work of a job; return its report, and an error that is not expected of any job."""
    heard = False

    def must_stop() -> bool:
        nonlocal heard
        heard = heard or stop() or is_lost()
        return heard

    try:
        with opened.timed("job", request.job.value), usage_tally() as usage:
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
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the caller raises it after recording the run
        reason = type(error).__name__
        return JobReport(state=JobState.FAILED, error_code=CRASHED, reason=reason), error
    if is_lost():
        report = _cut_short(report, LEASE_LOST, "the lease was lost")
    elif heard and report.state is not JobState.FAILED:
        report = _cut_short(report, STOPPED, "it was asked to stop")
    return report, None


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
        at, wall_ms = opened.clock.now_ms(), wall.now_ms()
        jobs.abandon_left(transaction, at=at, wall_ms=wall_ms)
        _require_wanted(transaction, request, at)
        held_by = jobs.begin(
            transaction,
            run_id,
            request.job,
            trigger=request.trigger,
            due_at=request.due_at,
            started_at=at,
            holder=process_name(run_id),
            wall_ms=wall_ms,
            reason=None if request.session_id is None else f"session {request.session_id}",
        )
        if held_by is not None:
            raise Conflict(f"{request.job} is already running, in {held_by}", holder=held_by)
    return wall_ms


def _require_wanted(snapshot: Snapshot, request: RunRequest, now_ms: int) -> None:
    """Check that no other worker ran it between reading the schedule and taking the lease."""
    if request.due_at is None:
        return
    runs = jobs.of_last_moment(snapshot, request.job, now_ms)
    served = runs[0].due_at if runs else None
    if served is None or served < request.due_at:
        return
    next_at = schedule.next_attempt(runs)
    if served > request.due_at or next_at is None or next_at > now_ms:
        raise Conflict(f"{request.job} has already run for that time", due_at=request.due_at)


def _end(opened: OpenOrchestrator, run_id: str, report: JobReport) -> JobRun:
    now = opened.clock.now_ms()
    reason = without_root(report.reason, opened.paths.root)
    with opened.database.write() as transaction:
        jobs.end(transaction, run_id, report.model_copy(update={"reason": reason}), ended_at=now)
        ended = jobs.get(transaction, run_id)
        # By an earlier clock this run may be the oldest one, and must not be removed.
        jobs.prune(transaction, KEEP_RUNS, now, run_id)
    opened.meters.job_ended(ended.job, ended.state)
    opened.log.info("job", job=ended.job.value, state=ended.state.value, code=ended.error_code)
    return ended


def _give_back(opened: OpenOrchestrator, run_id: str, job: JobName) -> None:
    """Record that a run was interrupted, if it has begun and not ended."""
    report = _cut_short(JobReport.done({}), STOPPED, "it was interrupted")
    with opened.database.write() as transaction:
        is_ended = jobs.end(transaction, run_id, report, ended_at=opened.clock.now_ms())
    if is_ended:
        opened.meters.job_ended(job, report.state)
        opened.log.info("job", job=job.value, state=report.state.value, code=STOPPED)


def _cut_short(report: JobReport, code: str, reason: str) -> JobReport:
    ending = {"state": JobState.ABANDONED, "error_code": code, "reason": reason}
    return report.model_copy(update=ending)


def _work(
    opened: OpenOrchestrator, request: RunRequest, progress: Progress, stop: Stop
) -> JobReport:
    now_ms, actor = opened.clock.now_ms(), request.actor or request.job.value
    match request.job:
        case JobName.ENRICHMENT:
            from memgraph.operations.life.enrichment import enrich

            return enrich(opened, now_ms=now_ms, actor=actor, progress=progress, stop=stop)
        case JobName.CONSOLIDATION:
            from memgraph.operations.life.consolidation import consolidate_pending

            if request.session_id is not None:
                return _one_session(opened, request.session_id, actor, progress, stop)
            report = consolidate_pending(
                opened, now_ms=now_ms, actor=actor, progress=progress, stop=stop
            )
            return _with_summaries(opened, report, now_ms, progress, stop)
        case JobName.DECAY:
            from memgraph.operations.life.decay import decay

            return decay(opened, now_ms=now_ms, actor=actor, progress=progress, stop=stop)
        case JobName.REFLECTION:
            from memgraph.operations.life.reflection import reflect

            return reflect(opened, now_ms=now_ms, actor=actor, progress=progress, stop=stop)
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


def _one_session(
    opened: OpenOrchestrator, session_id: str, actor: str, progress: Progress, stop: Stop
) -> JobReport:
    from memgraph.operations.life.consolidation import consolidate_session

    session_report = consolidate_session(
        opened,
        session_id,
        actor=actor,
        now_ms=opened.clock.now_ms(),
        progress=progress,
        stop=stop,
    )
    report = JobReport.done(session_report.counts, session_report.rejected)
    state = JobState.DONE
    if session_report.error_code is not None:
        state = JobState.FAILED
    elif session_report.state == "unchanged":
        state = JobState.SKIPPED
    reason = session_report.reason or session_report.state
    return report.model_copy(
        update={
            "state": state,
            "error_code": session_report.error_code,
            "reason": f"session {session_id}: {reason}",
        }
    )


OVERDUE_MS = MS_PER_DAY


def plan(opened: OpenOrchestrator, job: JobName, now_ms: int) -> JobPlan:
    """Return when a job runs next, and the scheduled moment for which it must run now."""
    expression, timezone = _schedule(opened, job)
    moments: list[int | None] = []
    with opened.database.read() as snapshot:
        runs = jobs.of_last_moment(snapshot, job, now_ms)
        overdue_since = _owed(opened, snapshot, job, runs, now_ms)
    if expression:
        moments = [schedule.next_due(expression, timezone, now_ms), schedule.next_attempt(runs)]
    return JobPlan(
        job=job,
        schedule=expression,
        timezone=timezone,
        next_due_at=min((at for at in moments if at is not None and at > now_ms), default=None),
        overdue_since=overdue_since,
    )


def shortcomings(opened: OpenOrchestrator, now_ms: int) -> list[str]:
    """Return codes for missed or failed jobs.

    ``jobs.failing``: the last run of a job failed. ``jobs.overdue``: a job that a worker ran before
    was due more than a day ago. A job that no worker ever ran is not reported.
    """
    codes, before = set(), now_ms - OVERDUE_MS
    with opened.database.read() as snapshot:
        for job in JobName:
            last = jobs.last_ended(snapshot, job, now_ms)
            if last is not None and last.state is JobState.FAILED:
                codes.add("jobs.failing")
            runs = jobs.of_last_moment(snapshot, job, now_ms)
            if runs and _owed(opened, snapshot, job, runs, before) is not None:
                codes.add("jobs.overdue")
    return sorted(codes)


def _schedule(opened: OpenOrchestrator, job: JobName) -> tuple[str, str]:
    """Return the cron expression of a job, empty if it is off, and the time zone."""
    settings = opened.settings.memory.schedule
    return getattr(settings, job.value), settings.timezone


def _owed(
    opened: OpenOrchestrator,
    snapshot: Snapshot,
    job: JobName,
    runs: Sequence[JobRun],
    now_ms: int,
) -> int | None:
    """Return the moment for which a job must run, after the ``runs`` for its last moment."""
    expression, timezone = _schedule(opened, job)
    if runs:
        since = runs[0].due_at or 0
        next_at = schedule.next_attempt(runs)
        if expression and next_at is not None and next_at <= now_ms:
            # A newer moment, if there is one, replaces this one.
            return max(schedule.latest_due(expression, timezone, now_ms) or since, since)
    else:
        since = int(metadata.get(snapshot, "created_at") or 0)
        if since > now_ms:
            # Created under a clock that was ahead, so one run makes up for all.
            since = 0
    return schedule.owed(expression, timezone, since_ms=since, now_ms=now_ms)


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
