"""Sources: their names and their retraction, and ingested documents."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field, StringConstraints

from memgraph.model.enums import EdgeType, SourceName
from memgraph.model.values import (
    MAX_NAME_CHARS,
    EdgeInput,
    MemoryInput,
    Millis,
    Name,
    Outcome,
    Reason,
    Sha256,
    Unit,
    Value,
)

"""The maximum size of a page."""
MAX_TOLD: Final = 1_000
"""The maximum size of each list of a retraction; the numbers count all."""

SourceText = Annotated[str, StringConstraints(min_length=1, max_length=4 * MAX_NAME_CHARS)]


class NamedSource(NamedTuple):
    """A source by one of its names. A path names a file, or a folder with everything below it."""

    kind: SourceName
    name: str


@lru_cache(maxsize=4_096)  # many memories, and all recalls of them, have the same sources
def source_names(
    *,
    path: str | None = None,
    conversation: str | None = None,
    run: str | None = None,
    content: str | None = None,
) -> frozenset[NamedSource]:
    """Return the names of a source that has these; a session counts as a conversation."""
    values = zip(SourceName, (path, conversation, run, content), strict=True)
    return frozenset(NamedSource(kind, name) for kind, name in values if name)


class SourceInfo(Value):
    """A source with figures for its visible memories.

    Attributes:
        memories: the number of its memories, including ``active`` and ``retracted`` ones.
        first_at, last_at: when the first and the last memory was stored, milliseconds since 1970.
    """

    kind: SourceName
    name: str
    memories: int
    active: int
    retracted: int
    first_at: Millis
    last_at: Millis


class SourcePage(Value):
    """A page of sources by kind and name. ``next_after`` is None on the last page."""

    items: tuple[SourceInfo, ...]
    next_after: str | None = None


class RetractedMemory(Value):
    """A retracted memory: ``given`` by the source, or ``derived`` only from such memories."""

    memory_id: str
    summary: str
    because: Literal["given", "derived"]


class RetainedMemory(Value):
    """A memory that is kept: it has further sources (``supported``) or evidence (``grounds``)."""

    memory_id: str
    summary: str
    because: Literal["supported", "grounds"]


class ReinstatedMemory(Value):
    """A memory that becomes active again, because only ``by`` had replaced it or won against it.

    These are retracted now, or were retracted before and replaced only by such memories.
    """

    memory_id: str
    summary: str
    by: tuple[str, ...]


class WeakenedMemory(Value):
    """A memory that is kept but loses the support of the source.

    Attributes:
        confidence_before, confidence_after: 0..1.
    """

    memory_id: str
    summary: str
    confidence_before: float
    confidence_after: float


class DisputedPair(Value):
    """A contradiction, as the ids of its edge and its two sides."""

    edge_id: str
    from_id: str
    to_id: str


class SourceRetraction(Value):
    """The result of retracting a source, or its preview.

    Each list has at most ``MAX_TOLD`` entries, oldest first, without hidden memories; the numbers
    count all.

    Attributes:
        dry_run: True if nothing was changed.
        given, derived, kept, weakened, reinstated: the numbers of memories.
        reopened: the number of contradictions that retracted memories had won.
        cut: True if a list is incomplete.
        same_name: the paths of files that were dropped under the same name and are no part of this
            source, but still state memories.
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
    same_name: tuple[str, ...] = ()

    @property
    def retracted(self) -> int:
        """Return the number of retracted memories."""
        return self.given + self.derived


class FileLink(Value):
    """An edge between a memory of this file (``#key``) and the main memory of another file.

    ``target`` is a document key of the other file, which may arrive later. ``fallbacks`` are less
    specific keys, used only if exactly one memory matches. ``outgoing`` is False if the edge comes
    from the other file. ``partial`` is as in ``EdgeInput``.
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
    """A parsed file.

    A large file is stored in parts: parts stored under the same ``plan`` belong to it, and those of
    another plan are dropped. ``main`` is the memory (``#key``) that represents the
    file under its ``document_keys``. ``relate``: compare its statements with stored ones; False for
    formats that state their relations themselves, where marks are seldom right.
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
    manifest: dict[str, Any] = Field(default_factory=dict)


class DocumentOutcome(Value):
    """The outcome of storing a document.

    ``duplicate``: this content was stored before; ``manifest`` is the earlier one, and nothing was
    written. ``begun``: storing was stopped between two parts, and continues when the same document
    is passed again. ``under_way``: another claim is storing this content.
    """

    outcome: Literal["stored", "duplicate", "begun", "under_way"]
    memories: tuple[Outcome, ...] = ()
    edges: tuple[Outcome, ...] = ()
    manifest: dict[str, Any] = Field(default_factory=dict)
