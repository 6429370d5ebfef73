"""Store the runs of jobs, and the leases of their runners."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from memgraph.model.enums import JobName, JobState, Scope
from memgraph.model.jobs import LEASE_LOST, JobReport, JobRun, Trigger
from memgraph.rules.similarity import MEMORY_ID
from memgraph.store import files, memories, metadata, sessions, tables
from memgraph.store.rows import json_text, unreadable
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import Column, greatest, prepared, replacing, value
from memgraph.store.visibility import View

# Leases: exclusive rights for a limited time, shared between processes.


# The number of milliseconds by which the clock may be set back without ending a fresh lease.
SLACK_MS = 10_000


def _is_live() -> Column:
    """Return the SQL condition that a lease is valid, with the parameter ``wall_ms``."""
    # A lease from the future was written by a clock that was ahead, and must not block until then.
    lease, wall_ms = tables.leases.c, value("wall_ms")
    return (lease.expires_at > wall_ms) & (
        lease.acquired_at <= wall_ms.op("+")(sa.literal(SLACK_MS))
    )


@prepared
def _held() -> sa.Select[Any]:
    lease = tables.leases.c
    return sa.select(lease.holder).where(lease.name == value("name"), _is_live())


@prepared
def _take() -> sa.Insert:
    return replacing(tables.leases)


def acquire(
    transaction: Transaction, name: str, holder: str, *, wall_ms: int, lease_ms: int
) -> str | None:
    """Take a lease that is free, has expired or is a dead process's, in the caller's transaction.

    Args:
        holder: a unique ``files.process_name``, different for each time the lease is taken.
        wall_ms: the time of the system clock, in milliseconds.
        lease_ms: the duration of the lease, in milliseconds.

    Returns:
        None if it was taken, else the current holder.
    """
    current: str | None = _held().scalar(transaction, name=name, wall_ms=wall_ms)
    if current is None or files.is_dead(current):
        current = None
        times = {"acquired_at": wall_ms, "expires_at": wall_ms + lease_ms}
        _take().write(transaction, times, name=name, holder=holder)
    return current


@prepared
def _renew() -> sa.Update:
    lease, now = tables.leases, value("wall_ms")
    conditions = (lease.c.name == value("lease"), lease.c.holder == value("own"))
    new_times = {"acquired_at": now, "expires_at": value("until")}
    return sa.update(lease).where(*conditions, lease.c.expires_at > now).values(new_times)


def renew(transaction: Transaction, name: str, holder: str, *, wall_ms: int, lease_ms: int) -> bool:
    """Extend a lease; return False if it has expired or belongs to another holder."""
    renewed = _renew().write(
        transaction, lease=name, own=holder, wall_ms=wall_ms, until=wall_ms + lease_ms
    )
    return bool(renewed)


@prepared
def _release() -> sa.Delete:
    lease = tables.leases
    conditions = (lease.c.name == value("name"), lease.c.holder == value("holder"))
    return sa.delete(lease).where(*conditions)


def release(transaction: Transaction, name: str, holder: str) -> None:
    """Release a lease, unless it belongs to another holder by now."""
    _release().write(transaction, name=name, holder=holder)


@prepared
def _sweep() -> sa.Delete:
    return sa.delete(tables.leases).where(~_is_live())


@prepared
def _holders() -> sa.Select[Any]:
    return sa.select(tables.leases.c.name, tables.leases.c.holder)


def dead(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Return the name and the holder of each lease whose holder is known to be dead."""
    return [(name, holder) for name, holder in _holders().rows(snapshot) if files.is_dead(holder)]


def remove_ended(transaction: Transaction, *, wall_ms: int) -> None:
    """Remove leases that have expired, are from the future, or are held by dead processes."""
    _sweep().write(transaction, wall_ms=wall_ms)
    for name, holder in dead(transaction):
        release(transaction, name, holder)


_FIELDS = (
    *("run_id", "job", "trigger", "due_at", "started_at", "ended_at", "state", "holder"),
    *("counts", "rejected", "error_code", "reason"),
)


