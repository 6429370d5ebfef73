"""Schedules of jobs, and the rules of health."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim

from memgraph.errors import InvalidInput
from memgraph.model.access import HealthMetric
from memgraph.model.enums import JobState
from memgraph.model.jobs import STOPPED, JobRun

MAX_ATTEMPTS = 3
FIRST_PAUSE_MS = 300_000
PAUSE_FACTOR = 4

# No zone was ever moved by more: a search that begins so far off misses no moment.
_LONGEST_SHIFT = timedelta(hours=3)


def latest_due(expression: str, timezone: str, now_ms: int) -> int | None:
    """Return the last moment at or before ``now_ms``; None: there is none within fifty years."""
    now = _moment(now_ms, timezone)
    for moment in _moments(expression, now + _LONGEST_SHIFT, reverse=True):
        if moment <= now_ms:
            return moment
    return None


def next_due(expression: str, timezone: str, now_ms: int) -> int | None:
    """Return the first moment after ``now_ms``; None: there is none within fifty years."""
    now = _moment(now_ms, timezone)
    for moment in _moments(expression, now - _LONGEST_SHIFT, reverse=False):
        if moment > now_ms:
            return _first(expression, timezone, now_ms, moment)
    return None


def _first(expression: str, timezone: str, now_ms: int, moment: int) -> int:
    """Return the first moment after ``now_ms`` when ``moment`` is one.

    Forwards, cronsim passes over moments of a day on which the clock moves by half an hour;
    backwards it finds them.
    """
    earlier = latest_due(expression, timezone, moment - 1)
    while earlier is not None and earlier > now_ms:
        moment = earlier
        earlier = latest_due(expression, timezone, moment - 1)
    return moment


def owed(expression: str, timezone: str, *, since_ms: int, now_ms: int) -> int | None:
    """Return the moment that is to be caught up: the last one after ``since_ms``, or None.

    However many were missed, one run stands for all of them.
    """
    if not expression:
        return None
    due = latest_due(expression, timezone, now_ms)
    return due if due is not None and due > since_ms else None


def next_attempt(runs: Sequence[JobRun]) -> int | None:
    """Return when to try a moment again for which there were these runs, the last one at the end.

    One that failed is tried again after a while, one whose process died at once, each at most
    ``MAX_ATTEMPTS`` times; one that was asked to stop does not count.

    Returns:
        The moment from which on it may be tried; None: it is done, at work, or given up.
    """
    if not runs:
        return 0
    last = runs[-1]
    tried = sum(run.error_code != STOPPED for run in runs)
    if last.state not in (JobState.FAILED, JobState.ABANDONED) or tried >= MAX_ATTEMPTS:
        return None
    if last.state is JobState.ABANDONED or last.ended_at is None:
        return 0
    return last.ended_at + FIRST_PAUSE_MS * int(PAUSE_FACTOR ** (tried - 1))


def _moment(ms: int, timezone: str) -> datetime:
    zone = UTC if timezone == "UTC" else ZoneInfo(timezone)
    # Expressions count whole seconds.
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


ALL: Final = "all"
_LIMIT = re.compile(r"(?P<name>[a-z_]+)(?:=(?P<rate>\d{1,3}(?:\.\d{1,9})?)(?P<percent>%)?)?")


def limits_of(entries: Iterable[str]) -> dict[HealthMetric, float]:
    """Return the highest rates that pass, 0..1, from texts such as ``stale=0.1``, ``stale=10%``,
    ``echo``.

    A name alone lets nothing pass; ``all`` stands for every measure that no other text names.

    Raises:
        InvalidInput: an unknown measure, one that is named twice, or a rate above 1.
    """
    limits: dict[str, float] = {}
    for text in entries:
        match = _LIMIT.fullmatch(text)
        name = match["name"] if match else ""
        if match is None or (name != ALL and name not in set(HealthMetric)):
            names = ", ".join([*HealthMetric, ALL])
            raise InvalidInput(
                f"a limit is NAME or NAME=RATE, such as stale=0.05 or stale=5%; names: {names}",
                field="fail_on",
            )
        if name in limits:
            raise InvalidInput(f"{name} has two limits", field="fail_on")
        rate = float(match["rate"] or 0.0) / (100.0 if match["percent"] else 1.0)
        if rate > 1.0:
            raise InvalidInput(
                f"{name}: a rate must be between 0 and 1, or 0% and 100%", field=name
            )
        limits[name] = rate
    others = limits.pop(ALL, None)
    rest = {} if others is None else dict.fromkeys(HealthMetric, others)
    return rest | {HealthMetric(name): rate for name, rate in limits.items()}


def rate_of(count: int, of: int) -> float:
    """Return the share, 0..1; of nothing 0."""
    return count / of if of else 0.0


def fails(measure: HealthMetric, rate: float, limits: Mapping[HealthMetric, float]) -> bool:
    """Return True when a rate is above the limit of its measure."""
    return measure in limits and rate > limits[measure]
