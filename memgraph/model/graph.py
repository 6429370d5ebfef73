"""Subgraphs, contradictions and their cases, traces, and changes between two times."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from memgraph.model.enums import EdgeType, MemoryKind, MemoryType
from memgraph.model.values import Edge, Memory, Millis, StatusPeriod, StoredSource, Unit, Value

if TYPE_CHECKING:
    import networkx as nx


CaseState = Literal["open", "resolved", "dismissed"]


class Derivation(Value):
    """``memory_id`` was derived from ``derived_from_id``."""

    memory_id: str
    derived_from_id: str


class Subgraph(Value):
    """The neighbourhood of some memories.

    Attributes:
        seeds: the requested ids that are visible.
        missing: requested ids that do not exist or are not visible to the reader.
        nodes: by distance, nearest first.
        edges: every edge of the requested types between two of ``nodes``.
        derivations: derivations between two of ``nodes``; they are not followed, and left out if
            edge types were requested.
        sources: the sources of all nodes, each once.
        distances: the number of hops from the nearest seed, by memory id.
        cut: whether a limit left something out.
        cut_reasons: any of ``max_nodes``, ``max_degree`` and ``max_edges``, sorted.
    """

    seeds: tuple[str, ...]
    missing: tuple[str, ...]
    nodes: tuple[Memory, ...]
    edges: tuple[Edge, ...]
    sources: tuple[StoredSource, ...]
    distances: dict[str, int]
    cut: bool
    cut_reasons: tuple[str, ...]
    derivations: tuple[Derivation, ...] = ()

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return a networkx graph; nodes are keyed by memory id, edges by edge id.

        Every field is an attribute: enums as their values, times in milliseconds. A node also has
        ``distance`` and ``provenance`` (the fields of its source). The graph has ``cut`` and
        ``cut_reasons``.
        """
        import networkx as nx

        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(cut=self.cut, cut_reasons=self.cut_reasons)
        sources = {source.source_id: _plain(source) for source in self.sources}
        for node in self.nodes:
            fields = _plain(node)
            fields["provenance"] = sources.get(node.source_id, {})
            graph.add_node(node.memory_id, distance=self.distances[node.memory_id], **fields)
        for edge in self.edges:
            graph.add_edge(edge.from_id, edge.to_id, key=edge.edge_id, **_plain(edge))
        return graph


class Contradiction(Value):
    """A contradiction, or the mark of a change, with both its memories.

    A mark is an edge whose weight, a probability, is below 1: an open Contradicts edge, or an
    Updates edge, which leads from the later statement to the one that it probably changes.

    Attributes:
        first, second: the older memory and the newer one; of a mark, the one that was probably
            changed and the one that changes it.
        sources: the sources of the two memories, in that order.
        state: ``dismissed``: both sides hold; it is not raised again.
        open_days: days since it was found, or from then until it was decided.
        moot: it is open, but one side has been replaced or retracted; or it is resolved, but the
            memory that lost is active again, because the winner was retracted.
    """

    edge: Edge
    first: Memory
    second: Memory
    sources: tuple[StoredSource, StoredSource]
    state: CaseState
    open_days: float
    moot: bool


class ContradictionPage(Value):
    """A page of contradictions and marks; ``next_after``: the ``after`` of the next, or None."""

    items: tuple[Contradiction, ...]
    next_after: str | None


class Link(Value):
    """A memory reached from the traced memory.

    Attributes:
        via_id: the memory one step before it.
        edge_type: the type of the edge between these two; None: it is a derivation.
        distance: steps from the traced memory, from 1.
        partial: the edge is an Updates edge that replaces only a part.
    """

    memory_id: str
    via_id: str
    edge_type: EdgeType | None
    distance: int
    partial: bool


class JournalNote(Value):
    """A journal entry about a memory, without the ids of memories that the reader may not see."""

    seq: int
    at: Millis
    actor: str
    action: str
    details: dict[str, Any]


class DeliveryCount(Value):
    """The number of visible receipts that contain a memory, and the last of them."""

    count: int
    last_at: Millis | None
    last_recall_id: str | None


class MemorySupport(Value):
    """A further source of a memory, with the time it was added."""

    memory_id: str
    source: StoredSource
    added_at: Millis


class TracedEdge(Edge):
    """An edge of a trace.

    Attributes:
        undone_at: when what it had replaced became active again, after the newer memory was
            retracted; only ``reopen`` takes the edge out of force.
    """

    undone_at: Millis | None = None

    @property
    def relation(self) -> str:
        """Return the relation in words, as of an ``Edge``; in the past tense if it is undone."""
        if self.undone_at is None:
            return super().relation
        return "replaced" if super().relation == "replaces" else "was replaced by"


