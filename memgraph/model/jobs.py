"""Jobs: reports, runs, plans, consolidations, and expiring memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from memgraph.errors import MemgraphError
from memgraph.model.enums import EdgeType, JobName, JobState, MemoryType
from memgraph.model.recall import Bundle
from memgraph.model.values import Memory, Millis, Value

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


def rejected_count(rejected: Iterable[RejectedItem]) -> int:
    """Return the number of rejected items, also those that one entry counts together."""
    return sum(item.count for item in rejected)


class JobReport(Value):
    """The report of a job.

    ``counts``: what, how often. ``error_code`` and ``reason``: of one that was skipped or failed.
    """

    state: JobState
    counts: dict[str, int] = Field(default_factory=dict)
    rejected: Annotated[tuple[RejectedItem, ...], Field(max_length=MAX_REJECTED_KEPT)] = ()
    error_code: str | None = None
    reason: str | None = None

    @classmethod
    def done(cls, counts: dict[str, int], rejected: Sequence[RejectedItem] = ()) -> JobReport:
        """Return the report of a finished job; the first rejected items are listed, all are
        counted.
        """
        return cls(
            state=JobState.DONE,
            counts={**counts, "rejected": max(counts.get("rejected", 0), rejected_count(rejected))},
            rejected=tuple(rejected[:MAX_REJECTED_KEPT]),
        )

    @classmethod
    def skipped(cls, reason: str, *, error_code: str | None = None) -> JobReport:
        """Return the report of a job that had nothing to do, or that lacks something."""
        return cls(state=JobState.SKIPPED, reason=reason, error_code=error_code)

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
        """Return whether the run did not finish."""
        return self.state in (JobState.FAILED, JobState.ABANDONED)


class JobPlan(Value):
    """The plan of a job: when it is due, and whether it missed a moment.

    ``overdue_since``: that moment. Both are None for a job without a schedule.
    """

    job: JobName
    schedule: str
    timezone: str
    next_due_at: Millis | None
    overdue_since: Millis | None


StandingStatus = Literal["ready", "degraded", "disabled", "unknown"]


class LastJob(Value):
    """The run that began last. ``error_code``: of one that was skipped or failed."""

    job: JobName
    state: JobState
    ended_at: Millis | None = None
    error_code: str | None = None


class OrchestratorState(Value):
    """The state of one orchestrator.

    Attributes:
        status: ``disabled``: its database cannot be used, or its memory is switched off.
            ``unknown``: it was not looked at yet.
        codes: why it is disabled, or which work is not done.
        advice: the remedy, in words.
        pending: memories that wait to be embedded.
        oldest_pending_s: the waiting time of the oldest, seconds.
        looked_at: the time of this state; its files have not changed since, or it is queued.
    """

    orchestrator: str
    status: StandingStatus
    codes: tuple[str, ...] = ()
    advice: str | None = None
    pending: int = 0
    oldest_pending_s: float | None = None
    last_job: LastJob | None = None
    looked_at: Millis | None = None


class ServiceReadiness(Value):
    """The readiness of the service.

    Attributes:
        status: ``unusable``: the root is gone or cannot be written, and nothing works.
        disk_free_bytes: where the databases lie.
        orchestrators: sorted by name; only for callers who may see all of them.
    """

    status: Literal["ready", "unusable"]
    disk_free_bytes: int | None = None
    orchestrators: tuple[OrchestratorState, ...] | None = None


class FactNote(Value):
    """One fact of a session.

    ``memory_id``: of the memory with this fact; None: it would be a new one, or strengthen a new
    one. ``evidence``: ids of its turns.
    """

    outcome: Literal["stored", "strengthened"]
    memory_id: str | None
    type: MemoryType
    content: str
    evidence: tuple[str, ...]


class EdgeNote(Value):
    """An edge that was written; an end that would be a new memory is shown by its content."""

    from_id: str
    to_id: str
    edge_type: EdgeType
    reason: str | None


class SessionReport(Value):
    """The outcome of consolidating a session.

    Attributes:
        state: ``consolidated``: all of its turns were read. ``unchanged``: they had been before.
            ``pending``: some remain for a later run, see ``reason``.
        extractor: the proposer of the facts.
        echoes: sentences that were left out because the memory had delivered them.
        resolved: edges of contradictions that were decided.
        compared: pairs of statements that were compared.
        calls, tokens: of a language model.
        error_code: of the error for which it is pending.
    """

    session_id: str
    state: Literal["consolidated", "unchanged", "pending"]
    dry_run: bool = False
    extractor: str
    pages: int = 0
    turns: int = 0
    echoes: int = 0
    facts: tuple[FactNote, ...] = ()
    edges: tuple[EdgeNote, ...] = ()
    resolved: tuple[str, ...] = ()
    rejected: tuple[RejectedItem, ...] = ()
    compared: int = 0
    calls: int = 0
    tokens: int = 0
    reason: str | None = None
    error_code: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return self.model_dump(mode="json")

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts that a job adds up over its sessions."""
        outcomes = [fact.outcome for fact in self.facts]
        kinds = [edge.edge_type for edge in self.edges]
        return {
            "pages": self.pages,
            "turns": self.turns,
            "echoes": self.echoes,
            "facts": outcomes.count("stored"),
            "strengthened": outcomes.count("strengthened"),
            "contradictions": kinds.count(EdgeType.CONTRADICTS),
            "updates": kinds.count(EdgeType.UPDATES),
            "resolved": len(self.resolved),
            "compared": self.compared,
            "calls": self.calls,
            "tokens": self.tokens,
            "rejected": rejected_count(self.rejected),
        }


class ExpiringMemory(Value):
    """A memory that will be retired unless someone uses it.

    Attributes:
        confidence_now, confidence_then: effective, 0..1, at the moment of the report and at its
            end.
        expires_at: from when on it is under the threshold; it lies in the past when the nightly job
            has not run since.
        course: the effective confidence at equal steps from now to the end of the report, both
            included.
    """

    memory: Memory
    confidence_now: float
    confidence_then: float
    expires_at: Millis
    course: tuple[float, ...]


class ExpiringReport(Value):
    """The memories that expire until a moment unless they are used, the soonest first.

    Attributes:
        at, until: the time of the report and its end.
        threshold: under which a memory is retired.
        total: how many there are; ``items`` holds the first of them.
    """

    at: Millis
    until: Millis
    threshold: float
    total: int
    items: tuple[ExpiringMemory, ...]


class RelevantMemories(Value):
    """The memories relevant to a message.

    Attributes:
        bundle: the facts that fit it, best first, none of them from the conversation itself.
        reflection: the latest of the week's reflections that the reader may see; None: there is
            none.
    """

    bundle: Bundle
    reflection: Memory | None
