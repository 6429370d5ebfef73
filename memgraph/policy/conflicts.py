"""Open contradictions around some memories as a directed graph: each edge runs from the later
statement to the earlier one. networkx is loaded when there is a contradiction to look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from memgraph.clock import iso
from memgraph.ids import short_id

if TYPE_CHECKING:
    import networkx as nx

MOST_NAMED = 3
"""Other sides that a mark names; the rest are counted."""


class Side(NamedTuple):
    """One side of a contradiction. ``time``: when it happened, else when it was stored, in
    milliseconds; 0: nobody knows. Of two at one moment the higher id is the later."""

    time: int
    memory_id: str


@dataclass(frozen=True, slots=True)
class Conflicts:
    """The open contradictions among and around some memories; empty where ``graph`` is None."""

    graph: nx.DiGraph[str] | None = None

    @classmethod
    def of(cls, pairs: Iterable[tuple[Side, Side]]) -> Conflicts:
        """Return the graph of unresolved contradictions; a pair may come in both orders."""
        ordered = [(max(pair), min(pair)) for pair in pairs]
        if not ordered:
            return cls()
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        for later, earlier in ordered:
            graph.add_node(later.memory_id, time=later.time)
            graph.add_node(earlier.memory_id, time=earlier.time)
            graph.add_edge(later.memory_id, earlier.memory_id)
        return cls(graph)

    def __or__(self, more: Conflicts) -> Conflicts:
        """Return the union of two graphs."""
        if self.graph is None or more.graph is None:
            return self if more.graph is None else more
        import networkx as nx

        return Conflicts(nx.compose(self.graph, more.graph))

    def __contains__(self, memory_id: str) -> bool:
        return self.graph is not None and memory_id in self.graph

    @property
    def memory_ids(self) -> list[str]:
        """The ids of all sides, sorted."""
        return [] if self.graph is None else sorted(self.graph)

    def opponents(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of the memories that contradict one, sorted."""
        return tuple(sorted({*self.later(memory_id), *self.earlier(memory_id)}))

    def later(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of the later statements that contradict one, the newest first."""
        if self.graph is None or memory_id not in self.graph:
            return ()
        return self._newest_first(self.graph.predecessors(memory_id))

    def earlier(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of the earlier statements that a memory contradicts, the newest first."""
        if self.graph is None or memory_id not in self.graph:
            return ()
        return self._newest_first(self.graph.successors(memory_id))

    def mark(self, memory_id: str) -> str:
        """Return what a prompt says of a memory: "contradicted by …", with the short ids and dates
        of the other sides, the newest first; "" for one that nothing contradicts.
        """
        if self.graph is None or memory_id not in self.graph:
            return ""
        others = self._newest_first(self.opponents(memory_id))
        told = [f"{short_id(one)} ({self._date(one)})" for one in others[:MOST_NAMED]]
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        return f"contradicted by {', '.join(told)}{more}"

    def _date(self, memory_id: str) -> str:
        assert self.graph is not None
        time = self.graph.nodes[memory_id]["time"]
        return iso(time)[: len("2026-01-31")] if time else "undated"

    def _newest_first(self, ids: Iterable[str]) -> tuple[str, ...]:
        assert self.graph is not None
        times = self.graph.nodes
        return tuple(sorted(ids, key=lambda one: (times[one]["time"], one), reverse=True))
