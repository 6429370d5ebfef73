"""What is kept of each run of a job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import LEASE_LOST, JobReport, JobRun, RejectedItem, Trigger
from memgraph.store import metadata
from memgraph.store.rows import json_text, unreadable
from memgraph.store.snapshot import Snapshot, Transaction, driver

# Leases: who alone may do something for a while, between processes.


# By so much the clock may be set back under a lease that was just taken or renewed.
SLACK_MS = 10_000
# One from the future was written by a clock that was ahead: it must not hold until that date.
LIVE = f"expires_at > ?1 AND acquired_at <= ?1 + {SLACK_MS}"
_HELD = f"SELECT holder FROM leases WHERE name = ?2 AND {LIVE}"
_TAKE = (
    "INSERT INTO leases (name, holder, acquired_at, expires_at) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder,"
    " acquired_at = excluded.acquired_at, expires_at = excluded.expires_at"
)
_RENEW = (
    "UPDATE leases SET acquired_at = ?1, expires_at = ?2"
    " WHERE name = ?3 AND holder = ?4 AND expires_at > ?1"
)
_RELEASE = "DELETE FROM leases WHERE name = ? AND holder = ?"


def acquire(
    transaction: Transaction, name: str, holder: str, *, wall_ms: int, lease_ms: int
) -> str | None:
    """Take a lease that is free or has expired, inside the caller's transaction.

    Args:
        holder: nobody else's, and another one for every time that it is taken.

    Returns:
        None: it is taken; else who has it.
    """
    found = driver(transaction).execute(_HELD, (wall_ms, name)).fetchone()
    if found is not None:
        return str(found[0])
    driver(transaction).execute(_TAKE, (name, holder, wall_ms, wall_ms + lease_ms))
    return None


def renew(transaction: Transaction, name: str, holder: str, *, wall_ms: int, lease_ms: int) -> bool:
    """Keep a lease for longer; False: it has expired or is another's, and stays so."""
    values = (wall_ms, wall_ms + lease_ms, name, holder)
    return bool(driver(transaction).execute(_RENEW, values).rowcount)


def release(transaction: Transaction, name: str, holder: str) -> None:
    """Give a lease back; one that is another's by now is left alone."""
    driver(transaction).execute(_RELEASE, (name, holder))


def sweep(transaction: Transaction, *, wall_ms: int) -> None:
    """Drop what has expired, or is from the future."""
    driver(transaction).execute(f"DELETE FROM leases WHERE NOT ({LIVE})", (wall_ms,))


_COLUMNS = (
    "run_id, job, trigger, due_at, started_at, ended_at, state, holder, counts, rejected,"
    " error_code, reason"
)
_BEGIN = (
    "INSERT INTO job_runs (run_id, job, trigger, due_at, started_at, state, holder, reason)"
    " VALUES (?, ?, ?, ?, ?, 'running', ?, ?)"
)
_END = (
    "UPDATE job_runs SET ended_at = ?, state = ?, counts = ?, rejected = ?, error_code = ?,"
    " reason = coalesce(?, reason) WHERE run_id = ? AND state = 'running'"
)
# Whoever is at work renews a lease; a run without one has nobody who works on it.
_LEFT = f"state = 'running' AND holder NOT IN (SELECT holder FROM leases WHERE {LIVE})"
_SOME_RUNNING = "SELECT EXISTS (SELECT 1 FROM job_runs WHERE state = 'running')"
_SOME_LEFT = f"SELECT EXISTS (SELECT 1 FROM job_runs WHERE {_LEFT})"
_ABANDON = (
    "UPDATE job_runs SET ended_at = max(started_at, ?2), state = 'abandoned', error_code = ?3"
    f" WHERE {_LEFT}"
)
_LATEST = f"SELECT {_COLUMNS} FROM job_runs ORDER BY started_at DESC, run_id DESC LIMIT ?"
_ONE = f"SELECT {_COLUMNS} FROM job_runs WHERE run_id = ?"
_ENDED_SINCE = (
    f"SELECT {_COLUMNS} FROM job_runs WHERE run_id > ? AND state <> 'running' ORDER BY run_id"
    " LIMIT ?"
)
# No id comes after a tilde.
_SETTLED = (
    "SELECT max(run_id) FROM job_runs WHERE run_id <"
    " coalesce((SELECT min(run_id) FROM job_runs WHERE state = 'running'), '~')"
)
_OF_MOMENT = (
    f"SELECT {_COLUMNS} FROM job_runs WHERE job = ? AND due_at = ? ORDER BY started_at, run_id"
)
# What a clock wrote that was ahead must not stand for the moments until then.
_LATEST_DUE = "SELECT max(due_at) FROM job_runs WHERE job = ? AND due_at <= ?"
_LAST_ENDED = (
    f"SELECT {_COLUMNS} FROM job_runs WHERE job = ? AND state IN ('done', 'failed')"
    " ORDER BY started_at > ?, started_at DESC, run_id DESC LIMIT 1"
)
# Of the last moment of each job nothing is dropped: it says what is still owed.
_PRUNE = (
    "DELETE FROM job_runs WHERE state <> 'running' AND run_id <> ?3 AND run_id NOT IN"
    " (SELECT run_id FROM job_runs ORDER BY started_at > ?1, started_at DESC, run_id DESC LIMIT ?2)"
    " AND (due_at IS NULL OR due_at IS NOT (SELECT max(latest.due_at) FROM job_runs AS latest"
    " WHERE latest.job = job_runs.job AND latest.due_at <= ?1))"
)
_AHEAD = "SELECT EXISTS (SELECT 1 FROM job_runs WHERE due_at > ?)"


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
    """Record that a run begins."""
    values = (run_id, job.value, trigger, due_at, started_at, holder, reason)
    driver(transaction).execute(_BEGIN, values)