def _runs() -> sa.Select[Any]:
    return sa.select(*(tables.job_runs.c[name] for name in _FIELDS))


def _is_running() -> Column:
    return tables.job_runs.c.state == JobState.RUNNING


def _is_orphaned() -> Column:
    """Return the SQL condition that a running run has no valid lease, with ``wall_ms``."""
    # A process at work keeps renewing its lease.
    live_holders = sa.select(tables.leases.c.holder).where(_is_live())
    return _is_running() & tables.job_runs.c.holder.not_in(live_holders)


def _latest_first() -> tuple[Column, ...]:
    """Return the order in which runs from the future count as the oldest, with ``now``."""
    run = tables.job_runs.c
    return run.started_at > value("now"), run.started_at.desc(), run.run_id.desc()


@prepared
def _begin() -> sa.Insert:
    row = {name: value(name) for name in (*_FIELDS[:5], "holder", "reason")}
    return sa.insert(tables.job_runs).values(row | {"state": JobState.RUNNING})


def begin(
    transaction: Transaction,
    run_id: str,
    job: JobName,
    *,
    trigger: Trigger,
    due_at: int | None,
    started_at: int,
    holder: str,
    reason: str | None = None,
) -> None:
    """Record the start of a run."""
    _begin().write(
        transaction,
        run_id=run_id,
        job=job.value,
        trigger=trigger,
        due_at=due_at,
        started_at=started_at,
        holder=holder,
        reason=reason,
    )


@prepared
def _end() -> sa.Update:
    run = tables.job_runs
    outcome = {name: value(f"its_{name}") for name in (*_FIELDS[5:7], *_FIELDS[8:11])}
    reason = sa.func.coalesce(value("its_reason"), run.c.reason)
    ended = sa.update(run).where(run.c.run_id == value("run"), _is_running())
    return ended.values(outcome | {"reason": reason})


def end(transaction: Transaction, run_id: str, report: JobReport, *, ended_at: int) -> bool:
    """Record the end of a run; return False if it was marked as abandoned before."""
    ended = _end().write(
        transaction,
        run=run_id,
        its_ended_at=ended_at,
        its_state=report.state.value,
        its_counts=json_text(report.counts),
        its_rejected=json_text([item.model_dump() for item in report.rejected]),
        its_error_code=report.error_code,
        its_reason=report.reason,
    )
    return bool(ended)


@prepared
def _any_running(orphaned: bool) -> sa.Select[Any]:
    return (
        sa.select(tables.job_runs.c.run_id)
        .where(_is_orphaned() if orphaned else _is_running())
        .limit(1)
    )


def is_any_running(snapshot: Snapshot) -> bool:
    """Return True if any run is recorded as running."""
    return _any_running(orphaned=False).row(snapshot) is not None


def has_orphaned(snapshot: Snapshot, *, wall_ms: int) -> bool:
    """Return True if any unfinished run has no valid lease."""
    return _any_running(orphaned=True).row(snapshot, wall_ms=wall_ms) is not None


@prepared
def _abandon_orphaned() -> sa.Update:
    run = tables.job_runs
    abandoned = {
        "ended_at": greatest(run.c.started_at, value("at")),
        "state": JobState.ABANDONED,
        "error_code": LEASE_LOST,
    }
    return sa.update(run).where(_is_orphaned()).values(abandoned)


def abandon_orphaned(transaction: Transaction, *, at: int, wall_ms: int) -> int:
    """Mark unfinished runs without a valid lease as abandoned; return their number.

    Args:
        at: the time to record as their end, in milliseconds of the orchestrator's clock.
        wall_ms: the time of the system clock, which decides whether leases have expired.
    """
    return _abandon_orphaned().write(transaction, at=at, wall_ms=wall_ms)


@prepared
def _get() -> sa.Select[Any]:
    return _runs().where(tables.job_runs.c.run_id == value("run_id"))


def get(snapshot: Snapshot, run_id: str) -> JobRun:
    """Return a run, which must exist."""
    return _run(_get().row(snapshot, run_id=run_id))


