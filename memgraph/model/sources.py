"""Sources: trust, retraction and restoration, and ingested documents."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from memgraph.model.enums import EdgeType, SourceName, TrustTier
from memgraph.model.values import (
    MAX_NAME_CHARS,
    EdgeInput,
    MemoryInput,
    Millis,
    Name,
    Outcome,
    Reason,
    StoredStatus,
    Unit,
    Value,
)

MAX_SOURCES: Final = 500
"""Of a page."""
MAX_TOLD: Final = 1_000
"""Of each list of a retraction; what is beyond is counted."""

SourceText = Annotated[str, StringConstraints(min_length=1, max_length=4 * MAX_NAME_CHARS)]


class TrustedSource(Value):
    """The trust that an operator assigned to a source.

    Attributes:
        name: a path (a file, or a folder with all below it), a conversation, a run, or the SHA-256
            of a content, as ``kind`` says.
        max_memories: its limit; 0: no further ones; None: the limit of its tier in the settings.
        set_at: milliseconds since 1970.
    """

    kind: SourceName
    name: SourceText
    tier: TrustTier
    max_memories: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    set_at: Millis
    actor: Name
    reason: Reason


class TrustedSources(Value):
    """The trust assigned by operators, by kind and name."""

    items: tuple[TrustedSource, ...]


class SourceInfo(Value):
    """A source, as far as the reader sees its memories.

    Attributes:
        memories: the number of its memories, including ``active`` and ``retracted`` ones.
        first_at, last_at: when the first and the last was stored, milliseconds since 1970.
        tier: its tier now; ``told``: an operator assigned it.
        inherited: it was assigned to another source of the same memories: a folder or a file.
        limit: the maximum number of its memories; None: no limit.
    """

    kind: SourceName
    name: str
    memories: int
    active: int
    retracted: int
    first_at: Millis
    last_at: Millis
    tier: TrustTier
    told: bool
    inherited: bool = False
    limit: int | None = None


class SourcePage(Value):
    """Sources by kind and name; ``next_after``: where the next page begins, None after the last."""

    items: tuple[SourceInfo, ...]
    next_after: str | None = None


class RetractedMemory(Value):
    """A retracted memory: ``given`` by the source, or ``derived`` from such memories alone."""

    memory_id: str
    summary: str
    because: Literal["given", "derived"]


class RetainedMemory(Value):
    """A memory that stays, with further sources (``supported``) or other evidence (``grounds``)."""

    memory_id: str
    summary: str
    because: Literal["supported", "grounds"]


class ReinstatedMemory(Value):
    """A memory that is active again: only ``by`` had replaced it, or won against it.

    That goes now, or is retracted already and was itself replaced by nothing but what goes.
    """

    memory_id: str
    summary: str
    by: tuple[str, ...]


class WeakenedMemory(Value):
    """A memory that stays and loses the support of the source.

    Attributes:
        confidence_before, confidence_after: 0..1.
    """

    memory_id: str
    summary: str
    confidence_before: float
    confidence_after: float


class DisputedPair(Value):
    """A contradiction by the id of its edge, with both of its sides."""

    edge_id: str
    from_id: str
    to_id: str


class SourceRetraction(Value):
    """The result of retracting a source, or its preview.

    Each list has at most ``MAX_TOLD`` entries, the oldest memories first, without memories that the
    actor may not see; the numbers count all.

    Attributes:
        dry_run: nothing was changed.
        given, derived, kept, weakened, reinstated: the number of each.
        reopened: the number of contradictions that were decided for retracted memories.
        cut: a list is not whole.
    """

    kind: SourceName
    name: str
    dry_run: bool
    given: int
    derived: int
    kept: int
    weakened: int = 0
    reinstated: int
    reopened: int = 0
    retracted_items: tuple[RetractedMemory, ...] = ()
    kept_items: tuple[RetainedMemory, ...] = ()
    weakened_items: tuple[WeakenedMemory, ...] = ()
    reinstated_items: tuple[ReinstatedMemory, ...] = ()
    reopened_items: tuple[DisputedPair, ...] = ()
    cut: bool = False

    @property
    def retracted(self) -> int:
        """Return the number of retracted memories."""
        return self.given + self.derived


class MemorySummary(Value):
    """A memory by its id and its summary."""

    memory_id: str
    summary: str


class RestoredMemory(MemorySummary):
    """A restored memory: ``active``, or ``superseded`` by an active one."""

    status: StoredStatus


class SourceRestoration(Value):
    """The result of restoring a source, or its preview.

    Each list has at most ``MAX_TOLD`` entries, the oldest memories first, without memories that the
    actor may not see; the numbers count all.

    Attributes:
        dry_run: nothing was changed.
        restored: the number of restored memories.
        replaced: the number of memories that had been reinstated, and are replaced again.
        counted: the number of kept memories for which the source counts again.
        left_open: the number of open contradictions that were decided for restored memories.
        cut: a list is not whole.
    """

    kind: SourceName
    name: str
    dry_run: bool
    restored: int
    replaced: int
    counted: int
    left_open: int = 0
    restored_items: tuple[RestoredMemory, ...] = ()
    replaced_items: tuple[MemorySummary, ...] = ()
    counted_items: tuple[MemorySummary, ...] = ()
    left_open_items: tuple[DisputedPair, ...] = ()
    cut: bool = False


Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class FileLink(Value):
    """An edge between a memory of this file (``#key``) and the main memory of another file.

    ``target`` is a document key of the other file, which may arrive later. ``fallbacks`` are
    looser keys, used only if exactly one memory answers to them. ``outgoing`` False: the edge
    comes from the other file. ``partial`` as in ``EdgeInput``.
    """

    local: Name
    target: Name
    edge_type: EdgeType
    outgoing: bool = True
    weight: Unit = 1.0
    reason: Reason | None = None
    partial: bool = False
    fallbacks: tuple[Name, ...] = ()


class Document(Value):
    """One dropped file, parsed.

    A large one is stored in parts: those that are stored under the same ``plan`` belong to it, and
    those of the plan that it ``replaces`` are forgotten.
    ``main`` is the memory (``#key``) that stands for it under its ``document_keys``. ``relate``:
    its statements are compared with stored ones; not worth it for a form that tells its relations.
    """

    sha256: Sha256
    path: Name
    memories: tuple[MemoryInput, ...]
    edges: tuple[EdgeInput, ...] = ()
    links: tuple[FileLink, ...] = ()
    main: Name | None = None
    document_keys: tuple[Name, ...] = ()
    relate: bool = True
    plan: str = ""
    replaces: str = ""
    manifest: dict[str, Any] = Field(default_factory=dict)


class DocumentOutcome(Value):
    """The outcome of a document.

    ``outcome`` is ``duplicate`` when this content was stored before: then ``manifest`` is what was
    recorded that time and nothing was written. ``begun``: it was stopped between two parts, and
    goes on when the same document is given again. ``to_compare`` counts the new facts that wait to
    be compared with stored ones; that follows from the outbox.
    """

    outcome: Literal["stored", "duplicate", "begun"]
    memories: tuple[Outcome, ...] = ()
    edges: tuple[Outcome, ...] = ()
    links_made: int = 0
    links_waiting: int = 0
    links_rejected: tuple[Outcome, ...] = ()
    to_compare: int = 0
    manifest: dict[str, Any] = Field(default_factory=dict)
