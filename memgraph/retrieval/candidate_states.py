"""Read the graph around a recall's candidates: open contradictions, stale grounds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from memgraph.model.enums import EdgeType
from memgraph.rules.contradictions import Conflicts
from memgraph.rules.evidence import BASIS_EDGES
from memgraph.store import evidence, graph
from memgraph.store.graph import Direction
from memgraph.store.recall import GraphContents
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MAX_LINKS = 2_000


@dataclass(frozen=True, slots=True)
class CandidateStates:
    """The state of candidates in the graph.

    Attributes:
        conflicts: the unresolved contradictions with active memories.
        stale: ids of candidates that stand on a ground that was replaced or taken back.
        amended_by: ids of what was written to update one and leave the rest of it, newest first.
    """

    conflicts: Conflicts = field(default_factory=Conflicts)
    stale: frozenset[str] = frozenset()
    amended_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_apart(self) -> bool:
        """Return True when nothing has to stand beside any of them."""
        return self.conflicts.graph is None and not self.amended_by

    def __or__(self, more: CandidateStates) -> CandidateStates:
        """Return the state of these and more candidates."""
        return CandidateStates(
            self.conflicts | more.conflicts,
            self.stale | more.stale,
            {**self.amended_by, **more.amended_by},
        )


def standing(
    snapshot: Snapshot, memory_ids: Collection[str], view: View, ties: GraphContents
) -> CandidateStates:
    """Looks one step around the candidates, and down to their grounds; hidden ones do not count.

    Args:
        ties: what joins memories at all; what there is none of is not looked for.
    """
    conflicts = Conflicts()
    stale: Collection[str] = ()
    amended: dict[str, tuple[str, ...]] = {}
    if EdgeType.CONTRADICTS in ties.edge_types:
        conflicts = Conflicts.of(graph.open_contradictions(snapshot, memory_ids, view, MAX_LINKS))
    if ties.derivations or not BASIS_EDGES.isdisjoint(ties.edge_types):
        stale = evidence.broken(snapshot, memory_ids, view)
    if EdgeType.UPDATES in ties.edge_types:
        amended = _amended(snapshot, memory_ids, view)
    return CandidateStates(conflicts, frozenset(stale), amended)


def _amended(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> dict[str, tuple[str, ...]]:
    steps = graph.linked(snapshot, memory_ids, view, [EdgeType.UPDATES], Direction.IN, MAX_LINKS)
    found: dict[str, list[str]] = {}
    for step in reversed(steps):
        # A classifier's guess weighs less, and moves nothing.
        if step.partial and step.weight >= 1.0:
            found.setdefault(step.origin_id, []).append(step.memory_id)
    return {one: tuple(each) for one, each in found.items()}
