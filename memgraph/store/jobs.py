"""Store the runs of jobs; a running one is the lease of its runner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import sqlalchemy as sa
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from memgraph.errors import Conflict, StorageError
from memgraph.model.columns import unreadable
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import LEASE_LOST, JobReport, JobRun
from memgraph.model.tables import JobRunRow
from memgraph.store import files, sessions, tables
from memgraph.store.rows import fetch, first, json_text, remove, save
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.visibility import View

LEASE_MS = 60_000
"""A runner that is silent for this long loses its job to another one."""
# The number of milliseconds by which the clock may be set back without ending a fresh lease.
SLACK_MS = 10_000
KEEP_RUNS = 1_000
"""The number of finished runs kept."""


def begin(transaction: Transaction, run: JobRunRow) -> None:
    """Record the start of a run.

    The running row is the lease of the job: its holder has to ``renew`` it, or another process
    abandons it, see ``abandon_left``.

    Args:
        run: its ``holder`` is a ``files.process_name``, and its ``renewed_at`` the time of the
            system clock, in milliseconds.

    Raises:
        Conflict: the job has a running one.
    """
    current = first(transaction, _running().where(JobRunRow.job == run.job))
    if current is not None:
        message = f"{run.job} is already running, in {current.holder}"
        raise Conflict(message, holder=current.holder)
    save(transaction, run)


def renew(transaction: Transaction, run_id: str, *, wall_ms: int) -> bool:
    """Renew the lease of a run; return False if the run has ended, or was abandoned."""
    row = first(transaction, _running().where(JobRunRow.run_id == run_id))
    if row is not None:
        row.renewed_at = wall_ms
        save(transaction, row)
    return row is not None


def end(
    transaction: Transaction, run_id: str, report: JobReport, *, ended_at: int
) -> tuple[JobRun, bool]:
    """Record the end of a run, unless it was abandoned before, and delete the oldest runs.

    Returns:
        The run, and True if it had not ended before.

    Raises:
        StorageError: the run was never recorded.
    """
    row = first(transaction, select(JobRunRow).where(JobRunRow.run_id == run_id))
    if row is None:
        raise StorageError("the run was never recorded", run_id=run_id)
    is_running = row.state is JobState.RUNNING
    if is_running:
        row.ended_at, row.renewed_at = ended_at, None
        row.state, row.error_code, row.reason = report.state, report.error_code, report.reason
        row.counts_json = json_text(report.counts)
        row.rejected_json = json_text([item.model_dump() for item in report.rejected])
        save(transaction, row)
    prune(transaction, KEEP_RUNS, ended_at)
    return _run(row), is_running


def _running() -> SelectOfScalar[JobRunRow]:
    return select(JobRunRow).where(JobRunRow.state == JobState.RUNNING)


def is_any_running(snapshot: Snapshot) -> bool:
    """Return True if any run is recorded as running."""
    return first(snapshot, _running()) is not None


def left(snapshot: Snapshot, *, wall_ms: int) -> list[JobRunRow]:
    """Return the unfinished runs whose lease has expired or whose process is known to be dead.

    Args:
        wall_ms: the time of the system clock, in milliseconds.
    """
    return [run for run in fetch(snapshot, _running()) if not _is_held(run, wall_ms)]


def abandon_left(transaction: Transaction, *, at: int, wall_ms: int) -> list[JobRun]:
    """Abandon the runs that are ``left``, and return them.

    Args:
        at: the time to record as the end of the runs, in milliseconds of the orchestrator's clock.
    """
    runs = left(transaction, wall_ms=wall_ms)
    for run in runs:
        run.ended_at, run.renewed_at = max(run.started_at, at), None
        run.state, run.error_code = JobState.ABANDONED, LEASE_LOST
    save(transaction, *runs)
    return list(map(_run, runs))


def _is_held(run: JobRunRow, wall_ms: int) -> bool:
    # A lease from the future was written by a clock that was ahead, and must not block until then.
    is_current = -SLACK_MS <= wall_ms - (run.renewed_at or 0) < LEASE_MS
    return is_current and not files.is_dead(run.holder)


_LATEST_FIRST: Final = (col(JobRunRow.started_at).desc(), col(JobRunRow.run_id).desc())


def latest(snapshot: Snapshot, limit: int) -> list[JobRun]:
    """Return the latest runs, latest first."""
    runs = select(JobRunRow).order_by(*_LATEST_FIRST).limit(limit)
    return list(map(_run, fetch(snapshot, runs)))


def of_last_moment(snapshot: Snapshot, job: JobName, now_ms: int) -> list[JobRun]:
    """Return the runs for a job's last due time up to now, in the order of their start."""
    # A run recorded by a clock that was ahead must not count for earlier due times.
    due = select(sa.func.max(JobRunRow.due_at)).where(JobRunRow.job == job.value)
    last = first(snapshot, due.where(col(JobRunRow.due_at) <= now_ms))
    if last is None:
        return []
    runs = select(JobRunRow).where(JobRunRow.job == job.value, JobRunRow.due_at == last)
    order = (col(JobRunRow.started_at), col(JobRunRow.run_id))
    return list(map(_run, fetch(snapshot, runs.order_by(*order))))


def last_ended(snapshot: Snapshot, job: JobName, now_ms: int) -> JobRun | None:
    """Return a job's last run, started up to now, that is done or failed."""
    ended = col(JobRunRow.state).in_([JobState.DONE, JobState.FAILED])
    runs = select(JobRunRow).where(JobRunRow.job == job.value, ended)
    runs = runs.where(col(JobRunRow.started_at) <= now_ms)
    row = first(snapshot, runs.order_by(*_LATEST_FIRST))
    return None if row is None else _run(row)


def prune(transaction: Transaction, keep: int, now_ms: int) -> None:
    """Delete the oldest ended runs over ``keep``, except those for a job's last due time.

    Runs from the future, of a clock that was ahead, count as the oldest.
    """
    # The runs for each job's last due time show which due times were missed since.
    kept = {run.run_id for job in JobName for run in of_last_moment(transaction, job, now_ms)}
    order = (col(JobRunRow.started_at) > now_ms, *_LATEST_FIRST)
    runs = select(JobRunRow).order_by(*order).offset(keep)
    for run in fetch(transaction, runs):
        if run.state is not JobState.RUNNING and run.run_id not in kept:
            remove(transaction, run)


def _run(row: JobRunRow) -> JobRun:
    try:
        return JobRun.model_validate(row, from_attributes=True)
    except ValueError as error:
        raise unreadable("job_runs", row.run_id) from error


def as_seen(snapshot: Snapshot, view: View, runs: Iterable[JobRun]) -> list[JobRun]:
    """Return runs without what the view hides.

    Of a run for a hidden session remain its time and state. The places of rejected items, which
    name sessions, projects and memories, are only for those from whom no memory is hidden.
    """
    m = tables.memories.alias("m")
    is_hidden = sa.case((view.where(m), 0), else_=1) == 1
    query = sa.select(sa.literal(1)).where(sa.exists().where(is_hidden))
    sees_all = snapshot.scalar(query, view.params) is None
    seen = []
    for run in runs:
        update: dict[str, Any] = {}
        if not sees_all:
            items = [item.model_copy(update={"where": ""}) for item in run.rejected]
            update["rejected"] = tuple(items)
        if run.session_id and sessions.visible(snapshot, view, run.session_id) is None:
            update = {"session_id": None, "reason": None, "counts": {}, "rejected": ()}
        seen.append(run.model_copy(update=update))
    return seen
