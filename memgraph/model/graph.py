"""Subgraphs, the cases of contradictions, and what changed between two times."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from memgraph.model.enums import EdgeType, MemoryKind, MemoryType, TrustTier
from memgraph.model.values import Edge, Memory, Millis, StatusPeriod, StoredSource, Unit, Value

if TYPE_CHECKING:
    import networkx as nx


class Derivation(Value):
    """``memory_id`` was derived from ``derived_from_id``."""

    memory_id: str
    derived_from_id: str


class Subgraph(Value):
    """The neighbourhood of some memories.

    Attributes:
        seeds: the ids that were asked for and are visible.
        missing: those that are not there or not visible to the reader; the two are not told apart.
        nodes: by distance, nearest first.
        edges: every edge of the asked types between two of ``nodes``.
        derivations: of one of ``nodes`` from another one; they are no edges and not followed, and
            none are given where types of edges were asked for.
        sources: of all nodes, each once.
        distances: hops from the nearest seed, by memory id.
        cut: whether a bound left something out.
        cut_reasons: of ``max_nodes``, ``max_degree``, ``max_edges``, sorted.
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
        """Nodes keyed by memory id, edges by edge id; every field is an attribute.

        Enums are their values, times milliseconds; a node also has ``distance`` and ``provenance``
        (its source's fields). The graph has ``cut`` and ``cut_reasons``.
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
    """A Contradicts edge with both its memories.

    Attributes:
        first, second: the older memory and the newer one.
        sources: where the two come from, in that order.
        open_days: since the contradiction was found until now, or until it was resolved.
        ages_days: of the two memories now.
        resolved: it was decided, or dismissed.
        dismissed: somebody said that it is none; it is not raised again.
        moot: still open, and one of the two was replaced or retracted meanwhile.
    """

    edge: Edge
    first: Memory
    second: Memory
    sources: tuple[StoredSource, StoredSource]
    since: Millis
    open_days: float
    ages_days: tuple[float, float]
    resolved: bool
    moot: bool
    dismissed: bool = False


class ContradictionPage(Value):
    """One page; ``next_after`` is what to pass as ``after`` for the next, None at the end."""

    items: tuple[Contradiction, ...]
    next_after: str | None


class Link(Value):
    """A memory reached from the traced one.

    Attributes:
        via_id: the memory it was reached from.
        edge_type: of the edge between the two; None: it is a derivation.
        distance: steps from the traced memory, from 1.
        partial: the edge is an Updates edge that replaces only a part.
    """

    memory_id: str
    via_id: str
    edge_type: EdgeType | None
    distance: int
    partial: bool


class JournalNote(Value):
    """An entry of the journal about a memory. Ids the reader may not see are blanked out."""

    seq: int
    at: Millis
    actor: str
    action: str
    details: dict[str, Any]


class DeliveryCount(Value):
    """In how many receipts that the reader may see a memory was handed out, and the last one."""

    count: int
    last_at: Millis | None
    last_recall_id: str | None


class MemorySupport(Value):
    """A further source that said what a memory says, and when that was noted."""

    source: StoredSource
    added_at: Millis


class Trace(Value):
    """Everything that tells where a memory comes from and what became of it.

    Attributes:
        supports: further sources, the first one first; ``independent_sources`` counts those that
            are neither the same conversation, file, run nor speaker, nor a copy, the memory's own
            among them.
        status_history: the first one first.
        edges_out, edges_in: strongest first.
        grounds: what it was derived from, is caused by or is part of, and their grounds in turn.
        dependents: the same the other way: what was derived from it, and so on.
        replaced: what it Updates, and what that did in turn.
        replaced_by: what Updates it, and what updates that.
        stale_grounds: ids among ``grounds`` that were replaced or taken back; one that was
            evicted, that decayed, or whose task was closed refutes nothing and is not among them.
        stale_dependents: ids of active ``dependents`` with such a ground, or the memory itself, on
            the way to them: what now stands on a replaced ground. What took the place of the
            ground is not among them.
        memories, sources: of every id above but the journal's, each once.
        cut_reasons: of ``depth``, ``max_links``, ``max_edges``, ``max_journal``, sorted.
    """

    memory: Memory
    source: StoredSource
    supports: tuple[MemorySupport, ...]
    independent_sources: int
    status_history: tuple[StatusPeriod, ...]
    edges_out: tuple[Edge, ...]
    edges_in: tuple[Edge, ...]
    grounds: tuple[Link, ...]
    dependents: tuple[Link, ...]
    replaced: tuple[Link, ...]
    replaced_by: tuple[Link, ...]
    open_contradictions: tuple[Edge, ...]
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
        """Every memory of the trace."""
        return {memory.memory_id: memory for memory in self.memories}


def _plain(value: Value) -> dict[str, Any]:
    """Fields with enums as their values; the dictionaries inside are copies."""
    return {
        name: field.value if hasattr(field, "value") else field
        for name, field in value.model_dump().items()
    }


CaseState = Literal["open", "resolved", "dismissed"]
EndedHow = Literal["replaced", "lost", "retracted"]


class PremiseStep(Value):
    """``memory_id`` stands on ``ground_id``. ``edge_type`` None: it was derived from it."""

    memory_id: str
    ground_id: str
    edge_type: EdgeType | None
    edge_id: str | None


class InvalidPremise(Value):
    """A ground that no longer holds, and the way down to it.

    Attributes:
        ground: the memory that was replaced or taken back.
        path: from the memory that stands on it, step by step; the last one's ground is ``ground``.
        ended: ``replaced`` by another memory, ``lost`` a contradiction, or ``retracted``.
        ended_at, actor, reason: of that; where it was taken back since, and is back, of that still.
        replaced_by: ids of visible memories that took its place, sorted.
    """

    ground: Memory
    path: tuple[PremiseStep, ...]
    ended: EndedHow
    ended_at: Millis
    actor: str
    reason: str | None
    replaced_by: tuple[str, ...]


class StaleMemory(Value):
    """An active memory that stands on a ground that no longer holds: the one that ended last."""

    memory: Memory
    premise: InvalidPremise


class StalePage(Value):
    """By when the grounds ended, the newest first; what is back from being taken back, by that.

    Attributes:
        next_after: what to pass as ``after`` for the next page; None at the end. A page may be
            shorter than was asked for and go on: so many endings are looked at, and no more.
        cut_reasons: ``max_rows``: more stands on a ground than is read.
    """

    items: tuple[StaleMemory, ...]
    next_after: str | None
    cut: bool
    cut_reasons: tuple[str, ...]


class Influence(Value):
    """The influence of a memory, as far as the reader may see it.

    Attributes:
        recalls: how many receipts name it, of the newest that are looked at.
        receipts: their ids, the newest first; none are named to who may not audit.
        runs, conversations: for which it was handed out, sorted; nor are these.
        derived: how many memories stand on it, directly or not.
        cut: there is more than is counted or listed.
    """

    recalls: int
    receipts: tuple[str, ...]
    runs: tuple[str, ...]
    conversations: tuple[str, ...]
    derived: int
    cut: bool


class CaseSide(Value):
    """One of the two memories that contradict each other, and what speaks for it.

    Attributes:
        supports: further sources that said the same, the first one first.
        independent_sources: its own among them; see ``Trace``.
        said_at: when it was so, or else when it was stored.
        effective_confidence: 0..1, after decay.
        trust: the tier of its source; ``trust_is_todays``: that of now, in a case as it was, for
            nothing tells which it was then.
        confirmed: a person confirmed it.
        premise: a ground of it that no longer holds; None: all hold.
    """

    memory: Memory
    source: StoredSource
    supports: tuple[MemorySupport, ...]
    independent_sources: int
    said_at: Millis
    effective_confidence: Unit
    trust: TrustTier
    trust_is_todays: bool = False
    confirmed: bool
    premise: InvalidPremise | None
    influence: Influence


class SuggestionReason(Value):
    """Why one side is more likely to hold.

    Attributes:
        code: ``confirmed``, ``other_ended``, ``other_stale``, ``more_sources``, ``higher_trust``,
            ``higher_confidence`` or ``newer``.
        favours: the id of the memory it speaks for.
        weight: of the evidence, natural log of the odds, above 0.
    """

    code: str
    favours: str
    weight: float


class Suggestion(Value):
    """A suggestion for a contradiction; a person decides it.

    Attributes:
        winner_id: None: the evidence does not tell, or neither side can win.
        confidence: 0.5..1, that the side with more evidence holds.
        reasons: the weightiest first, those against the winner among them.
    """

    winner_id: str | None
    confidence: Unit
    reasons: tuple[SuggestionReason, ...]


class Case(Value):
    """A contradiction with all that helps to decide it.

    Attributes:
        sides: the older memory and the newer one.
        moot: still open, and one of the two was replaced or retracted meanwhile.
        suggestion: None once it is resolved or dismissed.
        journal: what was written down about this contradiction, the first entry first.
        at: the time that the case is shown at.
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
    """Something that happened to a memory.

    Attributes:
        text: the beginning of what it says; empty once it was erased.
        reason: ids that the reader may not see are blanked out.
    """

    memory_id: str
    kind: MemoryKind
    type: MemoryType
    text: str
    at: Millis
    actor: str
    reason: str | None