class Trace(Value):
    """The origin of a memory, and everything that happened to it.

    Attributes:
        supports: further sources, oldest first.
        independent_sources: the number of sources, including its own, that share no conversation,
            file, run or speaker and are not copies.
        status_history: its statuses, oldest first.
        edges_out, edges_in: its edges, strongest first.
        grounds: its evidence: the memories that it is derived from, caused by or part of, and
            their evidence in turn.
        dependents: the memories that depend on it, directly or not.
        replaced: the memories that it replaced, directly or not, unless that was undone.
        replaced_by: the memories that replaced it, directly or not, unless that was undone.
        probable_changes: the marks of changes, Updates edges of a weight below 1 that nobody
            accepted or dismissed: first those by which later memories change this one.
        stale_grounds: ids among ``grounds`` that were replaced or retracted, except by eviction,
            decay or the end of a task.
        stale_dependents: ids of active ``dependents`` that depend on stale evidence or on this
            memory if it is stale, without those that replaced it.
        memories, sources: the memories, each once, of all ids above except those in the journal,
            and their sources.
        cut_reasons: any of ``depth``, ``max_links``, ``max_edges``, ``max_journal`` and
            ``max_receipts``, sorted.
    """

    memory: Memory
    source: StoredSource
    supports: tuple[MemorySupport, ...]
    independent_sources: int
    status_history: tuple[StatusPeriod, ...]
    edges_out: tuple[TracedEdge, ...]
    edges_in: tuple[TracedEdge, ...]
    grounds: tuple[Link, ...]
    dependents: tuple[Link, ...]
    replaced: tuple[Link, ...]
    replaced_by: tuple[Link, ...]
    open_contradictions: tuple[Edge, ...]
    probable_changes: tuple[Edge, ...]
    stale_grounds: tuple[str, ...]
    stale_dependents: tuple[str, ...]
    journal: tuple[JournalNote, ...]
    handed_out: DeliveryCount
    memories: tuple[Memory, ...]
    sources: tuple[StoredSource, ...]
    cut: bool
    cut_reasons: tuple[str, ...]

    @cached_property
    def memory_by_id(self) -> Mapping[str, Memory]:
        """The memories of the trace by id."""
        return {memory.memory_id: memory for memory in self.memories}


def _plain(value: Value) -> dict[str, Any]:
    """Return the fields, with enums as their values; nested dictionaries are copies."""
    return {
        name: field.value if hasattr(field, "value") else field
        for name, field in value.model_dump().items()
    }


EndedHow = Literal["replaced", "lost", "retracted"]


class PremiseStep(Value):
    """``memory_id`` depends on ``ground_id``; without an ``edge_type``, it is derived from it."""

    memory_id: str
    ground_id: str
    edge_type: EdgeType | None
    edge_id: str | None


class InvalidPremise(Value):
    """Refuted evidence, and the path to it.

    Attributes:
        ground: the memory that was replaced or retracted.
        path: the steps from the dependent memory to ``ground``.
        ended: ``replaced`` by another memory, ``lost`` a contradiction, or ``retracted``.
        ended_at, actor, reason: when, by whom and why it ended; for superseded evidence that was
            retracted and restored since, the original replacement.
        replaced_by: ids of visible memories that replaced it, sorted.
    """

    ground: Memory
    path: tuple[PremiseStep, ...]
    ended: EndedHow
    ended_at: Millis
    actor: str
    reason: str | None
    replaced_by: tuple[str, ...]


class Influence(Value):
    """The influence of a memory, as far as the reader may see it.

    Attributes:
        recalls: the number of receipts that contain it, among the newest that are examined.
        receipts: the ids of these receipts, newest first; empty without the permission to audit.
        runs, conversations: its recipients, sorted; empty without the permission to audit.
        derived: the number of memories that depend on it, directly or not.
        cut: there are more than were counted or listed.
    """

    recalls: int
    receipts: tuple[str, ...]
    runs: tuple[str, ...]
    conversations: tuple[str, ...]
    derived: int
    cut: bool


