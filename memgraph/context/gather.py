"""The candidates of a context, read in one snapshot: recalled, held and most important ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memgraph.context.candidates import ContextCandidate
from memgraph.model.context import Tier, TierShares
from memgraph.model.enums import EdgeType
from memgraph.model.recall import RecallItem
from memgraph.model.values import Memory, StoredSource
from memgraph.retrieval.citation import citation, short_citation
from memgraph.rules.contradictions import Conflicts
from memgraph.rules.decay import confidence_at
from memgraph.store import graph, items, recall
from memgraph.store.recall import RecallFilter
from memgraph.store.snapshot import Snapshot

MAX_TASK_ITEMS = 200
"""Of a task with more items the first hundred and the last hundred are considered."""

MOST_BESIDE_RECALL = 10
MAX_CONTRADICTIONS = 2_000
_TIERS = {tier.scope: tier for tier in Tier}


@dataclass(frozen=True, slots=True)
class GatherRequest:
    """The task, project and limits of the candidates.

    Attributes:
        task_id, project_id: None: there is none.
        most: the maximum number of useful memories; recall uses the same.
        exponent: of the decay.
    """

    task_id: str | None
    project_id: str | None
    shares: TierShares
    most: int
    exponent: float


def gathered(
    snapshot: Snapshot,
    narrowing: RecallFilter,
    wanted: GatherRequest,
    recalled: Sequence[RecallItem],
) -> list[ContextCandidate]:
    """Return the candidates, each memory once.

    They are what was recalled, what the task holds, the most important ones of its project and of
    the global tier, and the other sides of their open contradictions.
    """
    found = {item.memory.memory_id: item.memory for item in recalled}
    # Where recall has found enough, only a few may be more important than relevant.
    most = wanted.most if len(recalled) < wanted.most else min(MOST_BESIDE_RECALL, wanted.most)
    for each in _held(snapshot, narrowing, wanted, most):
        found.setdefault(each.memory_id, each)
    conflicts = _conflicts(snapshot, narrowing, found)
    sides = {
        other: one
        for one in conflicts.memory_ids
        for other in conflicts.opponents(one)
        if other not in found
    }
    for each in items.by_ids(snapshot, narrowing, sorted(sides)):
        found[each.memory_id] = each
    ranks = {item.memory.memory_id: rank for rank, item in enumerate(recalled, start=1)}
    brought = {item.memory.memory_id: item.brought_by for item in recalled}
    confidence = {item.memory.memory_id: item.effective_confidence for item in recalled}
    source_of = _sources(snapshot, recalled, found.values())
    return [
        ContextCandidate(
            memory,
            _TIERS[memory.scope],
            citation(memory, source_of(memory)),
            short_citation(memory, source_of(memory)),
            confidence.get(one) or confidence_at(memory, narrowing.at, wanted.exponent),
            None if brought.get(one) else ranks.get(one),
            brought.get(one) or sides.get(one),
            conflicts.opponents(one),
            conflicts.mark(one),
        )
        for one, memory in found.items()
    ]


def _held(
    snapshot: Snapshot, narrowing: RecallFilter, wanted: GatherRequest, most: int
) -> Iterable[Memory]:
    shares = wanted.shares
    if wanted.task_id is not None and shares.task:
        yield from items.first_and_last(
            snapshot, narrowing, Tier.TASK.scope, wanted.task_id, MAX_TASK_ITEMS
        )
    if wanted.project_id is not None and shares.project:
        yield from items.most_important(
            snapshot, narrowing, Tier.PROJECT.scope, wanted.project_id, most
        )
    if shares.everywhere:
        yield from items.most_important(snapshot, narrowing, Tier.GLOBAL.scope, None, most)


def _conflicts(
    snapshot: Snapshot, narrowing: RecallFilter, found: Mapping[str, Memory]
) -> Conflicts:
    """Return the open contradictions of the candidates."""
    if EdgeType.CONTRADICTS not in recall.read(snapshot).ties.edge_types:
        return Conflicts()
    return Conflicts.of(
        graph.open_contradictions(snapshot, sorted(found), narrowing.view, MAX_CONTRADICTIONS)
    )


def _sources(
    snapshot: Snapshot, recalled: Sequence[RecallItem], memories: Iterable[Memory]
) -> Callable[[Memory], StoredSource]:
    known = {item.source.source_id: item.source for item in recalled}
    lacking = [each for each in memories if each.source_id not in known]
    if lacking:
        known |= {each.source_id: each for each in graph.sources_of(snapshot, lacking)}
    return lambda memory: known[memory.source_id]
