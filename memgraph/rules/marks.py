"""What memories are to each other: contradictions, changes, replacements and causes, as a graph.

Each edge of the graph runs from the later memory to the earlier one. networkx is loaded only if
there is an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memgraph.clock import iso
from memgraph.ids import short_id
from memgraph.model.enums import MarkKind
from memgraph.model.recall import Mark
from memgraph.model.values import Edge
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


class Replacement(NamedTuple):
    """A memory that replaced the whole of another, or won a contradiction with it.

    Attributes:
        is_winner: True for the winner of a contradiction; such successors come last.
        since: when the edge was stored, milliseconds.
    """

    is_winner: bool
    since: int
    new: str
    old: str
    edge_id: str


class Succession(NamedTuple):
    """The successors of a replaced memory, nearest first, and those that nothing replaced."""

    chain: tuple[str, ...]
    ends: tuple[str, ...]


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


class MarkGraph:
    """The bounded graph of one answer: what was read of the memories that it is about.

    Attributes:
        graph: an edge has a ``pair``, a ``replacement`` or neither, and is keyed by its edge id;
            None: there is no edge.
    """

    def __init__(self) -> None:
        self.graph: nx.MultiDiGraph[str] | None = None
        self._paired: set[str] = set()
        self._read: set[str] = set()
        self._pairs_by_side: dict[str, tuple[list[Pair], list[Pair]]] = {}

    def unread(self, memory_ids: Iterable[str]) -> list[str]:
        """Return the memories whose pairs were not added yet."""
        return [one for one in dict.fromkeys(memory_ids) if one not in self._read]

    def add_pairs(self, pairs: Iterable[Pair], of: Iterable[str] = ()) -> None:
        """Add pairs; one may occur twice, once from either side.

        Args:
            of: the memories whose pairs these are, all of them.
        """
        self._read.update(of)
        self._pairs_by_side.clear()
        for pair in {pair.edge_id: pair for pair in pairs}.values():
            later, earlier = pair.later, pair.earlier
            graph = self._add(later.memory_id, earlier.memory_id, pair.edge_id, pair=pair)
            for side in (later, earlier):
                graph.add_node(side.memory_id, time=side.time)
                self._paired.add(side.memory_id)

    def add_replacements(self, replacements: Iterable[Replacement]) -> None:
        """Add the steps of which ``succession`` consists."""
        for step in replacements:
            self._add(step.new, step.old, step.edge_id, replacement=step)

    def _add(
        self, later: str, earlier: str, edge_id: str, **fields: Pair | Replacement
    ) -> nx.MultiDiGraph[str]:
        if self.graph is None:
            import networkx as nx

            self.graph = nx.MultiDiGraph()
        self.graph.add_edge(later, earlier, key=edge_id, **fields)
        return self.graph

    def __contains__(self, memory_id: str) -> bool:
        """Return True if a memory is a side of a pair."""
        return memory_id in self._paired

    @property
    def is_apart(self) -> bool:
        """True if no memory must be placed next to another."""
        if self.graph is None:
            return True
        pairs = _values(self.graph.edges(data="pair"))
        return all(pair.kind is PairKind.REPLACES for pair in pairs)

    def succession(self, memory_id: str) -> Succession | None:
        """Return what replaced a memory, over several steps; None: nothing did."""
        graph = self.graph
        if graph is None or memory_id not in graph:
            return None
        import networkx as nx

        def newer(old: str) -> list[str]:
            return [step.new for step in sorted(_values(graph.in_edges(old, data="replacement")))]

        chain = tuple(new for _, new in nx.generic_bfs_edges(graph, memory_id, newer))
        if not chain:
            return None
        ends = tuple(new for new in chain if not newer(new))
        return Succession(chain, ends or chain)

    def components(self, edges: Iterable[Edge]) -> dict[str, int]:
        """Add edges; return the number of the connected component of each of their ends."""
        keys: list[Any] = []
        for edge in edges:
            self._add(edge.from_id, edge.to_id, edge.edge_id)
            keys.append((edge.from_id, edge.to_id, edge.edge_id))
        if self.graph is None or not keys:
            return {}
        import networkx as nx

        joined = nx.weakly_connected_components(self.graph.edge_subgraph(keys))
        return {one: number for number, matter in enumerate(joined) for one in matter}

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
        return all(
            pair.weight < 1.0
            for pairs in self._sides(memory_id)
            for pair in pairs
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
        return self._newest_first({*contradicting, *self._reached(memory_id, self._later)})

    def earlier(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of what a memory contradicts or changes, newest first; see ``later``."""
        if memory_id not in self:
            return ()
        contradicted = self._earlier(memory_id, (PairKind.CONTRADICTS,))
        return self._newest_first({*contradicted, *self._reached(memory_id, self._earlier)})

    def amendments(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of the memories that replaced a part of this one, newest first."""
        return self._newest_first(self._later(memory_id, (PairKind.AMENDS,)))

    def changed_by(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of the memories that probably changed this one, newest first."""
        return self._newest_first(self._reached(memory_id, self._later))

    def changes(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of what a memory probably changed, newest first."""
        return self._newest_first(self._reached(memory_id, self._earlier))

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
        into, out_of = self._sides(memory_id)
        pairs = [(pair, pair.later) for pair in into] + [(pair, pair.earlier) for pair in out_of]
        kinds = list(PairKind)
        pairs.sort(key=lambda each: each[1], reverse=True)
        return sorted(pairs, key=lambda each: kinds.index(each[0].kind))

    def _reached(self, memory_id: str, step: Callable[..., set[str]]) -> set[str]:
        """Return all memories that a memory leads to by changes, in one direction."""
        kinds = (PairKind.CHANGES,)
        if self.graph is None or not step(memory_id, kinds):
            return set()
        import networkx as nx

        edges = nx.generic_bfs_edges(self.graph, memory_id, lambda one: step(one, kinds))
        return {other for _, other in edges}

    def _later(self, memory_id: str, kinds: Collection[PairKind]) -> set[str]:
        return {pair.later.memory_id for pair in self._sides(memory_id)[0] if pair.kind in kinds}

    def _earlier(self, memory_id: str, kinds: Collection[PairKind]) -> set[str]:
        return {pair.earlier.memory_id for pair in self._sides(memory_id)[1] if pair.kind in kinds}

    def _sides(self, memory_id: str) -> tuple[list[Pair], list[Pair]]:
        """Return the pairs into and out of a memory; a view of a graph is slow to iterate."""
        if self.graph is None or memory_id not in self._paired:
            return [], []
        if memory_id not in self._pairs_by_side:
            self._pairs_by_side[memory_id] = (
                _values(self.graph.in_edges(memory_id, data="pair")),
                _values(self.graph.out_edges(memory_id, data="pair")),
            )
        return self._pairs_by_side[memory_id]

    def _newest_first(self, ids: Iterable[str]) -> tuple[str, ...]:
        if self.graph is None:
            return ()
        times = self.graph.nodes
        return tuple(
            sorted(ids, key=lambda memory_id: (times[memory_id]["time"], memory_id), reverse=True)
        )


def _values(edges: Iterable[tuple[str, str, Any]]) -> list[Any]:
    """Return the values of the edges that have one."""
    return [field for *_, field in edges if field is not None]


def _date(side: ConflictSide) -> str:
    return iso(side.time)[: len("2026-01-31")] if side.time else "undated"
