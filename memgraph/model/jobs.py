"""Jobs: reports, runs and plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from memgraph.errors import MemgraphError
from memgraph.model.enums import JobName, JobState
from memgraph.model.values import Millis, Value

MAX_REJECTED_KEPT = 200
"""The maximum number of listed rejected items; ``counts["rejected"]`` counts all."""

Trigger = Literal["schedule", "event", "manual"]
"""What started a run: its schedule, the end of a session, or a request."""

STOPPED = "job.stopped"
"""The error code of a run that was stopped early; a later run continues."""
LEASE_LOST = "job.lease_lost"
"""The error code of a run whose process stopped renewing its lease, or died."""


class RejectedItem(Value):
    """A proposed item that was rejected.

    ``code``: the error code. ``where``: ids and positions (a session, a page, the number of an
    item), never its text. ``count``: the number of items that this entry stands for.
    """

    code: str
    where: str
    count: Annotated[int, Field(ge=1)] = 1


def rejected_count(rejected: Iterable[RejectedItem]) -> int:
    """Return the total number of rejected items; an entry may stand for several."""
    return sum(item.count for item in rejected)


class JobReport(Value):
    """The report of a job.

    ``counts``: the numbers by name. ``error_code`` and ``reason``: why it was skipped or failed.
    """

    state: JobState
    counts: dict[str, int] = Field(default_factory=dict)
    rejected: Annotated[tuple[RejectedItem, ...], Field(max_length=MAX_REJECTED_KEPT)] = ()
    error_code: str | None = None
    reason: str | None = None

    @classmethod
    def done(
        cls,
        counts: dict[str, int],
        rejected: Sequence[RejectedItem] = (),
        *,
        reason: str | None = None,
    ) -> JobReport:
        """Return the report of a finished job; it lists the first rejected items and counts all."""
        return cls(
            state=JobState.DONE,
            counts={**counts, "rejected": max(counts.get("rejected", 0), rejected_count(rejected))},
            rejected=tuple(rejected[:MAX_REJECTED_KEPT]),
            reason=reason,
        )

    @classmethod
    def skipped(cls, reason: str) -> JobReport:
        """Return the report of a job that had nothing to do, or misses a requirement."""
        return cls(state=JobState.SKIPPED, reason=reason)

    @classmethod
    def failed(
        cls,
        error: MemgraphError,
        counts: dict[str, int] | None = None,
        rejected: Sequence[RejectedItem] = (),
    ) -> JobReport:
        """Return the report of a job that failed; completed work stays done."""
        return cls(
            state=JobState.FAILED,
            counts=dict(counts or {}),
            rejected=tuple(rejected[:MAX_REJECTED_KEPT]),
            error_code=error.code,
            reason=error.message,
        )


class JobRun(Value):
    """A recorded run of a job.

    ``session_id``: the session that it was for, or None. ``due_at``: its scheduled time, or None.
    ``holder``: the process that ran it. ``reason``: why it was skipped or failed.
    """

    run_id: str
    job: JobName
    session_id: str | None = None
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
        """Return True if the run did not finish."""
        return self.state in (JobState.FAILED, JobState.ABANDONED)

    @property
    def remark(self) -> str:
        """Return its session, error code and reason as one text for people."""
        session = None if self.session_id is None else f"session {self.session_id}"
        return ": ".join(filter(None, (session, self.error_code, self.reason)))


class JobPlan(Value):
    """The schedule of a job: when it is due next, and since when it is overdue.

    Both times are None for a job without a schedule.
    """

    job: JobName
    schedule: str
    timezone: str
    next_due_at: Millis | None
    overdue_since: Millis | None


StandingStatus = Literal["ready", "degraded", "disabled", "unknown"]


class OrchestratorState(Value):
    """The state of one orchestrator.

    Attributes:
        status: ``disabled``: its database cannot be used, or its memory is switched off.
            ``unknown``: it was not checked yet.
        codes: why it is disabled, or its current problems.
        advice: the remedy, as a sentence.
        pending: the number of memories that wait to be embedded.
        oldest_pending_s: how long the oldest of these has waited, in seconds.
        looked_at: the time of the check; a change of its files queues another one.
    """

    orchestrator: str
    status: StandingStatus
    codes: tuple[str, ...] = ()
    advice: str | None = None
    pending: int = 0
    oldest_pending_s: float | None = None
    looked_at: Millis | None = None


class ServiceReadiness(Value):
    """The readiness of the service.

    Attributes:
        status: ``unusable``: the root is missing or cannot be written to, so nothing works.
        disk_free_bytes: the free space on the disk of the databases.
        orchestrators: sorted by name; only for callers who may see all of them.
    """

    status: Literal["ready", "unusable"]
    disk_free_bytes: int | None = None
    orchestrators: tuple[OrchestratorState, ...] | None = None
