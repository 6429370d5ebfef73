"""Read the bounded neighbourhood of memories, breadth first along edges in both directions.

The queries exclude hidden memories on every hop: nothing is reached through them, and limits count
only visible ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from operator import attrgetter

from memgraph.model.enums import EdgeType
from memgraph.model.graph import Derivation, Subgraph
from memgraph.store import graph
from memgraph.store.graph import GraphStep
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MAX_NODES = 200
MAX_DEGREE = 50
EDGES_PER_NODE = 10


def subgraph(
    snapshot: Snapshot,
    view: View,
    ids: Sequence[str],
    *,
    hops: int = 1,
    max_nodes: int = MAX_NODES,
    edge_types: Collection[EdgeType] | None = None,
    max_degree: int = MAX_DEGREE,
) -> Subgraph:
    """Return the memories within ``hops`` of ``ids``, and the edges between them.

    See ``Graph.subgraph``. If a hop exceeds ``max_nodes``, or a node ``max_degree`` edges, the
    strongest edges are preferred, then the newest, then the higher edge id. Without ``edge_types``
    derivations are returned, too.
    """
    requested = list(dict.fromkeys(ids))
    follows_edges = edge_types is None or bool(edge_types)
    memories = graph.visible_memories(snapshot, requested, view)
    reasons = {"max_nodes"} if len(memories) > max_nodes else set()
    seeds = list(memories)[:max_nodes]
    kept = dict.fromkeys(seeds)

    def read(frontier: list[str]) -> list[GraphStep]:
        steps = graph.strongest_neighbours(snapshot, frontier, view, edge_types, max_degree + 1)
        followed, capped = _capped(steps, max_degree)
        if capped:
            reasons.add("max_degree")
        return sorted(followed, key=_strength, reverse=True)

    ends: list[tuple[str, str]] = []
    hops = hops if follows_edges else 0
    for steps in graph.read_hops(seeds, read, attrgetter("memory_id"), hops):
        fresh = dict.fromkeys(step.memory_id for step in steps if step.memory_id not in kept)
        room = max_nodes - len(kept)
        kept.update(dict.fromkeys(islice(fresh, room)))
        ends += ((step.origin_id, step.memory_id) for step in steps if step.memory_id in kept)
        if len(fresh) > room:
            reasons.add("max_nodes")
            break
    distances = _distances(seeds, kept, ends)
    nodes = {memory_id: memories[memory_id] for memory_id in seeds} | graph.visible_memories(
        snapshot, [memory_id for memory_id in distances if memory_id not in memories], view
    )
    limit = EDGES_PER_NODE * max_nodes
    edges = (
        graph.edges_among(snapshot, distances, view, edge_types, limit + 1) if follows_edges else []
    )
    derivations = (
        graph.derivations_among(snapshot, distances, view, limit + 1) if edge_types is None else []
    )
    if max(len(edges), len(derivations)) > limit:
        reasons.add("max_edges")
    return Subgraph(
        seeds=tuple(seeds),
        missing=tuple(memory_id for memory_id in requested if memory_id not in memories),
        nodes=tuple(nodes.values()),
        edges=tuple(edges[:limit]),
        sources=graph.sources_of(snapshot, nodes.values()),
        distances=distances,
        cut=bool(reasons),
        cut_reasons=tuple(sorted(reasons)),
        derivations=tuple(
            Derivation(memory_id=memory_id, derived_from_id=ground)
            for memory_id, ground in derivations[:limit]
        ),
    )


def _distances(
    seeds: Collection[str], kept: Iterable[str], ends: Sequence[tuple[str, str]]
) -> dict[str, int]:
    """Return the hops from the nearest seed to each of the memories, in their order."""
    if not ends:
        return dict.fromkeys(kept, 0)
    import networkx as nx

    steps = nx.DiGraph(ends)
    layers = nx.bfs_layers(steps, [seed for seed in seeds if seed in steps])
    hops = {one: distance for distance, layer in enumerate(layers) for one in layer}
    return {one: hops.get(one, 0) for one in kept}


def _strength(step: GraphStep) -> tuple[float, int, str]:
    return step.weight, step.created_at, step.edge_id


def _capped(steps: Iterable[GraphStep], max_degree: int) -> tuple[list[GraphStep], bool]:
    """Return the strongest steps of each origin, and whether any origin had more."""
    by_origin: dict[str, list[GraphStep]] = {}
    for step in steps:
        by_origin.setdefault(step.origin_id, []).append(step)
    capped: list[GraphStep] = []
    for own_steps in by_origin.values():
        own_steps.sort(key=_strength, reverse=True)
        capped.extend(own_steps[:max_degree])
    return capped, any(len(own_steps) > max_degree for own_steps in by_origin.values())


NEWEST_PAIRS = 5_000
"""The number of newest edges, and of derivations, that ``connected`` examines."""
NEAR_A_HUB = 12


def connected(snapshot: Snapshot, view: View, *, limit: int) -> list[str]:
    """Return the ids of the memories with the most neighbours; see ``LocalGraph.connected``.

    Only the newest ``NEWEST_PAIRS`` edges and as many derivations are examined. Each hub adds at
    most ``NEAR_A_HUB`` neighbours, so that no single hub fills the result.
    """
    import networkx as nx

    near = nx.Graph(graph.newest_pairs(snapshot, view, NEWEST_PAIRS))

    def rank(memory_id: str) -> tuple[int, str]:
        return -near.degree(memory_id), memory_id

    chosen: dict[str, None] = {}
    for hub in sorted(near, key=rank):
        if len(chosen) >= limit:
            break
        chosen.update(dict.fromkeys((hub, *sorted(near[hub], key=rank)[:NEAR_A_HUB])))
    return list(chosen)[:limit]
