"""The schedule of jobs: what is due now, what comes next, and what was missed."""

from __future__ import annotations

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import JobPlan
from memgraph.rules import schedule
from memgraph.service.opened import Opened
from memgraph.store import jobs
from memgraph.store.snapshot import Snapshot

OVERDUE_MS = MS_PER_DAY


def owed(opened: Opened, job: JobName, now_ms: int) -> int | None:
    """Return the moment for which a job is to be run now, or None."""
    settings = opened.settings.memory.schedule
    with opened.database.read() as snapshot:
        served = jobs.latest_due_at(snapshot, job, now_ms)
        expression = getattr(settings, job.value)
        return _owed(snapshot, expression, settings.timezone, job, served, now_ms)


def plan(opened: Opened, job: JobName, now_ms: int) -> JobPlan:
    """Return when a job is next due, and since when it is overdue."""
    settings = opened.settings.memory.schedule
    expression = getattr(settings, job.value)
    with opened.database.read() as snapshot:
        served = jobs.latest_due_at(snapshot, job, now_ms)
        overdue = _owed(snapshot, expression, settings.timezone, job, served, now_ms)
    following = schedule.next_due(expression, settings.timezone, now_ms) if expression else None
    return JobPlan(
        job=job,
        schedule=expression,
        timezone=settings.timezone,
        next_due_at=following,
        overdue_since=overdue,
    )


def shortcomings(opened: Opened, now_ms: int) -> list[str]:
    """Return codes for missed or failed jobs.

    ``jobs.failing``: the last run of a job failed. ``jobs.overdue``: a job that a worker ran before
    was due more than a day ago. Without a worker there never is an alarm.
    """
    found = []
    settings = opened.settings.memory.schedule
    with opened.database.read() as snapshot:
        last = [jobs.last_ended(snapshot, job, now_ms) for job in JobName]
        if any(each is not None and each.state is JobState.FAILED for each in last):
            found.append("jobs.failing")
        for job in JobName:
            expression = getattr(settings, job.value)
            served = jobs.latest_due_at(snapshot, job, now_ms)
            if served is None:
                continue
            before = now_ms - OVERDUE_MS
            due_at = _owed(snapshot, expression, settings.timezone, job, served, before)
            if due_at is not None:
                found.append("jobs.overdue")
                break
    return found


def upcoming(opened: Opened, now_ms: int) -> list[int]:
    """Return the next times at which something runs: scheduled moments, and retries of failed
    runs.
    """
    settings = opened.settings.memory.schedule
    found: list[int | None] = []
    with opened.database.read() as snapshot:
        for job in JobName:
            expression = getattr(settings, job.value)
            if not expression:
                continue
            found.append(schedule.next_due(expression, settings.timezone, now_ms))
            served = jobs.latest_due_at(snapshot, job, now_ms)
            if served is not None:
                tried = jobs.of_moment(snapshot, job, served)
                found.append(schedule.next_attempt(tried))
    return [each for each in found if each is not None]


def _owed(
    snapshot: Snapshot,
    expression: str,
    timezone: str,
    job: JobName,
    served: int | None,
    now_ms: int,
) -> int | None:
    if served is not None and expression:
        again = schedule.next_attempt(jobs.of_moment(snapshot, job, served))
        if again is not None and again <= now_ms:
            # A newer moment, if there is one, stands for this one too.
            return max(schedule.latest_due(expression, timezone, now_ms) or served, served)
    since = jobs.made_at(snapshot) if served is None else served
    if served is None and since > now_ms:
        # Made under a clock that was ahead: nobody knows when, and one run stands for all.
        since = 0
    return schedule.owed(expression, timezone, since_ms=since, now_ms=now_ms)