def end(transaction: Transaction, run_id: str, report: JobReport, *, ended_at: int) -> bool:
    """Record how a run ended; False: it counts as abandoned by now, and stays so."""
    values = (
        ended_at,
        report.state.value,
        json_text(report.counts),
        json_text([each.model_dump() for each in report.rejected]),
        report.error_code,
        report.reason,
        run_id,
    )
    return bool(driver(transaction).execute(_END, values).rowcount)


def some_running(snapshot: Snapshot) -> bool:
    """Whether something is at work, so far as is recorded."""
    return bool(driver(snapshot).execute(_SOME_RUNNING).fetchone()[0])


def some_left(snapshot: Snapshot, *, wall_ms: int) -> bool:
    """Whether there are runs that nobody works on any more."""
    return bool(driver(snapshot).execute(_SOME_LEFT, (wall_ms,)).fetchone()[0])


def abandon_left(transaction: Transaction, *, at: int, wall_ms: int) -> int:
    """Close the runs whose holder has no lease any more; gives how many there were.

    Args:
        at: when they are said to have ended, on the orchestrator's clock.
        wall_ms: decides which leases have expired.
    """
    values = (wall_ms, at, LEASE_LOST)
    return int(driver(transaction).execute(_ABANDON, values).rowcount)


def get(snapshot: Snapshot, run_id: str) -> JobRun:
    """One run, which is there."""
    return _run(driver(snapshot).execute(_ONE, (run_id,)).fetchone())


def latest(snapshot: Snapshot, limit: int) -> list[JobRun]:
    """Runs, the one that began last first."""
    return [_run(row) for row in driver(snapshot).execute(_LATEST, (limit,))]


def ended_since(snapshot: Snapshot, run_id: str, limit: int) -> list[JobRun]:
    """Ended runs that began after another, in the order in which they began."""
    return [_run(row) for row in driver(snapshot).execute(_ENDED_SINCE, (run_id, limit))]


def settled(snapshot: Snapshot) -> str:
    """The id of the last run before which all have ended, itself included; empty: there is none."""
    return str(driver(snapshot).execute(_SETTLED).fetchone()[0] or "")


def of_moment(snapshot: Snapshot, job: JobName, due_at: int) -> list[JobRun]:
    """The runs for one moment of the schedule, in the order in which they began."""
    return [_run(row) for row in driver(snapshot).execute(_OF_MOMENT, (job.value, due_at))]


def latest_due_at(snapshot: Snapshot, job: JobName, now_ms: int) -> int | None:
    """The last moment of the schedule until now for which a job was begun."""
    found = driver(snapshot).execute(_LATEST_DUE, (job.value, now_ms)).fetchone()
    return None if found[0] is None else int(found[0])


def some_ahead(snapshot: Snapshot, now_ms: int) -> bool:
    """Whether there are runs for moments that are still to come."""
    return bool(driver(snapshot).execute(_AHEAD, (now_ms,)).fetchone()[0])


def last_ended(snapshot: Snapshot, job: JobName, now_ms: int) -> JobRun | None:
    """The last run that was done or failed; those from the future count as the oldest."""
    row = driver(snapshot).execute(_LAST_ENDED, (job.value, now_ms)).fetchone()
    return None if row is None else _run(row)


def prune(transaction: Transaction, keep: int, now_ms: int, but: str = "") -> None:
    """Drop the oldest ended runs over a number, but none of a job's last due moment until now.

    Runs from the future count as the oldest. The run ``but`` stays.
    """
    driver(transaction).execute(_PRUNE, (now_ms, keep, but))


def made_at(snapshot: Snapshot) -> int:
    """When the orchestrator was made."""
    return int(metadata.get(snapshot, "created_at") or 0)


def _run(row: Sequence[Any]) -> JobRun:
    try:
        return JobRun(
            run_id=row[0],
            job=JobName(row[1]),
            trigger=row[2],
            due_at=row[3],
            started_at=row[4],
            ended_at=row[5],
            state=JobState(row[6]),
            holder=row[7],
            counts=json.loads(row[8]),
            rejected=tuple(RejectedItem(**each) for each in json.loads(row[9])),
            error_code=row[10],
            reason=row[11],
        )
    # What pydantic finds wrong is a ValueError, too.
    except (ValueError, TypeError) as error:
        raise unreadable("job run", row[0]) from error
