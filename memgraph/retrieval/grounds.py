"""What a recall reads off the graph around its candidates: open contradictions, stale grounds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sqlalchemy as sa

from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.policy.ranking import BASIS_EDGES, stands_on_stale_basis
from memgraph.storage import graph_queries, recall_graph
from memgraph.storage.graph_queries import Direction
from memgraph.storage.visibility import View

if TYPE_CHECKING:
    import networkx as nx

MAX_LINKS = 2_000


@dataclass(frozen=True, slots=True)
class Standing:
    """How candidates stand in the graph.

    Attributes:
        contradicted_by: ids of the active memories that contradict one, unresolved, sorted.
        stale: ids of candidates that stand on a ground that is no longer active.
    """

    contradicted_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stale: frozenset[str] = frozenset()


def standing(connection: sa.Connection, memory_ids: Collection[str], view: View) -> Standing:
    """Looks one step around the candidates; hidden memories count for nothing."""
    pairs = recall_graph.open_contradictions(connection, memory_ids, view, MAX_LINKS)
    grounds = graph_queries.linked(
        connection,
        memory_ids,
        View(view.viewer, view.as_of),
        sorted(BASIS_EDGES),
        Direction.OUT,
        MAX_LINKS,
        derivations=True,
    )
    if not pairs and not grounds:
        return Standing()
    graph = _graph(pairs, [(step.memory_id, step.origin_id) for step in grounds])
    statuses = recall_graph.statuses(connection, sorted({step.memory_id for step in grounds}), view)
    return Standing(
        contradicted_by={
            one: tuple(sorted(found))
            for one in sorted(memory_ids)
            if (found := _joined(graph, one, EdgeType.CONTRADICTS))
        },
        stale=frozenset(
            one
            for one in memory_ids
            if stands_on_stale_basis(
                statuses.get(ground, MemoryStatus.RETRACTED) for ground in _grounds(graph, one)
            )
        ),
    )


def _graph(
    contradictions: Collection[tuple[str, str]], grounds: Collection[tuple[str, str]]
) -> nx.MultiDiGraph[str]:
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for one, other in contradictions:
        graph.add_edge(one, other, key=EdgeType.CONTRADICTS)
    for ground, one in grounds:
        graph.add_edge(one, ground, key=EdgeType.CAUSED_BY)
    return graph


def _joined(graph: nx.MultiDiGraph[str], one: str, key: EdgeType) -> list[str]:
    if one not in graph:
        return []
    return [other for _, other, kind in graph.out_edges(one, keys=True) if kind is key]


def _grounds(graph: nx.MultiDiGraph[str], one: str) -> list[str]:
    return _joined(graph, one, EdgeType.CAUSED_BY)
