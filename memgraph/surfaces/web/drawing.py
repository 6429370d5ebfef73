"""Memories and edges as the JSON that the graph explorer draws."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from memgraph.clock import iso
from memgraph.model.cases import Stale
from memgraph.model.enums import EdgeType
from memgraph.model.graph import Subgraph
from memgraph.model.values import Edge, Memory

DERIVED: Final = "DerivedFrom"
"""The explorer's name for the relation from a memory to its evidence; not a stored edge."""
EDGES: Final = (*(each.value for each in EdgeType), DERIVED)

Step = tuple[str, str, str]
"""The two memories and the type of the edge between them."""


@dataclass(frozen=True, slots=True)
class Staleness:
    """Memories with retracted evidence.

    Attributes:
        ids: of such memories.
        steps: on the paths from them to their evidence.
    """

    ids: Collection[str] = frozenset()
    steps: Sequence[Step] = field(default=())


def staleness(items: Iterable[Stale]) -> Staleness:
    """Return the marks for memories with retracted evidence."""
    ids, steps = set(), []
    for each in items:
        ids.add(each.memory.memory_id)
        for step in each.premise.path:
            kind = DERIVED if step.edge_type is None else step.edge_type.value
            steps.append((step.memory_id, step.ground_id, kind))
    return Staleness(ids, steps)


def drawing(found: Subgraph, stale: Staleness, *, as_of: int | None) -> dict[str, Any]:
    """Return a neighbourhood as plain JSON; texts are unescaped, for a script that sets text."""
    drawn = {each.memory_id for each in found.nodes}
    marked = {frozenset(step[:2]) for step in stale.steps}
    edges = [_edge(each, frozenset((each.from_id, each.to_id)) in marked) for each in found.edges]
    return {
        "nodes": [_node(each, each.memory_id in stale.ids) for each in found.nodes],
        "edges": edges + list(_derivations(stale.steps, drawn)),
        "missing": list(found.missing),
        "cut": found.cut,
        "cut_reasons": list(found.cut_reasons),
        "as_of": None if as_of is None else iso(as_of),
    }


def _node(memory: Memory, stale: bool) -> dict[str, Any]:
    return {
        "id": memory.memory_id,
        "summary": memory.summary,
        "type": memory.type.value,
        "kind": memory.kind.value,
        "status": memory.shown_status.value,
        "importance": memory.importance,
        "confidence": memory.confidence,
        "created_at": iso(memory.created_at),
        "stale": stale,
    }


def _edge(edge: Edge, stale: bool) -> dict[str, Any]:
    contradicts = edge.edge_type is EdgeType.CONTRADICTS
    return {
        "id": edge.edge_id,
        "source": edge.from_id,
        "target": edge.to_id,
        "type": edge.edge_type.value,
        "open": contradicts and edge.resolved_at is None,
        "stale": stale,
    }


def _derivations(steps: Iterable[Step], drawn: Collection[str]) -> Iterable[dict[str, Any]]:
    """Yield derivations on a stale path, between two drawn memories: they are no stored edges."""
    for origin, ground, kind in dict.fromkeys(steps):
        if kind == DERIVED and origin in drawn and ground in drawn:
            yield {
                "id": f"derived:{origin}:{ground}",
                "source": origin,
                "target": ground,
                "type": DERIVED,
                "open": False,
                "stale": True,
            }
