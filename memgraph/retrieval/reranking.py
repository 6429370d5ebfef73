"""Apply a reranker's order to an answer. Pure: no model, no database, no clock.

The order is one more leg of the rank fusion. A memory that the model omits lacks that leg and keeps
its score; a memory that was withheld from the model keeps its place.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from memgraph.model.enums import EdgeType, MarkKind, Sensitivity, SourceType
from memgraph.model.recall import MAX_TOP_N, Bundle, Degraded, RecallItem, RecallRequest
from memgraph.model.values import Edge, StoredSource
from memgraph.retrieval.recall import EDGES_PER_MEMORY, MAX_EDGES_PER_ITEM
from memgraph.retrieval.scores import AGREEMENT, PAIR
from memgraph.rules.budget import select_within
from memgraph.rules.contradictions import UNDATED, ConflictSide, in_order
from memgraph.rules.lifecycle import in_force
from memgraph.rules.marks import MarkGraph, Pair, PairKind
from memgraph.rules.ranking import MOST_BEFORE, MOST_OTHER_SIDES, MOST_REPLACED, placed

LEG = "rerank"
FILTER_LEG = "filter"
# Room for the companions of the last candidates.
COMPANIONS = 20


def widened(request: RecallRequest, top_n: int, candidates: int) -> RecallRequest:
    """Return a request for more memories, so that the reranker has a choice."""
    wide = min(max(top_n, candidates) + COMPANIONS, MAX_TOP_N)
    return request.model_copy(update={"top_n": wide, "token_budget": None})


def sendable(
    bundle: Bundle, candidates: int, max_sensitivity: Sensitivity
) -> tuple[list[RecallItem], frozenset[str]]:
    """Return the items to send, best first, and the ids of items that are too sensitive to send.

    Both come from the best ``candidates`` that matched the question themselves; a result of
    filters alone has none.
    """
    earned = [
        item for item in bundle.items if item.brought_by is None and FILTER_LEG not in item.legs
    ]
    sent, withheld = [], set()
    for item in earned[:candidates]:
        if item.memory.sensitivity.level <= max_sensitivity.level:
            sent.append(item)
        else:
            withheld.add(item.memory.memory_id)
    return sent, frozenset(withheld)


def reranked(
    bundle: Bundle,
    order: Sequence[str],
    *,
    top_n: int,
    token_budget: int | None,
    rrf_k: int,
    weight: float,
    withheld: Collection[str] = (),
    degraded: Sequence[Degraded] = (),
) -> Bundle:
    """Apply a reranker's order to a wide bundle, and return the final one.

    Lifts by `AGREEMENT` and `PAIR` are undone. The score becomes product of modifiers x (sum over
    legs + weight / (rrf_k + rank in ``order``)), which is reciprocal rank fusion with one more leg.

    Args:
        bundle: the result of the ``widened`` request.
        order: memory ids, best first; unknown and repeated ids are ignored.
        top_n: the number of memories to return, at least 1.
        token_budget: the maximum total token cost of their texts; None: no limit.
        withheld: ids that were not sent to the model; each keeps its place among the rest.
        degraded: added to those of the bundle.
    """
    recalled = {item.memory.memory_id for item in bundle.items if item.brought_by is None}
    ranks: dict[str, int] = {}
    for memory_id in order:
        if memory_id in recalled:
            ranks.setdefault(memory_id, len(ranks) + 1)
    ranked = _in_order(bundle.items, ranks, frozenset(withheld), rrf_k, weight)
    chosen = _with_companions(ranked, bundle, top_n)
    reasons = set(bundle.cut_reasons) & {"top_n"}
    if len(chosen) < len(bundle.items):
        reasons.add("top_n")
    items = chosen
    if token_budget is not None:
        costs = [(item.memory.memory_id, item.memory.token_cost) for item in chosen]
        sides = {item.memory.memory_id: item.contradicted_by for item in chosen}
        fitting = set(select_within(costs, token_budget, sides))
        items = [item for item in chosen if item.memory.memory_id in fitting]
        if len(items) < len(chosen):
            reasons.add("token_budget")
    numbers = dict(bundle.account.left_out or {})
    numbers["top_n"] = numbers.get("top_n", 0) + len(bundle.items) - len(chosen)
    numbers["budget"] = len(chosen) - len(items)
    limit = MAX_EDGES_PER_ITEM * len(items)
    edges = _edges_around(bundle.edges, {item.memory.memory_id for item in items})
    if len(edges) > limit or (edges and "max_edges" in bundle.cut_reasons):
        reasons.add("max_edges")
    return bundle.model_copy(
        update={
            "items": tuple(items),
            "edges": tuple(edges[:limit]),
            "sources": _sources(items),
            "degraded": (*bundle.degraded, *degraded),
            "cut": bool(reasons),
            "cut_reasons": tuple(sorted(reasons)),
            "token_cost": sum(item.memory.token_cost for item in items),
        }
    ).with_account(replace(bundle.account, left_out=numbers))


def _in_order(
    items: Sequence[RecallItem],
    ranks: Mapping[str, int],
    withheld: frozenset[str],
    rrf_k: int,
    weight: float,
) -> list[RecallItem]:
    """Return the items that matched themselves, by new score; withheld ones keep their place."""
    before = sorted((_alone(item) for item in items if item.brought_by is None), key=_place)
    after = iter(
        sorted(
            (
                _with_leg(item, ranks.get(item.memory.memory_id), rrf_k, weight)
                for item in before
                if item.memory.memory_id not in withheld
            ),
            key=_place,
        )
    )
    return [item if item.memory.memory_id in withheld else next(after) for item in before]


def _place(item: RecallItem) -> tuple[float, str]:
    return -item.score, item.memory.memory_id


def _alone(item: RecallItem) -> RecallItem:
    """Return an item with the score that it has without its pair, by which recall chose it."""
    modifiers = dict(item.modifiers)
    factor = modifiers.pop(PAIR, 1.0)
    return item.model_copy(update={"score": item.score / factor, "modifiers": modifiers})


def _with_leg(item: RecallItem, rank: int | None, rrf_k: int, weight: float) -> RecallItem:
    if rank is None:
        return item
    score, modifiers = item.score, dict(item.modifiers)
    if weight > 0.0:
        # The model has read the text, so no lift is needed.
        score /= modifiers.pop(AGREEMENT, 1.0)
    score += math.prod(modifiers.values()) * weight / (rrf_k + rank)
    legs = {**item.legs, LEG: rank}
    return item.model_copy(update={"score": score, "modifiers": modifiers, "legs": legs})


def _with_companions(ranked: Sequence[RecallItem], bundle: Bundle, top_n: int) -> list[RecallItem]:
    """Return the best ``top_n`` with their companions, placed as in recall: two memories that
    contradict or change one another together, the later first, and amendments right before their
    memory.
    """
    by_id = {item.memory.memory_id: item for item in ranked}
    brought = {item.memory.memory_id: item for item in bundle.items if item.brought_by is not None}
    items = {**by_id, **brought}
    places = {memory_id: place for place, memory_id in enumerate(items)}
    amended_by = _amendments(bundle.edges, places)
    replaced = _replaced(bundle.edges)
    pairs = _pairs(items)
    before = {
        memory_id: (*pairs.later(memory_id)[:MOST_OTHER_SIDES], *amended_by.get(memory_id, ()))
        for memory_id in by_id
    }
    after = {
        memory_id: (
            *pairs.earlier(memory_id)[:MOST_OTHER_SIDES],
            *replaced.get(memory_id, ())[:MOST_REPLACED],
        )
        for memory_id in by_id
    }
    chosen = []
    # Companions are also ranked themselves, last, in case nothing else brings them along.
    for memory_id, companion in placed(list(items), before, after, items, top_n).items():
        item = items[memory_id]
        moved = memory_id in brought and companion != memory_id
        chosen.append(item.model_copy(update={"brought_by": companion}) if moved else item)
    return chosen


def _moment(item: RecallItem) -> int:
    """Return the time of one side of a contradiction, as in the bulletin."""
    memory, source = item.memory, item.source
    if memory.event_time is not None:
        return memory.event_time
    of_file = source.source_path is not None or source.source_type is SourceType.INGEST_FILE
    return UNDATED if of_file else memory.created_at


def _pairs(items: Mapping[str, RecallItem]) -> MarkGraph:
    """Return the open contradictions and the probable changes among some items."""
    sides = {memory_id: ConflictSide(_moment(item), memory_id) for memory_id, item in items.items()}
    pairs = []
    for memory_id, item in items.items():
        for mark in item.marks:
            if mark.memory_id not in sides:
                continue
            ends = sides[memory_id], sides[mark.memory_id]
            if mark.kind is MarkKind.CONTRADICTS:
                later, earlier = in_order(ends)
                pairs.append(Pair(PairKind.CONTRADICTS, later, earlier, mark.weight, mark.edge_id))
            elif mark.kind is MarkKind.CHANGES:
                pairs.append(Pair(PairKind.CHANGES, *ends, mark.weight, mark.edge_id))
    return MarkGraph.of(pairs)


def _amendments(edges: Sequence[Edge], places: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the amendments of each memory, best first, of those that have a place."""
    newer: dict[str, list[str]] = {}
    for edge in edges:
        sure = edge.edge_type is EdgeType.UPDATES and edge.partial and edge.weight >= 1.0
        if sure and edge.from_id in places:
            newer.setdefault(edge.to_id, []).append(edge.from_id)
    return {
        memory_id: sorted(ids, key=places.__getitem__)[:MOST_BEFORE]
        for memory_id, ids in newer.items()
    }


def _replaced(edges: Sequence[Edge]) -> dict[str, list[str]]:
    """Return for each memory the ids of those that it replaced entirely."""
    older: dict[str, list[str]] = {}
    for edge in edges:
        if in_force(edge):
            older.setdefault(edge.from_id, []).append(edge.to_id)
    return older


def _edges_around(edges: Sequence[Edge], ids: Collection[str]) -> list[Edge]:
    """Return the strongest edges out of and into each memory; ``edges`` are strongest first."""
    strongest = []
    counts: Counter[tuple[str, str]] = Counter()
    for edge in edges:
        ends = [end for end in (("out", edge.from_id), ("in", edge.to_id)) if end[1] in ids]
        counts.update(ends)
        if any(counts[end] <= EDGES_PER_MEMORY for end in ends):
            strongest.append(edge)
    return strongest


def _sources(items: Sequence[RecallItem]) -> tuple[StoredSource, ...]:
    by_id = {item.source.source_id: item.source for item in items}
    return tuple(by_id[source_id] for source_id in sorted(by_id))
