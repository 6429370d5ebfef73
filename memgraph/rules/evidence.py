"""Confidence by repetition: independent sources raise it, others do not.

The confidence of a memory with n independent sources is ``C - (C - base) x k^(n-1)``: each further
source removes the same share of the distance to a ceiling C below certainty. This is a bounded form
of the noisy-OR of J. Pearl, "Probabilistic Reasoning in Intelligent Systems", 1988, chapter 4:
however many sources repeat a statement, only a person's confirmation makes it certain. A speaker
who repeats a statement is not a further source.

Sources are stored with a memory, each once, so a known source adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from memgraph.model.enums import EdgeType
from memgraph.model.sources import NamedSource

if TYPE_CHECKING:
    import networkx as nx

CEILING = 0.95
SHARE_KEPT = 0.7
"""k: the share of the distance to the ceiling that is left after one further source."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a statement: a conversation, a file, or a run of a workflow.

    Attributes:
        names: the names of the source; two origins that share one are the same.
        speakers: who said it there; empty for a source without speakers.
        words: hashes of the turns that state it.
    """

    names: frozenset[NamedSource] = frozenset()
    speakers: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


def independent_sources(own: Iterable[Origin], supports: Iterable[Origin]) -> int:
    """Return the number of independent sources of a memory, at least 1.

    Args:
        own: the origins of the memory: its source, the session in which it was said.
        supports: further sources in the order in which they were added. A source that shares its
            conversation, file or run with an earlier one is the same source, and a source without
            any of these does not count. Nor does one with a known speaker or a known turn (a copy).
    """
    number, names, speakers, words = 1, set[NamedSource](), set[str](), set[str]()
    for is_own, origins in ((True, own), (False, supports)):
        for origin in origins:
            copied = not origin.words.isdisjoint(words)
            known = copied or not origin.speakers.isdisjoint(speakers)
            number += (
                not (is_own or known) and bool(origin.names) and origin.names.isdisjoint(names)
            )
            names |= origin.names
            words |= origin.words
            # The speaker of a copy is not known: a statement in their own words still counts.
            speakers |= frozenset() if copied and not is_own else origin.speakers
    return number


def stands_without(
    own: Iterable[Origin], supports: Iterable[Origin], is_refuted: Callable[[Origin], bool]
) -> bool:
    """Return True if a memory has support left without its own source.

    Args:
        own: see ``independent_sources``; none of it counts.
        is_refuted: returns True for a further source that does not count either. Sources that
            share a name or a turn with one of these do not count.
    """
    further = list(supports)
    lost = [*own, *(origin for origin in further if is_refuted(origin))]
    names = frozenset().union(*(origin.names for origin in lost))
    words = frozenset().union(*(origin.words for origin in lost))
    return any(
        bool(origin.names) and origin.names.isdisjoint(names) and origin.words.isdisjoint(words)
        for origin in further
        if not is_refuted(origin)
    )


def strengthened(confidence: float, before: int, after: int) -> float:
    """Return the confidence after the number of sources has grown; never lower than before."""
    if after <= before or confidence >= CEILING:
        return confidence
    return CEILING - (CEILING - confidence) * float(SHARE_KEPT ** (after - before))


def weakened(confidence: float, gained: Iterable[tuple[float, float]]) -> float:
    """Return the confidence without the gains from retracted sources.

    Each gain removed a share of the distance to the ceiling; this share is added again. A
    confidence that a person confirmed does not change.

    Args:
        gained: the confidence before and after each gain.
    """
    missing = CEILING - confidence
    if missing <= 0.0:
        return confidence
    for before, after in gained:
        if before < after < CEILING:
            missing *= (CEILING - before) / (CEILING - after)
    return max(CEILING - missing, 0.0)


# Memories that depend on refuted evidence by derivations, CausedBy and PartOf, within a limit.


BASIS_EDGES: Final = frozenset({EdgeType.CAUSED_BY, EdgeType.PART_OF})
"""Types of edges from a memory to another on which it depends."""
MAX_HOPS: Final = 6
"""The maximum number of steps from a memory to refuted evidence."""


class Dependency(NamedTuple):
    """A memory depends on another. ``edge_type`` None: it was derived from it."""

    dependent_id: str
    ground_id: str
    edge_type: str | None
    edge_id: str = ""


class RefutedEvidence(NamedTuple):
    """Evidence that was retracted or superseded.

    Attributes:
        since: when it ended, milliseconds.
        replaced_by: the ids of its successors.
    """

    since: int
    replaced_by: frozenset[str] = frozenset()


def evidence_graph(bases: Iterable[Dependency]) -> nx.MultiDiGraph[str]:
    """Return the graph of dependencies, from a memory to its evidence; loads networkx."""
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    # In the order of ids, so that of several shortest paths the one with the lowest ids is taken.
    for dependent, ground, edge_type, edge_id in sorted(bases, key=_by_ids):
        graph.add_edge(dependent, ground, key=edge_id, edge_type=edge_type)
    return graph


def broken_paths(
    graph: nx.MultiDiGraph[str],
    refuted: Mapping[str, RefutedEvidence],
    *,
    max_hops: int = MAX_HOPS,
) -> dict[str, tuple[Dependency, ...]]:
    """Return for each memory that depends on refuted evidence the path to it; pure.

    With several pieces of refuted evidence, the one that ended last counts, ties by the highest
    id; with several paths, the shortest, ties by ids.

    Args:
        graph: as of ``evidence_graph``.
        refuted: the refuted evidence, by memory id.
        max_hops: the maximum length of a path.

    Returns:
        The paths by memory id; each begins at the memory and ends at the refuted evidence.
    """
    import networkx as nx

    paths: dict[str, tuple[Dependency, ...]] = {}
    # The order in which refuted evidence is listed, so that every page gives the same result.
    newest = sorted(refuted.items(), key=lambda item: (item[1].since, item[0]), reverse=True)
    for ground, ending in newest:
        if ground not in graph:
            continue
        but = ending.replaced_by - {ground}
        passable = graph if but.isdisjoint(graph) else nx.restricted_view(graph, but, ())
        for dependent, way in nx.single_target_shortest_path(passable, ground, max_hops).items():
            if dependent != ground and dependent not in paths:
                paths[dependent] = tuple(_step(graph, *ends) for ends in pairwise(way))
    return paths


def _step(graph: nx.MultiDiGraph[str], dependent: str, ground: str) -> Dependency:
    """Return the step between two memories; of several the lowest by type and edge id."""
    steps = graph[dependent][ground].items()
    edge_type, edge_id = min((row["edge_type"] or "", edge_id) for edge_id, row in steps)
    return Dependency(dependent, ground, edge_type or None, edge_id)


def _by_ids(basis: Dependency) -> tuple[str, str, str, str]:
    return basis.ground_id, basis.dependent_id, basis.edge_type or "", basis.edge_id
