"""Rank the memories of a week by PageRank over what joins them.

Nodes are the week's memories and the entities that they name; an entity that two memories share
joins them without an edge for every pair. Written out and not taken from networkx, whose ranking
needs scipy: the same graph gives the same bits, in the order of the ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log2
from typing import NamedTuple

from memgraph.model.enums import EdgeType

# A contradiction or a replacement says the most about a week, mere kinship the least.
EDGE_WEIGHTS: Mapping[EdgeType, float] = {
    EdgeType.CONTRADICTS: 1.0,
    EdgeType.UPDATES: 1.0,
    EdgeType.CAUSED_BY: 0.8,
    EdgeType.PART_OF: 0.8,
    EdgeType.RELATED_TO: 0.5,
}
DERIVATION_WEIGHT = 0.5
DAMPING = 0.85
ROUNDS = 50


class WeightedEdge(NamedTuple):
    """Two nodes and how strongly they are joined; it has no direction."""

    one: str
    other: str
    weight: float


def edge_ties(edges: Iterable[tuple[str, str, EdgeType, float]]) -> list[WeightedEdge]:
    """Edges (from, to, type, weight 0..1) as ties."""
    return [
        WeightedEdge(first, second, EDGE_WEIGHTS[kind] * weight)
        for first, second, kind, weight in edges
    ]


def derivation_ties(pairs: Iterable[tuple[str, str]]) -> list[WeightedEdge]:
    return [WeightedEdge(first, second, DERIVATION_WEIGHT) for first, second in pairs]


def entity_ties(links: Iterable[tuple[str, str]]) -> list[WeightedEdge]:
    """Links (entity, memory) as ties; the more memories name an entity, the less each tie tells.

    Weight: 1 / log2(1 + n), where n >= 2 memories name it; one that a single memory names joins
    nothing.
    """
    by_entity: dict[str, list[str]] = {}
    for entity, memory_id in links:
        by_entity.setdefault(entity, []).append(memory_id)
    return [
        WeightedEdge(f"entity:{entity}", memory, 1.0 / log2(1 + len(memories)))
        for entity, memories in by_entity.items()
        if len(memories) > 1
        for memory in memories
    ]


def central(preference: Mapping[str, float], ties: Sequence[WeightedEdge]) -> dict[str, float]:
    """Return the centrality of each node; the values of all nodes and entities add up to 1.

    Source: Page, Brin, Motwani, Winograd, "The PageRank Citation Ranking", 1998; personalised: the
    walk begins anew at a memory with the chance of its preference.

    Args:
        preference: the memories, each with a value >= 0; not all 0.
        ties: between memories and entities; those with an unknown end that is no entity do nothing.

    Returns:
        The memories of ``preference`` alone.
    """
    total = sum(preference[memory_id] for memory_id in sorted(preference))
    if total <= 0.0:
        return dict.fromkeys(preference, 0.0)
    places = {
        tie
        for tie in ties
        if tie.weight > 0.0 and tie.other in preference and _is_node(tie.one, preference)
    }
    nodes = sorted({*preference, *(tie.one for tie in places)})
    place = {node: index for index, node in enumerate(nodes)}
    joined = [(place[tie.one], place[tie.other], tie.weight) for tie in sorted(places)]
    strength = [0.0] * len(nodes)
    for first, second, weight in joined:
        strength[first] += weight
        strength[second] += weight
    begin = [preference.get(node, 0.0) / total for node in nodes]
    rank = begin
    for _ in range(ROUNDS):
        # What has no ties gives its share back to the beginning.
        lost = sum(rank[index] for index, memory_id in enumerate(strength) if memory_id == 0.0)
        following = [(1.0 - DAMPING + DAMPING * lost) * memory_id for memory_id in begin]
        for first, second, weight in joined:
            following[second] += DAMPING * rank[first] * weight / strength[first]
            following[first] += DAMPING * rank[second] * weight / strength[second]
        rank = following
    return {node: rank[place[node]] for node in preference}


def _is_node(name: str, preference: Mapping[str, float]) -> bool:
    return name in preference or name.startswith("entity:")
