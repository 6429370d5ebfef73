"""Schedules of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim

from memgraph.errors import DatabaseBusy, DatabaseFull, DatabaseUnreachable, OutcomeUnknown
from memgraph.model.enums import JobState
from memgraph.model.jobs import LEASE_LOST, JobRun

MAX_KILLED = 3
TEMPORARY: Final = frozenset(
    kind.code for kind in (DatabaseBusy, DatabaseFull, DatabaseUnreachable, OutcomeUnknown)
)
"""The codes of errors of the store that pass without a change of data or settings."""
FIRST_RETRY_MS: Final = 60_000
LONGEST_RETRY_MS: Final = 3_600_000

# No time zone ever shifted by more, so a search that starts this far away misses no moment.
_LONGEST_SHIFT = timedelta(hours=3)


def latest_due(expression: str, timezone: str, now_ms: int) -> int | None:
    """Return the last moment at or before ``now_ms``; None if there is none within fifty years.

    The empty expression has none.
    """
    moments = _moments(expression, _moment(now_ms, timezone) + _LONGEST_SHIFT, reverse=True)
    return next((moment for moment in moments if moment <= now_ms), None)


def next_due(expression: str, timezone: str, now_ms: int) -> int | None:
    """Return the first moment after ``now_ms``; None if there is none within fifty years."""
    moments = _moments(expression, _moment(now_ms, timezone) - _LONGEST_SHIFT, reverse=False)
    following = next((moment for moment in moments if moment > now_ms), None)
    # Forwards, cronsim skips moments on a day on which the clock shifts by half an hour; backwards
    # it finds them.
    while following and (earlier := latest_due(expression, timezone, following - 1) or 0) > now_ms:
        following = earlier
    return following


def retry_at(runs: Sequence[JobRun], now_ms: int) -> int | None:
    """Return when a moment is tried again, after its runs so far; None if they served it.

    A run that ended by itself serves its moment. One that was killed or asked to stop does not, and
    the next one may begin at once; three killed ones do, so that a job that kills its process does
    not run for ever. After a temporary error of the store the pause is a minute, doubled with each
    such run, and at most an hour.

    Args:
        runs: all of one moment, in the order of their start; at least one.
        now_ms: the time now. A run that failed later shows that the clock was set back: retry now.
    """
    failed = [run for run in runs if run.state is JobState.FAILED and run.error_code in TEMPORARY]
    killed = sum(run.error_code == LEASE_LOST for run in runs)
    unserved = len(failed) + sum(run.state is JobState.ABANDONED for run in runs)
    if unserved < len(runs) or killed >= MAX_KILLED:
        return None
    if not failed or failed[-1] is not runs[-1]:
        return now_ms
    ended_at = failed[-1].ended_at or 0
    pause = min(FIRST_RETRY_MS << min(len(failed) - 1, 6), LONGEST_RETRY_MS)
    return ended_at + pause if ended_at <= now_ms else now_ms


def _moment(ms: int, timezone: str) -> datetime:
    zone = UTC if timezone == "UTC" else ZoneInfo(timezone)
    # Cron expressions have a resolution of one second.
    return datetime.fromtimestamp(ms // 1000, UTC).astimezone(zone)


def _moments(expression: str, start: datetime, *, reverse: bool) -> Iterator[int]:
    if not expression:
        return
    schedule = CronSim(expression, start.astimezone(UTC).astimezone(start.tzinfo), reverse)
    while True:
        try:
            moment = next(schedule)
        except (StopIteration, OverflowError):
            # Never within fifty years, or beyond the years that a date can have.
            return
        yield round(moment.timestamp()) * 1000
