"""Deduplicate the candidates of a context, and rank them within a tier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memgraph.model.enums import MemoryKind, Scope
from memgraph.model.values import Memory
from memgraph.rules.lines import BlockLine
from memgraph.rules.ranking import reciprocal_rank_fusion
from memgraph.rules.similarity import folded

# Markers and labels may make a repetition of the query longer by this much.
_MARKS_CHARS = 100


@dataclass(frozen=True, slots=True)
class ContextCandidate:
    """A memory that may become part of a context.

    Attributes:
        citation: the memory's source in one line.
        line: its line in a block, with the whole text.
        confidence: 0..1, after decay.
        recalled: the memory's rank in the recall, from 1; None: it was not recalled.
        beside: the id of the memory whose open contradiction or change added this one; None: it
            was selected on its own.
        against: ids of the memories without which it must not be shown: those that it contradicts,
            unresolved, and those that probably changed it.
    """

    memory: Memory
    tier: Scope
    citation: str
    line: BlockLine
    confidence: float
    recalled: int | None = None
    beside: str | None = None
    against: tuple[str, ...] = ()


def distinct(
    candidates: Iterable[ContextCandidate], query: str
) -> tuple[list[ContextCandidate], list[ContextCandidate], list[ContextCandidate]]:
    """Return one candidate for each text, the others with these texts, and those that only repeat
    the query.

    A fact is preferred to a turn, then the tier nearest to the task, then the best recall rank.
    The kept candidate takes the best rank of its repetitions.
    """
    places = {tier: place for place, tier in enumerate(Scope)}
    form = folded(query)
    by_hash: dict[str, ContextCandidate] = {}
    repeated: list[ContextCandidate] = []
    repeats_query: list[ContextCandidate] = []
    for candidate in sorted(
        candidates,
        key=lambda first: (
            first.memory.kind is MemoryKind.EPISODE,
            places[first.tier],
            *_by_recall(first),
        ),
    ):
        same = by_hash.get(candidate.memory.content_hash)
        if _repeats_query(candidate.memory.content, query, form):
            repeats_query.append(candidate)
        elif same is None:
            by_hash[candidate.memory.content_hash] = candidate
        else:
            repeated.append(candidate)
            by_hash[candidate.memory.content_hash] = min(
                same, replace(same, recalled=candidate.recalled), key=_by_recall
            )
    return list(by_hash.values()), repeated, repeats_query


def ranked(
    of_tier: Sequence[ContextCandidate], tier: Scope, head_tail: int
) -> list[tuple[ContextCandidate, tuple[str, ...]]]:
    """Return the candidates of one tier, best first, each with the reasons for considering it.

    The first and last items of a task lead. The others follow by reciprocal rank fusion of
    relevance and importance.
    """
    ends = _ends(of_tier, head_tail) if tier is Scope.SESSION else {}
    by_id = {candidate.memory.memory_id: candidate for candidate in of_tier}
    relevant = sorted(
        (candidate for candidate in by_id.values() if candidate.recalled is not None),
        key=_by_recall,
    )
    important = sorted(by_id.values(), key=_by_importance)
    legs = {
        "importance": [candidate.memory.memory_id for candidate in important],
        "relevance": [candidate.memory.memory_id for candidate in relevant],
    }
    order = dict.fromkeys([*ends, *(fused.id for fused in reciprocal_rank_fusion(legs))])
    return [
        (
            by_id[memory_id],
            (*ends.get(memory_id, ()), *_reasons(by_id[memory_id])) or ("importance",),
        )
        for memory_id in order
    ]


def _repeats_query(text: str, query: str, form: str) -> bool:
    near = bool(form) and len(text) <= 2 * len(query) + _MARKS_CHARS
    return near and folded(text) == form


def _ends(of_tier: Sequence[ContextCandidate], count: int) -> Mapping[str, tuple[str, ...]]:
    """Return the ids of the first and last items, outermost first, each with its reasons."""
    memories = [candidate.memory for candidate in of_tier]
    in_time = [
        memory.memory_id
        for memory in sorted(memories, key=lambda one: (one.said_at, one.memory_id))
    ]
    reasons: dict[str, tuple[str, ...]] = {}
    for first, last in zip(in_time[:count], in_time[::-1], strict=False):
        reasons[first] = (*reasons.get(first, ()), "head")
        reasons[last] = (*reasons.get(last, ()), "tail")
    return reasons


def _by_recall(candidate: ContextCandidate) -> tuple[bool, int, str]:
    return candidate.recalled is None, candidate.recalled or 0, candidate.memory.memory_id


def _by_importance(candidate: ContextCandidate) -> tuple[int, int, str]:
    return -candidate.memory.importance, -candidate.memory.said_at, candidate.memory.memory_id


def _reasons(candidate: ContextCandidate) -> tuple[str, ...]:
    if candidate.recalled is not None:
        return (f"recall:{candidate.recalled}",)
    return () if candidate.beside is None else (f"beside:{candidate.beside}",)
