"""Answers of the service beside the library's own values: pages, lists and small notes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from memgraph.model.context import ContextItem, ContextTier
from memgraph.model.conversation import SessionInfo
from memgraph.model.entities import EntityInfo, EntityProposal
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.model.jobs import JobPlan, JobRun, SessionReport
from memgraph.model.values import Memory, Millis, Outcome, Value

MAX_BATCH = 1_000


class OrchestratorName(Value):
    """An orchestrator that the caller may use."""

    name: str


class OrchestratorList(Value):
    """Sorted by name."""

    items: tuple[OrchestratorName, ...]


class Health(Value):
    """The health of an orchestrator's memory, see ``MemoryService.health``.

    Attributes:
        degraded: codes of work that does not get done; of one that is ready.
        code, message, details: of the error, where it is disabled.
    """

    orchestrator: str
    status: Literal["ready", "disabled"]
    degraded: tuple[str, ...] = ()
    code: str | None = None
    message: str | None = None
    details: dict[str, Any] = Field(default_factory=dict)


class MemoryId(Value):
    """The id of the stored memory, or of its duplicate."""

    memory_id: str


class RememberResult(MemoryId):
    """The outcome of a write, and the memories that it repeats, updates or contradicts.

    ``reasons``: by id of each memory named here the evidence, in words. The lists are None where
    nothing was compared, or the key may not read.
    """

    outcome: Literal["stored", "duplicate"] = "stored"
    duplicate_of: str | None = None
    updates: tuple[str, ...] | None = None
    updated_by: tuple[str, ...] | None = None
    contradicts: tuple[str, ...] | None = None
    reasons: dict[str, str] | None = None
    comparison: Literal["done", "pending"] | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> RememberResult:
        """Return the result for the outcome of a write that was not rejected."""
        return cls.model_validate(outcome.model_dump(exclude={"edge_id", "code", "message"}))


class EdgeId(Value):
    """The id of an edge that was made, or that was there already."""

    edge_id: str


class PromotedId(Value):
    """The id of the promoted memory; None: it takes a consent that was refused."""

    memory_id: str | None


class MemoryPage(Value):
    """Memories, the newest first; ``next_cursor`` None: there are no more."""

    items: tuple[Memory, ...]
    next_cursor: str | None


class LatestReflection(Value):
    """The latest weekly reflection; None: none is visible."""

    memory: Memory | None


class Outcomes(Value):
    """The outcome of each item of a batch, in order."""

    outcomes: tuple[Outcome, ...]


class SessionPage(Value):
    """Conversations, the last one talked in first; ``next_cursor`` None: there are no more."""

    items: tuple[SessionInfo, ...]
    next_cursor: str | None


class SessionEnded(Value):
    """The result of ending a session; ``ended``: it was open until now."""

    ended: bool


class EntityList(Value):
    """Entities, the most mentioned first."""

    items: tuple[EntityInfo, ...]


class EntityProposals(Value):
    """Open proposals that two entities are one, the oldest first."""

    items: tuple[EntityProposal, ...]


class TierItem(ContextItem):
    """An item of a tier, and the memory that it is."""

    memory_id: str


class TierPage(Value):
    """The items of a task, a project or the global tier, newest first; ``count`` is all of it."""

    tier: ContextTier
    scope_id: str | None
    count: int
    items: tuple[TierItem, ...]


class ForgetOutcome(Value):
    """The outcome of forgetting one memory.

    ``code`` and ``message`` are those of the error for which it was not, else None.
    """

    memory_id: str
    outcome: Literal["retracted", "rejected"]
    code: str | None = None
    message: str | None = None


class ForgetOutcomes(Value):
    """In the order of the ids that were named."""

    outcomes: tuple[ForgetOutcome, ...]


class MemoryCounts(Value):
    """The numbers of visible memories, by kind, type and status."""

    kind: dict[MemoryKind, int] = Field(default_factory=dict)
    type: dict[MemoryType, int] = Field(default_factory=dict)
    status: dict[MemoryStatus, int] = Field(default_factory=dict)


class OrchestratorStatus(Value):
    """The counts of the whole store, and the health of the memory.

    ``stats``: as ``orc.maintenance.stats`` counts it; None where the database cannot be read.
    """

    health: Health
    stats: dict[str, Any] | None


class JobBoard(Value):
    """The schedule of the jobs, and their runs, the latest first."""

    plans: tuple[JobPlan, ...]
    runs: tuple[JobRun, ...]


class JobResult(Value):
    """The result of a run or of a dry run; the other is None."""

    runs: tuple[JobRun, ...] | None = None
    sessions: tuple[SessionReport, ...] | None = None


class AuditFinding(Value):
    """One thing that is not as it should be."""

    code: str
    message: str
    subject: str | None
    details: dict[str, Any]


class AuditReport(Value):
    """The result of ``Orchestrator.verify``. ``summary``: in a line."""

    ok: bool
    summary: str
    last_at: Millis | None = None
    checked: dict[str, int]
    totals: dict[str, int]
    findings: tuple[AuditFinding, ...]


class UploadResult(Value):
    """An uploaded file in the drop zone, or whose content is known already.

    Attributes:
        sha256: of its bytes; under it the status is found.
        name: under which it lies in the drop zone, relative to it.
        known: the same content was taken before, or waits; None: it is new.
    """

    sha256: str
    name: str
    known: Literal["waiting", "processed"] | None = None


class IngestedFile(Value):
    """The outcome of an uploaded or dropped file.

    Attributes:
        status: ``waiting``: it lies in the drop zone, or is being read. ``held``: it was begun ten
            times and got no further, and waits for an operator.
        manifest: what a reader may know of it; None while it waits.
    """

    sha256: str
    status: Literal["waiting", "processed", "rejected", "held"]
    at: Millis | None
    manifest: dict[str, Any] | None


class IngestPage(Value):
    """Files, the latest first; ``next_cursor`` None: there are no more."""

    items: tuple[IngestedFile, ...]
    next_cursor: str | None


Limit = Annotated[int, Field(ge=1, le=MAX_BATCH)]
