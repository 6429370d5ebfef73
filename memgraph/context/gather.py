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
    request: GatherRequest,
    recalled: Sequence[RecallItem],
) -> list[ContextCandidate]:
    """Return the candidates, each memory once.

    They are what was recalled, what the task holds, the most important ones of its project and of
    the global tier, and the other sides of their open contradictions.
    """
    memories = {item.memory.memory_id: item.memory for item in recalled}
    # Where recall has found enough, only a few may be more important than relevant.
    limit = request.most if len(recalled) < request.most else min(MOST_BESIDE_RECALL, request.most)
    for memory_ in _held(snapshot, narrowing, request, limit):
        memories.setdefault(memory_.memory_id, memory_)
    conflicts = _conflicts(snapshot, narrowing, memories)
    sides = {
        other: memory_id
        for memory_id in conflicts.memory_ids
        for other in conflicts.opponents(memory_id)
        if other not in memories
    }
    for side in items.by_ids(snapshot, narrowing, sorted(sides)):
        memories[side.memory_id] = side
    ranks = {item.memory.memory_id: rank for rank, item in enumerate(recalled, start=1)}
    brought = {item.memory.memory_id: item.brought_by for item in recalled}
    confidence = {item.memory.memory_id: item.effective_confidence for item in recalled}
    source_of = _sources(snapshot, recalled, memories.values())
    return [
        ContextCandidate(
            memory,
            _TIERS[memory.scope],
            citation(memory, source_of(memory)),
            short_citation(memory, source_of(memory)),
            confidence.get(memory_id) or confidence_at(memory, narrowing.at, request.exponent),
            None if brought.get(memory_id) else ranks.get(memory_id),
            brought.get(memory_id) or sides.get(memory_id),
            conflicts.opponents(memory_id),
            conflicts.mark(memory_id),
        )
        for memory_id, memory in memories.items()
    ]


def _held(
    snapshot: Snapshot, narrowing: RecallFilter, request: GatherRequest, limit: int
) -> Iterable[Memory]:
    shares = request.shares
    if request.task_id is not None and shares.task:
        yield from items.first_and_last(
            snapshot, narrowing, Tier.TASK.scope, request.task_id, MAX_TASK_ITEMS
        )
    if request.project_id is not None and shares.project:
        yield from items.most_important(
            snapshot, narrowing, Tier.PROJECT.scope, request.project_id, limit
        )
    if shares.everywhere:
        yield from items.most_important(snapshot, narrowing, Tier.GLOBAL.scope, None, limit)


def _conflicts(
    snapshot: Snapshot, narrowing: RecallFilter, memories: Mapping[str, Memory]
) -> Conflicts:
    """Return the open contradictions of the candidates."""
    if EdgeType.CONTRADICTS not in recall.read(snapshot).ties.edge_types:
        return Conflicts()
    return Conflicts.of(
        graph.open_contradictions(snapshot, sorted(memories), narrowing.view, MAX_CONTRADICTIONS)
    )


def _sources(
    snapshot: Snapshot, recalled: Sequence[RecallItem], memories: Iterable[Memory]
) -> Callable[[Memory], StoredSource]:
    by_id = {item.source.source_id: item.source for item in recalled}
    lacking = [memory for memory in memories if memory.source_id not in by_id]
    if lacking:
        by_id |= {source.source_id: source for source in graph.sources_of(snapshot, lacking)}
    return lambda memory: by_id[memory.source_id]
