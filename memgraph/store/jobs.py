"""Store the runs of jobs; a running one is the lease of its runner."""

from __future__ import annotations

import re
from typing import Any, Final

import sqlalchemy as sa
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from memgraph.model.columns import unreadable
from memgraph.model.enums import JobName, JobState, Scope
from memgraph.model.jobs import LEASE_LOST, JobReport, JobRun, Trigger
from memgraph.model.tables import JobRunRow
from memgraph.rules.similarity import MEMORY_ID
from memgraph.store import files, memories, sessions
from memgraph.store.rows import fetch, first, json_text, remove, save
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.visibility import View

LEASE_MS = 60_000
"""A runner that is silent for this long loses its job to another one."""
# The number of milliseconds by which the clock may be set back without ending a fresh lease.
SLACK_MS = 10_000


def begin(
    transaction: Transaction,
    run_id: str,
    job: JobName,
    *,
    trigger: Trigger,
    due_at: int | None,
    started_at: int,
    holder: str,
    wall_ms: int,
    reason: str | None = None,
) -> str | None:
    """Record the start of a run, unless the job has a running one.

    The running row is the lease of the job: its holder has to ``renew`` it, or the next
    ``abandon_left`` ends it.

    Args:
        holder: a ``files.process_name`` with the id of the run.
        wall_ms: the time of the system clock, in milliseconds.

    Returns:
        None if it was recorded, else the holder of the running one.
    """
    current = first(transaction, _running().where(JobRunRow.job == job.value))
    if current is not None:
        return current.holder
    row = JobRunRow(
        run_id=run_id,
        job=job.value,
        trigger=trigger,
        due_at=due_at,
        started_at=started_at,
        state=JobState.RUNNING,
        holder=holder,
        renewed_at=wall_ms,
        reason=reason,
    )
    save(transaction, row)
    return None


def renew(transaction: Transaction, run_id: str, *, wall_ms: int) -> bool:
    """Renew the lease of a run; return False if it has expired or the run has ended."""
    row = first(transaction, _running().where(JobRunRow.run_id == run_id))
    if row is None or wall_ms >= _expires_at(row):
        return False
    row.renewed_at = wall_ms
    save(transaction, row)
    return True


def end(transaction: Transaction, run_id: str, report: JobReport, *, ended_at: int) -> bool:
    """Record the end of a run; return False if it was marked as abandoned before."""
    row = first(transaction, _running().where(JobRunRow.run_id == run_id))
    if row is None:
        return False
    row.ended_at, row.renewed_at = ended_at, None
    row.state, row.error_code = report.state, report.error_code
    row.counts_json = json_text(report.counts)
    row.rejected_json = json_text([item.model_dump() for item in report.rejected])
    row.reason = row.reason if report.reason is None else report.reason
    save(transaction, row)
    return True


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


def abandon_left(transaction: Transaction, *, at: int, wall_ms: int) -> None:
    """Abandon the runs that are ``left``.

    Args:
        at: the time to record as the end of the runs, in milliseconds of the orchestrator's clock.
    """
    runs = left(transaction, wall_ms=wall_ms)
    for run in runs:
        run.ended_at, run.renewed_at = max(run.started_at, at), None
        run.state, run.error_code = JobState.ABANDONED, LEASE_LOST
    save(transaction, *runs)


def _expires_at(run: JobRunRow) -> int:
    return (run.renewed_at or 0) + LEASE_MS


def _is_held(run: JobRunRow, wall_ms: int) -> bool:
    # A lease from the future was written by a clock that was ahead, and must not block until then.
    is_current = wall_ms < _expires_at(run) <= wall_ms + LEASE_MS + SLACK_MS
    return is_current and not files.is_dead(run.holder)


def get(snapshot: Snapshot, run_id: str) -> JobRun:
    """Return a run, which must exist."""
    [row] = fetch(snapshot, select(JobRunRow).where(JobRunRow.run_id == run_id))
    return _run(row)


def latest(snapshot: Snapshot, limit: int) -> list[JobRun]:
    """Return the latest runs, latest first."""
    order = (col(JobRunRow.started_at).desc(), col(JobRunRow.run_id).desc())
    return list(map(_run, fetch(snapshot, select(JobRunRow).order_by(*order).limit(limit))))


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


def _latest_first(now_ms: int) -> tuple[Any, ...]:
    """Return the order in which runs from the future count as the oldest."""
    started_at = col(JobRunRow.started_at)
    return started_at > now_ms, started_at.desc(), col(JobRunRow.run_id).desc()


def last_ended(snapshot: Snapshot, job: JobName, now_ms: int) -> JobRun | None:
    """Return a job's last run that is done or failed; runs from the future count as the oldest."""
    ended = col(JobRunRow.state).in_([JobState.DONE, JobState.FAILED])
    runs = select(JobRunRow).where(JobRunRow.job == job.value, ended)
    row = first(snapshot, runs.order_by(*_latest_first(now_ms)))
    return None if row is None else _run(row)


def prune(transaction: Transaction, keep: int, now_ms: int, but: str = "") -> None:
    """Delete the oldest ended runs over ``keep``, except those for a job's last due time.

    Runs from the future count as the oldest. The run ``but`` is kept.
    """
    # The runs for each job's last due time show which due times were missed since.
    kept = {run.run_id for job in JobName for run in of_last_moment(transaction, job, now_ms)}
    runs = select(JobRunRow).order_by(*_latest_first(now_ms)).offset(keep)
    for run in fetch(transaction, runs):
        if run.state is not JobState.RUNNING and run.run_id not in {but, *kept}:
            remove(transaction, run)


def _run(row: JobRunRow) -> JobRun:
    try:
        return JobRun.model_validate(row, from_attributes=True)
    except ValueError as error:
        raise unreadable("job_runs", row.run_id) from error


_SESSION: Final = "session "
_PROJECT: Final = "project "
_IDS: Final = re.compile(rf"\b{MEMORY_ID}\b")
# The possible ends of an id. The id of a session may contain them itself.
_ENDS: Final = re.compile(r"(?=: |, )|$")


def as_seen(snapshot: Snapshot, view: View, run: JobRun) -> JobRun:
    """Return the run without details about sessions, projects and memories the view hides."""
    if run.reason is not None and not _may_see(snapshot, view, run.reason):
        return run.model_copy(update={"reason": None, "counts": {}, "rejected": ()})
    visible_parts = tuple(part for part in run.rejected if _may_see(snapshot, view, part.where))
    return (
        run
        if len(visible_parts) == len(run.rejected)
        else run.model_copy(update={"rejected": visible_parts})
    )


def _may_see(snapshot: Snapshot, view: View, place: str) -> bool:
    ids = set(_IDS.findall(place))
    if ids and memories.existing_ids(snapshot, sorted(ids), view) != ids:
        return False
    if place.startswith(_PROJECT):
        granted = view.viewer.scope_ids(Scope.PROJECT)
        return any(prefix in granted for prefix in _beginnings(place.removeprefix(_PROJECT)))
    if not place.startswith(_SESSION):
        return True
    session_ids = sessions.registered(snapshot, _beginnings(place.removeprefix(_SESSION)))
    # If several sessions may be meant, all must be visible, so that no hidden one is disclosed.
    return bool(session_ids) and all(
        sessions.visible(snapshot, view, session_id) for session_id in session_ids
    )


def _beginnings(text: str) -> list[str]:
    """Return the possible ids at the start of a text."""
    return [text[: end.start()] for end in _ENDS.finditer(text) if end.start()]
