"""What the jobs of a memory's life hand back, and what is kept of each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from memgraph.errors import MemgraphError
from memgraph.model.enums import JobName, JobState
from memgraph.model.values import Millis, Value

MAX_REJECTED_KEPT = 200
"""Rejected items told one by one; ``counts["rejected"]`` counts all."""

Trigger = Literal["schedule", "event", "manual"]
"""What began a run: its time had come, a session ended, or someone asked for it."""

STOPPED = "job.stopped"
"""Error code of a run that was asked to stop before its end: it is caught up later."""
LEASE_LOST = "job.lease_lost"
"""Error code of a run whose process was silent for too long, or ended without a word."""
CRASHED = "job.crashed"
"""Error code of a run that met an error which is none of memgraph's own."""


class RejectedItem(Value):
    """Something that was proposed and not taken.

    ``code``: the error's. ``where``: what it was, by ids and positions (a session, a page, the
    number of an item), never the text that somebody wrote. ``count``: how many items it tells of.
    """

    code: str
    where: str
    count: Annotated[int, Field(ge=1)] = 1


def all_of(rejected: Iterable[RejectedItem]) -> int:
    """How many items were rejected, also those that one entry tells of together."""
    return sum(each.count for each in rejected)


class JobReport(Value):
    """What a job did.

    ``counts``: what, how often. ``error_code`` and ``reason``: of one that was skipped or failed.
    """

    state: JobState
    counts: dict[str, int] = Field(default_factory=dict)
    rejected: Annotated[tuple[RejectedItem, ...], Field(max_length=MAX_REJECTED_KEPT)] = ()
    error_code: str | None = None
    reason: str | None = None

    @classmethod
    def done(cls, counts: dict[str, int], rejected: Sequence[RejectedItem] = ()) -> JobReport:
        """It came to its end; what was rejected is counted, and the first of it is told."""
        return cls(
            state=JobState.DONE,
            counts={**counts, "rejected": max(counts.get("rejected", 0), all_of(rejected))},
            rejected=tuple(rejected[:MAX_REJECTED_KEPT]),
        )

    @classmethod
    def skipped(cls, reason: str, *, error_code: str | None = None) -> JobReport:
        """There was nothing to do, or something is missing."""
        return cls(state=JobState.SKIPPED, reason=reason, error_code=error_code)

    @classmethod
    def failed(
        cls,
        error: MemgraphError,
        counts: dict[str, int] | None = None,
        rejected: Sequence[RejectedItem] = (),
    ) -> JobReport:
        """It broke off: what was done until then stays done."""
        return cls(
            state=JobState.FAILED,
            counts=dict(counts or {}),
            rejected=tuple(rejected[:MAX_REJECTED_KEPT]),
            error_code=error.code,
            reason=error.message,
        )


class JobRun(Value):
    """One run of a job, as it is recorded.

    ``due_at``: the moment of the schedule that it stands for, else None. ``holder``: which process
    ran it. ``reason``: why it was skipped or failed, or which session it was about.
    """

    run_id: str
    job: JobName
    trigger: Trigger
    due_at: Millis | None
    started_at: Millis
    ended_at: Millis | None
    state: JobState
    holder: str
    counts: dict[str, int]
    rejected: tuple[RejectedItem, ...]
    error_code: str | None
    reason: str | None

    @property
    def failed(self) -> bool:
        """Whether it did not come to its end."""
        return self.state in (JobState.FAILED, JobState.ABANDONED)


class JobPlan(Value):
    """When a job is next due, and whether a moment has passed for which it did not run.

    ``overdue_since``: that moment. Both are None for a job without a schedule.
    """

    job: JobName
    schedule: str
    timezone: str
    next_due_at: Millis | None
    overdue_since: Millis | None