class CaseSide(Value):
    """One side of a contradiction, with its evidence.

    Attributes:
        stored_by: the actor who stored it; None if the journal does not record it.
        supports: further sources, oldest first.
        independent_sources: see ``Trace``.
        said_at: the time of the event if known, else of storing; None: a file without a date.
        effective_confidence: 0..1, after decay.
        confirmed: a person confirmed it.
        premise: its refuted evidence, if any.
    """

    memory: Memory
    source: StoredSource
    stored_by: str | None
    supports: tuple[MemorySupport, ...]
    independent_sources: int
    said_at: Millis | None
    effective_confidence: Unit
    confirmed: bool
    premise: InvalidPremise | None
    influence: Influence


class SuggestionReason(Value):
    """A reason why one side of a contradiction is more likely to be true.

    Attributes:
        code: ``confirmed``, ``other_ended``, ``other_stale``, ``more_sources``,
            ``higher_confidence`` or ``newer``.
        favours: the id of the favoured memory.
        weight: the natural logarithm of the odds ratio, above 0.
    """

    code: str
    favours: str
    weight: float


class Suggestion(Value):
    """A suggested decision of a contradiction; a person decides.

    Attributes:
        winner_id: the suggested winner; None: the evidence is inconclusive, or neither can win.
        confidence: the probability that the side with more evidence is true, 0.5..1.
        reasons: the reasons for either side, the weightiest first.
    """

    winner_id: str | None
    confidence: Unit
    reasons: tuple[SuggestionReason, ...]


class Case(Value):
    """A contradiction, or a mark of a change, with everything needed to decide it.

    Attributes:
        sides: the older memory and the newer one.
        moot: it is open, but one side has been replaced or retracted; or it is resolved, but the
            memory that lost is active again, because the winner was retracted.
        suggestion: None if it is resolved or dismissed, as of an earlier time, and for a mark of a
            change, whose weight is the probability that the newer memory replaces the older one.
        journal: the entries about this edge, oldest first.
        at: the time of the case.
    """

    edge: Edge
    state: CaseState
    moot: bool
    sides: tuple[CaseSide, CaseSide]
    suggestion: Suggestion | None
    journal: tuple[JournalNote, ...]
    at: Millis
    cut: bool


class MemoryEvent(Value):
    """A change of a memory.

    Attributes:
        text: the beginning of its text, or ``[erased]``.
        reason: without the ids of memories that the reader may not see.
    """

    memory_id: str
    kind: MemoryKind
    type: MemoryType
    text: str
    at: Millis
    actor: str
    reason: str | None


class PairEvent(Value):
    """A change of a contradiction, or of a mark of a change, an Updates edge.

    Attributes:
        first_id, second_id: the older and the newer memory of the edge.
        winner_id: None: it was not decided, or a side is hidden.
    """

    edge_id: str
    edge_type: EdgeType
    first_id: str
    second_id: str
    first_text: str
    second_text: str
    at: Millis
    actor: str
    reason: str | None
    winner_id: str | None = None


class RestoredBackup(Value):
    """A restore of a backup of the database.

    Attributes:
        taken_at: when the backup was made; what was written later, before the restore, is no longer
            in the database. None: not known.
        reason: None if the reader may not see everything.
    """

    at: Millis
    actor: str
    reason: str | None
    taken_at: Millis | None


class Diff(Value):
    """The changes after ``since`` until ``until``, as far as the reader may see; newest first.

    Attributes:
        learnt: stored facts and reflections; turns are only counted, as ``said``.
        replaced, retracted: ended memories, turns included; ``reason`` names the successor or the
            reason.
        restored: memories that are active again, turns included.
        erased: erased memories, turns included, without their texts; ``reason`` names the erasure.
        contradicted: new contradictions.
        resolved, accepted, dismissed, reopened: contradictions and marks of changes that were
            decided or reopened.
        restores: restores of backups.
        counts: the full length of each list by its name, and the number of turns as ``said``.
        cut: a list is shorter than its full length.
    """

    since: Millis
    until: Millis
    learnt: tuple[MemoryEvent, ...]
    replaced: tuple[MemoryEvent, ...]
    retracted: tuple[MemoryEvent, ...]
    restored: tuple[MemoryEvent, ...]
    erased: tuple[MemoryEvent, ...]
    contradicted: tuple[PairEvent, ...]
    resolved: tuple[PairEvent, ...]
    accepted: tuple[PairEvent, ...]
    dismissed: tuple[PairEvent, ...]
    reopened: tuple[PairEvent, ...]
    restores: tuple[RestoredBackup, ...]
    counts: dict[str, int]
    cut: bool


class History(Value):
    """The history of one memory: its statuses, oldest first.

    Attributes:
        at: the time of reading, at which open periods end.
    """

    memory: Memory
    periods: tuple[StatusPeriod, ...]
    at: Millis
