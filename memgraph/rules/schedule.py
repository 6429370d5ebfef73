"""Schedules of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim

from memgraph.errors import DatabaseBusy, DatabaseFull, DatabaseUnreachable
from memgraph.model.enums import JobState
from memgraph.model.jobs import LEASE_LOST, JobRun

MAX_KILLED = 3
TEMPORARY: Final = frozenset({DatabaseBusy.code, DatabaseFull.code, DatabaseUnreachable.code})
"""The codes of errors of the store that pass without a change of data or settings."""
FIRST_RETRY_MS: Final = 60_000
LONGEST_RETRY_MS: Final = 3_600_000

# No time zone ever shifted by more, so a search that starts this far away misses no moment.
_LONGEST_SHIFT = timedelta(hours=3)


def latest_due(expression: str, timezone: str, now_ms: int) -> int | None:
    """Return the last moment at or before ``now_ms``; None if there is none within fifty years."""
    now = _moment(now_ms, timezone)
    for moment in _moments(expression, now + _LONGEST_SHIFT, reverse=True):
        if moment <= now_ms:
            return moment
    return None


def next_due(expression: str, timezone: str, now_ms: int) -> int | None:
    """Return the first moment after ``now_ms``; None if there is none within fifty years."""
    now = _moment(now_ms, timezone)
    for moment in _moments(expression, now - _LONGEST_SHIFT, reverse=False):
        if moment > now_ms:
            # Forwards, cronsim skips moments on a day on which the clock shifts by half an hour;
            # backwards it finds them.
            while (earlier := latest_due(expression, timezone, moment - 1) or 0) > now_ms:
                moment = earlier
            return moment
    return None


def owed(expression: str, timezone: str, *, since_ms: int, now_ms: int) -> int | None:
    """Return the missed moment to catch up on: the last one after ``since_ms``, or None.

    One run makes up for all missed moments.
    """
    if not expression:
        return None
    due = latest_due(expression, timezone, now_ms)
    return due if due is not None and due > since_ms else None


def retry_at(runs: Sequence[JobRun], now_ms: int) -> int | None:
    """Return when a moment is tried again whose last run met a temporary error of the store.

    The pause after the run is a minute, doubled with each such run, and at most an hour.

    Returns:
        Milliseconds; None if the last of ``runs`` did not end so. ``now_ms`` if it ended later: the
        clock was set back.
    """
    failed = [run for run in runs if _failed_for_now(run)]
    if not failed or failed[-1] is not runs[-1]:
        return None
    ended_at = failed[-1].ended_at or 0
    pause = min(FIRST_RETRY_MS << min(len(failed) - 1, 6), LONGEST_RETRY_MS)
    return ended_at + pause if ended_at <= now_ms else now_ms


def _failed_for_now(run: JobRun) -> bool:
    return run.state is JobState.FAILED and run.error_code in TEMPORARY


def served_until(runs: Sequence[JobRun], now_ms: int) -> int | None:
    """Return the moment up to which no run is missing, after the runs for the last moment.

    A run that was killed or asked to stop did not serve its moment, so that another one takes it up
    at once. Three killed runs serve it, so that a job that kills its process does not run for ever.
    One that met a temporary error of the store serves it until ``retry_at``.

    Returns:
        Milliseconds; None without runs.
    """
    if not runs:
        return None
    due_at = runs[0].due_at or 0
    killed = sum(run.error_code == LEASE_LOST for run in runs)
    is_served = killed >= MAX_KILLED or any(
        run.state is not JobState.ABANDONED and not _failed_for_now(run) for run in runs
    )
    if not is_served and (again_at := retry_at(runs, now_ms)) is not None:
        is_served = now_ms < again_at
    return due_at if is_served else due_at - 1


def _moment(ms: int, timezone: str) -> datetime:
    zone = UTC if timezone == "UTC" else ZoneInfo(timezone)
    # Cron expressions have a resolution of one second.
    return datetime.fromtimestamp(ms // 1000, UTC).astimezone(zone)


def _moments(expression: str, start: datetime, *, reverse: bool) -> Iterator[int]:
    schedule = CronSim(expression, start.astimezone(UTC).astimezone(start.tzinfo), reverse)
    while True:
        try:
            moment = next(schedule)
        except (StopIteration, OverflowError):
            # Never within fifty years, or beyond the years that a date can have.
            return
        yield round(moment.timestamp()) * 1000
