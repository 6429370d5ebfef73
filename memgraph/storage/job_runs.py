"""What is kept of each run of a job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import LEASE_LOST, JobReport, JobRun, RejectedItem, Trigger
from memgraph.storage import leases, metadata
from memgraph.storage.encoding import json_text
from memgraph.storage.rows import unreadable
from memgraph.storage.statements import driver

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
_LEFT = f"state = 'running' AND holder NOT IN (SELECT holder FROM leases WHERE {leases.LIVE})"
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
    connection: sa.Connection,
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
    driver(connection).execute(_BEGIN, values)


def end(connection: sa.Connection, run_id: str, report: JobReport, *, ended_at: int) -> bool:
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
    return bool(driver(connection).execute(_END, values).rowcount)


def some_running(connection: sa.Connection) -> bool:
    """Whether something is at work, so far as is recorded."""
    return bool(driver(connection).execute(_SOME_RUNNING).fetchone()[0])


def some_left(connection: sa.Connection, *, wall_ms: int) -> bool:
    """Whether there are runs that nobody works on any more."""
    return bool(driver(connection).execute(_SOME_LEFT, (wall_ms,)).fetchone()[0])


def abandon_left(connection: sa.Connection, *, at: int, wall_ms: int) -> int:
    """Close the runs whose holder has no lease any more; gives how many there were.

    Args:
        at: when they are said to have ended, on the orchestrator's clock.
        wall_ms: decides which leases have expired.
    """
    values = (wall_ms, at, LEASE_LOST)
    return int(driver(connection).execute(_ABANDON, values).rowcount)


def get(connection: sa.Connection, run_id: str) -> JobRun:
    """One run, which is there."""
    return _run(driver(connection).execute(_ONE, (run_id,)).fetchone())


def latest(connection: sa.Connection, limit: int) -> list[JobRun]:
    """Runs, the one that began last first."""
    return [_run(row) for row in driver(connection).execute(_LATEST, (limit,))]


def ended_since(connection: sa.Connection, run_id: str, limit: int) -> list[JobRun]:
    """Ended runs that began after another, in the order in which they began."""
    return [_run(row) for row in driver(connection).execute(_ENDED_SINCE, (run_id, limit))]


def settled(connection: sa.Connection) -> str:
    """The id of the last run before which all have ended, itself included; empty: there is none."""
    return str(driver(connection).execute(_SETTLED).fetchone()[0] or "")


def of_moment(connection: sa.Connection, job: JobName, due_at: int) -> list[JobRun]:
    """The runs for one moment of the schedule, in the order in which they began."""
    return [_run(row) for row in driver(connection).execute(_OF_MOMENT, (job.value, due_at))]


def latest_due_at(connection: sa.Connection, job: JobName, now_ms: int) -> int | None:
    """The last moment of the schedule until now for which a job was begun."""
    found = driver(connection).execute(_LATEST_DUE, (job.value, now_ms)).fetchone()
    return None if found[0] is None else int(found[0])


def some_ahead(connection: sa.Connection, now_ms: int) -> bool:
    """Whether there are runs for moments that are still to come."""
    return bool(driver(connection).execute(_AHEAD, (now_ms,)).fetchone()[0])


def last_ended(connection: sa.Connection, job: JobName, now_ms: int) -> JobRun | None:
    """The last run that was done or failed; those from the future count as the oldest."""
    row = driver(connection).execute(_LAST_ENDED, (job.value, now_ms)).fetchone()
    return None if row is None else _run(row)


def prune(connection: sa.Connection, keep: int, now_ms: int, but: str = "") -> None:
    """Drop the oldest ended runs over a number, but none of a job's last due moment until now.

    Runs from the future count as the oldest. The run ``but`` stays.
    """
    driver(connection).execute(_PRUNE, (now_ms, keep, but))


def made_at(connection: sa.Connection) -> int:
    """When the orchestrator was made."""
    return int(metadata.get(connection, "created_at") or 0)


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
