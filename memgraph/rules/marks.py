"""What two memories are to each other: contradictions, changes and replacements, as a graph.

Each edge of the graph runs from the later memory to the earlier one. networkx is loaded only if
there is an edge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from memgraph.clock import iso
from memgraph.ids import short_id
from memgraph.model.enums import MarkKind
from memgraph.model.recall import Mark
from memgraph.rules.contradictions import MOST_NAMED, ConflictSide

if TYPE_CHECKING:
    import networkx as nx

MOST_MARKS: Final = 10
"""The marks of one memory that an answer lists."""


class PairKind(StrEnum):
    """What the later memory does to the earlier one.

    ``contradicts``: unresolved. ``changes``: probably, nobody decided it. ``amends``: it replaced a
    part. ``replaces``: it replaced the whole.
    """

    CONTRADICTS = "contradicts"
    CHANGES = "changes"
    AMENDS = "amends"
    REPLACES = "replaces"


class Pair(NamedTuple):
    """Two memories, and the edge between them.

    Attributes:
        weight: 0..1, the probability that the edge is right; 1: somebody stated it.
    """

    kind: PairKind
    later: ConflictSide
    earlier: ConflictSide
    weight: float
    edge_id: str
    reason: str | None = None


_NAMES: Final = {
    PairKind.CONTRADICTS: (MarkKind.CONTRADICTS, MarkKind.CONTRADICTS),
    PairKind.CHANGES: (MarkKind.CHANGES, MarkKind.CHANGED_BY),
    PairKind.AMENDS: (MarkKind.REPLACES, MarkKind.REPLACED_BY),
    PairKind.REPLACES: (MarkKind.REPLACES, MarkKind.REPLACED_BY),
}
"""The mark of the later memory, and that of the earlier one."""
_NOTES: Final = {
    MarkKind.CONTRADICTS: "contradicts",
    MarkKind.CHANGED_BY: "probably changed by",
    MarkKind.CHANGES: "probably changes",
}


@dataclass(frozen=True)
class Pairs:
    """The pairs of some memories; empty if ``graph`` is None."""

    graph: nx.MultiDiGraph[str] | None = None

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> Pairs:
        """Build the graph; a pair may occur twice, once from either side."""
        by_edge = {pair.edge_id: pair for pair in pairs}
        if not by_edge:
            return cls()
        import networkx as nx

        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        for pair in by_edge.values():
            for side in (pair.later, pair.earlier):
                graph.add_node(side.memory_id, time=side.time)
            ends = pair.later.memory_id, pair.earlier.memory_id
            graph.add_edge(*ends, key=pair.edge_id, pair=pair)
        return cls(graph)

    def __contains__(self, memory_id: str) -> bool:
        return self.graph is not None and memory_id in self.graph

    def __or__(self, more: Pairs) -> Pairs:
        """Return the union of two graphs."""
        if self.graph is None or more.graph is None:
            return self if more.graph is None else more
        import networkx as nx

        joined: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        for graph in (self.graph, more.graph):
            joined.update(graph)
        return Pairs(joined)

    @cached_property
    def is_apart(self) -> bool:
        """True if no memory must be placed next to another."""
        graph = self.graph
        return graph is None or all(
            pair.kind is PairKind.REPLACES for pair in map(_pair_of, graph.edges(data="pair"))
        )

    def is_contested(self, memory_id: str) -> bool:
        """Return True if a memory is a side of an open contradiction."""
        return memory_id in self and bool(self.opponents(memory_id))

    def opponents(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of the memories that contradict this one, sorted."""
        if memory_id not in self:
            return ()
        kinds = (PairKind.CONTRADICTS,)
        return tuple(sorted({*self._later(memory_id, kinds), *self._earlier(memory_id, kinds)}))

    def is_probable(self, memory_id: str, other_id: str) -> bool:
        """Return True if nobody stated that two memories contradict each other."""
        edges = [*self._into(memory_id), *self._out_of(memory_id)]
        return all(
            pair.weight < 1.0
            for pair in edges
            if pair.kind is PairKind.CONTRADICTS
            and other_id in (pair.later.memory_id, pair.earlier.memory_id)
        )

    def later(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of the memories that contradict or change a memory later, newest first.

        Changes are followed: what changed a change counts as well.
        """
        if memory_id not in self:
            return ()
        contradicting = self._later(memory_id, (PairKind.CONTRADICTS,))
        return self._newest_first({*contradicting, *self._changing(memory_id)})

    def earlier(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of what a memory contradicts or changes, newest first; see ``later``."""
        if memory_id not in self:
            return ()
        contradicted = self._earlier(memory_id, (PairKind.CONTRADICTS,))
        return self._newest_first({*contradicted, *self._changed(memory_id)})

    def amendments(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of the memories that replaced a part of this one, newest first."""
        return self._newest_first(self._later(memory_id, (PairKind.AMENDS,)))

    def changed_by(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of the memories that probably changed this one, newest first."""
        return self._newest_first(self._changing(memory_id))

    def changes(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of what a memory probably changed, newest first."""
        return self._newest_first(self._changed(memory_id))

    def marks(self, memory_id: str) -> tuple[Mark, ...]:
        """Return the marks of a memory: contradictions and changes before what is in force."""
        return tuple(
            Mark(
                kind=_NAMES[pair.kind][other == pair.later],
                memory_id=other.memory_id,
                weight=pair.weight,
                edge_id=pair.edge_id,
                reason=pair.reason,
            )
            for pair, other in self._pairs_of(memory_id)[:MOST_MARKS]
        )

    def note(self, memory_id: str) -> str:
        """Return what a prompt says of a memory: "contradicts …", "probably changed by …".

        With the short ids and dates of the others, newest first; "" for a memory without a mark.
        """
        others: dict[str, list[ConflictSide]] = {}
        for pair, other in self._pairs_of(memory_id):
            kind = _NAMES[pair.kind][other == pair.later]
            if kind not in _NOTES:
                continue
            note = _NOTES[kind]
            if kind is MarkKind.CONTRADICTS and self.is_probable(memory_id, other.memory_id):
                note = f"probably {note}"
            if other not in others.setdefault(note, []):
                others[note].append(other)
        notes = []
        for note, sides in others.items():
            labels = [f"{short_id(side.memory_id)} ({_date(side)})" for side in sides[:MOST_NAMED]]
            more = f" and {len(sides) - MOST_NAMED} more" if len(sides) > MOST_NAMED else ""
            notes.append(f"{note} {', '.join(labels)}{more}")
        return "; ".join(notes)

    def _pairs_of(self, memory_id: str) -> list[tuple[Pair, ConflictSide]]:
        """Return the pairs of a memory with the other side: by kind, then newest first."""
        if memory_id not in self:
            return []
        pairs = [
            *((pair, pair.later) for pair in self._into(memory_id)),
            *((pair, pair.earlier) for pair in self._out_of(memory_id)),
        ]
        kinds = list(PairKind)
        pairs.sort(key=lambda each: each[1], reverse=True)
        return sorted(pairs, key=lambda each: kinds.index(each[0].kind))

    @cached_property
    def _changes(self) -> nx.DiGraph[str] | None:
        """The probable changes alone; None if there are none."""
        if self.graph is None:
            return None
        pairs = map(_pair_of, self.graph.edges(data="pair"))
        ends = [
            (pair.later.memory_id, pair.earlier.memory_id)
            for pair in pairs
            if pair.kind is PairKind.CHANGES
        ]
        if not ends:
            return None
        import networkx as nx

        return nx.DiGraph(ends)

    def _changing(self, memory_id: str) -> set[str]:
        """Return all memories that lead to a memory by changes."""
        if self._changes is None or memory_id not in self._changes:
            return set()
        import networkx as nx

        return nx.ancestors(self._changes, memory_id)

    def _changed(self, memory_id: str) -> set[str]:
        """Return all memories that a memory leads to by changes."""
        if self._changes is None or memory_id not in self._changes:
            return set()
        import networkx as nx

        return nx.descendants(self._changes, memory_id)

    def _later(self, memory_id: str, kinds: Collection[PairKind]) -> set[str]:
        return {pair.later.memory_id for pair in self._into(memory_id) if pair.kind in kinds}

    def _earlier(self, memory_id: str, kinds: Collection[PairKind]) -> set[str]:
        return {pair.earlier.memory_id for pair in self._out_of(memory_id) if pair.kind in kinds}

    def _into(self, memory_id: str) -> list[Pair]:
        """Return the pairs of which a memory is the earlier side."""
        graph = self.graph
        if graph is None or memory_id not in graph:
            return []
        return list(map(_pair_of, graph.in_edges(memory_id, data="pair")))

    def _out_of(self, memory_id: str) -> list[Pair]:
        """Return the pairs of which a memory is the later side."""
        graph = self.graph
        if graph is None or memory_id not in graph:
            return []
        return list(map(_pair_of, graph.out_edges(memory_id, data="pair")))

    def _newest_first(self, ids: Iterable[str]) -> tuple[str, ...]:
        if self.graph is None:
            return ()
        times = self.graph.nodes
        return tuple(
            sorted(ids, key=lambda memory_id: (times[memory_id]["time"], memory_id), reverse=True)
        )


def _pair_of(edge: tuple[str, str, Pair]) -> Pair:
    return edge[2]


def _date(side: ConflictSide) -> str:
    return iso(side.time)[: len("2026-01-31")] if side.time else "undated"
