"""Walk from memories along edges and derivations, on one networkx graph of the rows around them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from memgraph.model.enums import EdgeType
from memgraph.model.graph import Link
from memgraph.model.values import built
from memgraph.store import graph
from memgraph.store.graph import Direction, GraphStep
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

if TYPE_CHECKING:
    import networkx as nx

_ROWS_PER_NODE: Final = 4
"""Rows may lead to memories that were already visited, so more rows than nodes are read."""


@dataclass(slots=True)
class Walk:
    """The visible memories around others, and the bounded graph on which they are reached.

    Attributes:
        edge_types: the edges to follow. A mark of a change replaces nothing, and is not followed.
        derivations: also follow derivations.
        max_depth, max_nodes: the maximum number of steps, and of memories in one direction.
        graph: what was read, from the newer or dependent memory to the older one or its evidence;
            keyed by edge id, "" for a derivation. None: there is no edge.
        too_deep, too_many: whether more memories lie beyond the limits.
    """

    snapshot: Snapshot
    view: View
    edge_types: Collection[EdgeType]
    max_depth: int
    max_nodes: int
    derivations: bool = False
    graph: nx.MultiDiGraph[str] | None = None
    too_deep: bool = field(default=False, init=False)
    too_many: bool = field(default=False, init=False)

    def links(self, seeds: Collection[str], direction: Direction) -> tuple[Link, ...]:
        """Return the memories that are reached from others, each once, nearest and oldest first."""
        seeds = dict.fromkeys(seeds)
        self._read(seeds, direction)
        if self.graph is None:
            return ()
        import networkx as nx

        # Only a view: the rows of both directions are one graph.
        ahead = self.graph if direction is Direction.OUT else self.graph.reverse(copy=False)
        layers = nx.bfs_layers(ahead, [seed for seed in seeds if seed in ahead])
        links: list[Link] = []
        before: set[str] = set()
        for distance, layer in enumerate(layers):
            if distance > self.max_depth:
                self.too_deep = True
                break
            if distance:
                links += _links(ahead, layer, before, distance)
            before = set(layer)
        self.too_many = self.too_many or len(links) > self.max_nodes
        return tuple(links[: self.max_nodes])

    def reasons(self, too_many: str) -> set[str]:
        """Return the names of the limits that were reached: ``depth``, and the given one."""
        limits = {"depth": self.too_deep, too_many: self.too_many}
        return {name for name, reached in limits.items() if reached}

    def _read(self, seeds: Collection[str], direction: Direction) -> None:
        """Add the rows around the seeds to the graph, up to one step beyond the limits."""
        limit = _ROWS_PER_NODE * self.max_nodes

        def read(ids: list[str]) -> list[GraphStep]:
            steps = graph.linked(
                self.snapshot,
                ids,
                self.view,
                self.edge_types,
                direction,
                limit + 1,
                derivations=self.derivations,
            )
            self.too_many = self.too_many or len(steps) > limit
            return [
                step for step in steps if step.edge_type != EdgeType.UPDATES or step.weight >= 1.0
            ]

        reached: set[str] = set()
        for steps in graph.read_hops(seeds, read, attrgetter("memory_id"), self.max_depth + 1):
            self._add(steps, direction)
            reached.update(step.memory_id for step in steps if step.memory_id not in seeds)
            if len(reached) > self.max_nodes:
                break

    def _add(self, steps: Collection[GraphStep], direction: Direction) -> None:
        if not steps:
            return
        import networkx as nx

        if self.graph is None:
            self.graph = nx.MultiDiGraph()
        for step in steps:
            ends = step.origin_id, step.memory_id
            self.graph.add_edge(
                *(ends if direction is Direction.OUT else ends[::-1]),
                key=step.edge_id,
                edge_type=step.edge_type,
                created_at=step.created_at,
                partial=bool(step.partial),
            )


def _links(
    ahead: nx.MultiDiGraph[str], layer: Collection[str], before: Collection[str], distance: int
) -> list[Link]:
    """Return the links to the memories of a layer, each over the oldest edge from the last one."""
    links = []
    for memory_id in layer:
        edges = [
            (row["created_at"], memory_id, via_id, edge_id, row)
            for via_id, _, edge_id, row in ahead.in_edges(memory_id, keys=True, data=True)
            if via_id in before
        ]
        links.append(min(edges, key=_age))
    links.sort(key=_age)
    return [_link(via_id, memory_id, row, distance) for _, memory_id, via_id, _, row in links]


def _age(edge: tuple[int, str, str, str, Any]) -> tuple[int, str, str, str]:
    return edge[:4]


def _link(via_id: str, memory_id: str, row: dict[str, Any], distance: int) -> Link:
    fields = {
        "memory_id": memory_id,
        "via_id": via_id,
        "edge_type": None if row["edge_type"] is None else EdgeType(row["edge_type"]),
        "distance": distance,
        "partial": row["partial"],
    }
    return built(Link, fields)