@prepared
def _latest() -> sa.Select[Any]:
    run = tables.job_runs.c
    return _runs().order_by(run.started_at.desc(), run.run_id.desc()).limit(value("limit"))


def latest(snapshot: Snapshot, limit: int) -> list[JobRun]:
    """Return the latest runs, latest first."""
    return _latest().mapped(_run, snapshot, limit=limit)


@prepared
def _of_moment() -> sa.Select[Any]:
    run = tables.job_runs.c
    due = (run.job == value("job"), run.due_at == value("due_at"))
    return _runs().where(*due).order_by(run.started_at, run.run_id)


def of_moment(snapshot: Snapshot, job: JobName, due_at: int) -> list[JobRun]:
    """Return the runs for one due time of the schedule, in the order of their start."""
    return _of_moment().mapped(_run, snapshot, job=job.value, due_at=due_at)


@prepared
def _latest_due_at() -> sa.Select[Any]:
    run = tables.job_runs.c
    # A run recorded by a clock that was ahead must not count for earlier due times.
    due = sa.select(sa.func.max(run.due_at)).where(run.job == value("job"))
    return due.where(run.due_at <= value("now"))


def latest_due_at(snapshot: Snapshot, job: JobName, now_ms: int) -> int | None:
    """Return the last due time up to now for which a job was started; None without one."""
    due_at: int | None = _latest_due_at().scalar(snapshot, job=job.value, now=now_ms)
    return due_at


@prepared
def _any_ahead() -> sa.Select[Any]:
    run = tables.job_runs.c
    return sa.select(run.run_id).where(run.due_at > value("now")).limit(1)


def is_any_ahead(snapshot: Snapshot, now_ms: int) -> bool:
    """Return True if any run has a due time in the future."""
    return _any_ahead().row(snapshot, now=now_ms) is not None


@prepared
def _last_ended() -> sa.Select[Any]:
    run = tables.job_runs.c
    ended = run.state.in_([JobState.DONE, JobState.FAILED])
    return _runs().where(run.job == value("job"), ended).order_by(*_latest_first()).limit(1)


def last_ended(snapshot: Snapshot, job: JobName, now_ms: int) -> JobRun | None:
    """Return a job's last run that is done or failed; runs from the future count as the oldest."""
    row = _last_ended().row(snapshot, job=job.value, now=now_ms)
    return None if row is None else _run(row)


@prepared
def _prune() -> sa.Delete:
    run, latest = tables.job_runs, tables.job_runs.alias("latest")
    newest = sa.select(run.c.run_id).order_by(*_latest_first()).limit(value("keep"))
    last_due = sa.select(sa.func.max(latest.c.due_at)).where(
        latest.c.job == run.c.job, latest.c.due_at <= value("now")
    )
    # Keep the runs for each job's last due time: they show which due times were missed since.
    is_last = run.c.due_at.is_not_distinct_from(last_due.correlate(run).scalar_subquery())
    return sa.delete(run).where(
        ~_is_running(),
        run.c.run_id != value("but"),
        run.c.run_id.not_in(newest.correlate(None)),
        run.c.due_at.is_(None) | ~is_last,
    )


def prune(transaction: Transaction, keep: int, now_ms: int, but: str = "") -> None:
    """Delete the oldest ended runs over ``keep``, except those for a job's last due time.

    Runs from the future count as the oldest. The run ``but`` is kept.
    """
    _prune().write(transaction, keep=keep, now=now_ms, but=but)


def made_at(snapshot: Snapshot) -> int:
    """Return when the orchestrator was created, in milliseconds."""
    return int(metadata.get(snapshot, "created_at") or 0)


def _run(row: Sequence[Any]) -> JobRun:
    fields = dict(zip(_FIELDS, row, strict=True))
    try:
        fields |= {name: json.loads(fields[name]) for name in ("counts", "rejected")}
        return JobRun(**fields)
    # Pydantic's ValidationError is a ValueError, too.
    except (ValueError, TypeError) as error:
        raise unreadable("job_runs", row[0]) from error


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
