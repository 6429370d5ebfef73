"""What a recall reads off the graph around its candidates: open contradictions, stale grounds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from memgraph.model.enums import MemoryStatus
from memgraph.policy.ranking import BASIS_EDGES, stands_on_stale_basis
from memgraph.storage import graph_queries, recall_graph
from memgraph.storage.graph_queries import Direction
from memgraph.storage.visibility import View

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
    statuses = recall_graph.statuses(connection, sorted({step.memory_id for step in grounds}), view)
    against = _by_first(pairs)
    below = _by_first((step.origin_id, step.memory_id) for step in grounds)
    return Standing(
        contradicted_by={
            one: tuple(sorted(against[one])) for one in sorted(memory_ids) if one in against
        },
        stale=frozenset(
            one
            for one in memory_ids
            if stands_on_stale_basis(
                statuses.get(ground, MemoryStatus.RETRACTED) for ground in below.get(one, ())
            )
        ),
    )


def _by_first(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    # One step needs no graph library, and loading one is a quarter of a second.
    found: dict[str, set[str]] = {}
    for one, other in pairs:
        found.setdefault(one, set()).add(other)
    return found
