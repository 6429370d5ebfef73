"""What the ingest pipeline hands over: one dropped file as memories, edges and links."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from memgraph.model.enums import EdgeType
from memgraph.model.values import EdgeInput, MemoryInput, Name, Outcome, Reason, Unit, Value

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Link(Value):
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
    links: tuple[Link, ...] = ()
    main: Name | None = None
    document_keys: tuple[Name, ...] = ()
    relate: bool = True
    plan: str = ""
    replaces: str = ""
    manifest: dict[str, Any] = Field(default_factory=dict)


class DocumentOutcome(Value):
    """What became of a document.

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