class PairEvent(Value):
    """Something that happened to a contradiction.

    Attributes:
        first_id, second_id: the older edge end and the newer one, as the edge has them.
        winner_id: for whom it was decided; None: it was not, or a side of it is hidden.
        actor: None where the journal tells nobody.
    """

    edge_id: str
    first_id: str
    second_id: str
    first_text: str
    second_text: str
    at: Millis
    actor: str | None
    reason: str | None
    winner_id: str | None = None


class ConfidenceChange(Value):
    """A stored confidence, 0..1, at the two times. ``at``: when it changed last between them."""

    memory_id: str
    text: str
    at: Millis
    before: float
    after: float


class Diff(Value):
    """The changes after ``since`` until ``until``, as far as the reader may see; newest first.

    Attributes:
        learnt: facts and reflections that were stored; turns are only counted, as ``said``.
        replaced, retracted: what took their place, or why they went, says ``reason``.
        restored: what is active again.
        contradicted: contradictions that were found.
        resolved, dismissed, reopened: what became of contradictions.
        confidence: memories that were there before and are believed more now, or less.
        counts: of each list by its name, whole, and of ``said``.
        cut: whether a list is longer than what is shown.
    """

    since: Millis
    until: Millis
    learnt: tuple[MemoryEvent, ...]
    replaced: tuple[MemoryEvent, ...]
    retracted: tuple[MemoryEvent, ...]
    restored: tuple[MemoryEvent, ...]
    contradicted: tuple[PairEvent, ...]
    resolved: tuple[PairEvent, ...]
    dismissed: tuple[PairEvent, ...]
    reopened: tuple[PairEvent, ...]
    confidence: tuple[ConfidenceChange, ...]
    counts: dict[str, int]
    cut: bool


class ValuePeriod(Value):
    """The values of a memory from ``since`` until ``until``; None: they still hold."""

    since: Millis
    until: Millis | None
    importance: int
    confidence: float
    decay_rate: float
    valid_until: Millis | None
    tags: tuple[str, ...]


class History(Value):
    """The life of one memory: its statuses and its values, each the first one first.

    Attributes:
        at: when it was read: what has no end held until then.
        decay_exponent: of the decay of confidence here; see ``policy.decay``.
    """

    memory: Memory
    periods: tuple[StatusPeriod, ...]
    values: tuple[ValuePeriod, ...]
    at: Millis
    decay_exponent: float
