"""Responses of the service that are not values of the library: pages, lists and small results."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from memgraph.model.context import ContextItem, ContextTier
from memgraph.model.conversation import SessionInfo
from memgraph.model.entities import EntityInfo
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.model.jobs import JobRun
from memgraph.model.values import Memory, Millis, Outcome, Value

MAX_BATCH = 1_000


class OrchestratorName(Value):
    """An orchestrator that the caller may use."""

    name: str


class OrchestratorList(Value):
    """The orchestrators that the caller may use, sorted by name."""

    items: tuple[OrchestratorName, ...]


class Health(Value):
    """The health of an orchestrator's memory, see ``MemoryService.health``.

    Attributes:
        degraded: if it is ready, the codes of work that does not get done.
        code, message, details: the error, if it is disabled.
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
    """The outcome of a write. ``reasons``: why it is a duplicate, by the id of the other memory;
    empty if the key may not read.
    """

    outcome: Literal["stored", "duplicate"] = "stored"
    duplicate_of: str | None = None
    reasons: dict[str, str] = Field(default_factory=dict)
    comparison: Literal["pending"] | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> RememberResult:
        """Return the result for the outcome of a write that was not rejected."""
        return cls.model_validate(outcome.model_dump(exclude={"edge_id", "code", "message"}))


class EdgeId(Value):
    """The id of an edge that was created or existed before."""

    edge_id: str


class PromotedId(Value):
    """The id of the promoted memory; None: the required consent was refused."""

    memory_id: str | None


class MemoryPage(Value):
    """A page of memories, newest first; ``next_cursor`` is None on the last page."""

    items: tuple[Memory, ...]
    next_cursor: str | None


class LatestReflection(Value):
    """The latest weekly reflection; None if the caller may see none."""

    memory: Memory | None


class Outcomes(Value):
    """The outcome of each item of a batch, in order."""

    outcomes: tuple[Outcome, ...]


class SessionPage(Value):
    """A page of sessions, by their last turn, latest first; ``next_cursor`` is None on the last."""

    items: tuple[SessionInfo, ...]
    next_cursor: str | None


class SessionEnded(Value):
    """The result of ending a session. ``ended`` is False if it had ended before."""

    ended: bool


class EntityList(Value):
    """Entities, the most mentioned first."""

    items: tuple[EntityInfo, ...]


class TierItem(ContextItem):
    """An item of a tier, with the id of its memory."""

    memory_id: str


class TierPage(Value):
    """Items of a task, a project or the global tier, newest first; ``count`` is the number of
    all.
    """

    tier: ContextTier
    scope_id: str | None
    count: int
    items: tuple[TierItem, ...]


class ForgetOutcome(Value):
    """The outcome of forgetting one memory.

    ``code`` and ``message`` are those of the error if it was rejected, else None.
    """

    memory_id: str
    outcome: Literal["retracted", "rejected"]
    code: str | None = None
    message: str | None = None


class ForgetOutcomes(Value):
    """The outcomes in the order of the requested ids."""

    outcomes: tuple[ForgetOutcome, ...]


class MemoryCounts(Value):
    """The numbers of visible memories, by kind, type and status."""

    kind: dict[MemoryKind, int] = Field(default_factory=dict)
    type: dict[MemoryType, int] = Field(default_factory=dict)
    status: dict[MemoryStatus, int] = Field(default_factory=dict)


class JobRuns(Value):
    """The runs of jobs, latest first."""

    runs: tuple[JobRun, ...]


class UploadResult(Value):
    """An uploaded file, stored in the drop zone unless its content is known.

    Attributes:
        sha256: the digest of its bytes, by which its status can be read.
        name: its path relative to the drop zone.
        known: the same content waits in the drop zone or was ingested before; None: it is new.
    """

    sha256: str
    name: str
    known: Literal["waiting", "processed"] | None = None


class IngestedFile(Value):
    """The outcome of an uploaded or dropped file.

    Attributes:
        status: ``waiting``: it is in the drop zone, or is being read. ``held``: ten attempts to
            ingest it made no progress, and an operator has to decide.
        manifest: the part of its manifest that the reader may see; None while it waits.
    """

    sha256: str
    status: Literal["waiting", "processed", "rejected", "held"]
    at: Millis | None
    manifest: dict[str, Any] | None


class IngestPage(Value):
    """A page of files, latest first; ``next_cursor`` is None on the last page."""

    items: tuple[IngestedFile, ...]
    next_cursor: str | None


Limit = Annotated[int, Field(ge=1, le=MAX_BATCH)]
