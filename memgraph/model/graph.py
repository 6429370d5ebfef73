"""What the graph hands out: bounded subgraphs, contradictions, and the trace of a memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memgraph.model.enums import EdgeType
from memgraph.model.values import Edge, Memory, Millis, StatusPeriod, StoredSource, Value

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


class HandedOut(Value):
    """In how many receipts that the reader may see a memory was handed out, and the last one."""

    count: int
    last_at: Millis | None
    last_recall_id: str | None


class Support(Value):
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
    supports: tuple[Support, ...]
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
    handed_out: HandedOut
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
