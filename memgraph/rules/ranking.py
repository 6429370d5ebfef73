"""Merge ranked lists, and apply bounded modifiers to the merged score.

Every modifier is a factor in a known range, so that none can bury the only answer, and each can be
shown as a reason for the rank of a memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from memgraph.clock import MS_PER_DAY
from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryStatus

Id = TypeVar("Id", int, str)

RRF_K = 60


class FusedCandidate(NamedTuple, Generic[Id]):
    """A candidate after the merge.

    Attributes:
        places: the ranks of all candidates by leg.
    """

    id: Id
    score: float
    places: Mapping[str, Mapping[Id, int]]

    @property
    def ranks(self) -> dict[str, int]:
        """The candidate's rank by leg, from 1; legs without it are absent."""
        return {leg: ranks[self.id] for leg, ranks in self.places.items() if self.id in ranks}


@dataclass(frozen=True, slots=True)
class ModifierSettings:
    """The range of every modifier. A factor or floor of 1 and a weight of 0 switch one off.

    Attributes:
        importance_weight: 0..1; the factor runs from 1 - weight (importance 0) to 1 + weight (100).
        recency_floor: 0..1; the factor of an infinitely old memory.
        recency_half_life_days: > 0; the age at which the factor is halfway to the floor.
        confidence_floor: 0..1; the factor of a memory with effective confidence 0.
        contradiction_factor: 0..1; applied while a contradiction is open. 0.95 is three ranks of
            two memories that all legs rank alike.
        stale_basis_factor: 0..1; applied if the memory depends on refuted evidence.
        superseded_factor, retracted_factor: 0..1; applied if such a memory is shown.
    """

    importance_weight: float = 0.02
    recency_floor: float = 0.98
    recency_half_life_days: float = 180.0
    confidence_floor: float = 0.95
    contradiction_factor: float = 0.95
    stale_basis_factor: float = 0.95
    superseded_factor: float = 0.5
    retracted_factor: float = 0.25


def reciprocal_rank_fusion(
    legs: Mapping[str, Sequence[Id]],
    k: int = RRF_K,
    weights: Mapping[str, float] | None = None,
    limit: int | None = None,
) -> list[FusedCandidate[Id]]:
    """Merge ranked lists: score(d) = sum over legs of weight / (k + rank of d), ranks from 1.

    Best first, equal scores by id; the order of the legs and of the weights does not matter.
    If a leg repeats an id, the first place counts.

    Source: Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual
    Rank Learning Methods", SIGIR 2009 (weights are an addition; all 1 by default).

    Args:
        legs: the ids by leg, best first. All ids are of one type.
        k: >= 1; the larger it is, the less the first places stand out.
        weights: >= 0 by leg; the default is 1, and a weight without a leg is ignored.
        limit: the maximum number of results; None: all.

    Raises:
        InvalidInput: k is below 1, or a weight is negative or not finite.
    """
    if k < 1:
        raise InvalidInput("k of the rank fusion must be at least 1", k=k)
    weights = weights or {}
    for name, weight in weights.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise InvalidInput(
                f"the weight of leg {name!r} must be a finite number, 0 or more", leg=name
            )
    # By name, so that the terms of a sum are always added in the same order.
    places = {name: _places(legs[name]) for name in sorted(legs)}
    scores: dict[Id, float] = {}
    for name, ranks in places.items():
        share = weights.get(name, 1.0)
        for candidate, rank in ranks.items():
            scores[candidate] = scores.get(candidate, 0.0) + share / (k + rank)
    # Even a reversed sort is stable, so that equal scores stay in the order of their ids.
    order = sorted(sorted(scores), key=scores.__getitem__, reverse=True)
    return [FusedCandidate(each, scores[each], places) for each in order[:limit]]


def _places(ids: Sequence[Id]) -> dict[Id, int]:
    """Return the rank of each id, from 1: its first one."""
    return dict(zip(reversed(ids), range(len(ids), 0, -1), strict=True))


def modifiers(
    settings: ModifierSettings,
    importance: int,
    effective_confidence: float,
    age_ms: int,
    status: MemoryStatus = MemoryStatus.ACTIVE,
    *,
    in_open_contradiction: bool = False,
    stale_basis: bool = False,
) -> dict[str, float]:
    """Return every factor of a score by name, even those of 1.0.

    Args:
        importance: 0..100.
        effective_confidence: 0..1, after decay.
        age_ms: milliseconds since the event (or since creation); a time in the future counts as 0.
        in_open_contradiction: True if it has a Contradicts edge without ``resolved_at``.
        stale_basis: True if it depends on refuted evidence, see ``memgraph.rules.evidence``.
    """
    return {
        "importance": importance_factor(importance, settings),
        "recency": recency_factor(age_ms, settings),
        "confidence": confidence_factor(effective_confidence, settings),
        "contradiction": settings.contradiction_factor if in_open_contradiction else 1.0,
        "stale_basis": settings.stale_basis_factor if stale_basis else 1.0,
        "status": _status_factor(status, settings),
    }


def importance_factor(importance: int, settings: ModifierSettings) -> float:
    """Return 1 + weight x (importance - 50) / 50, for importance 0..100."""
    bounded = min(max(importance, 0), 100)
    return 1.0 + settings.importance_weight * (bounded - 50) / 50


def recency_factor(age_ms: int, settings: ModifierSettings) -> float:
    """Return floor + (1 - floor) x 0.5 ^ (age / half-life); a negative age counts as 0."""
    half_lives = max(age_ms, 0) / MS_PER_DAY / settings.recency_half_life_days
    return settings.recency_floor + (1.0 - settings.recency_floor) * math.exp2(-half_lives)


def confidence_factor(effective_confidence: float, settings: ModifierSettings) -> float:
    """Return floor + (1 - floor) x effective confidence."""
    bounded = min(max(effective_confidence, 0.0), 1.0)
    return settings.confidence_floor + (1.0 - settings.confidence_floor) * bounded


def _status_factor(status: MemoryStatus, settings: ModifierSettings) -> float:
    if status is MemoryStatus.ACTIVE:
        return 1.0
    if status is MemoryStatus.SUPERSEDED:
        return settings.superseded_factor
    return settings.retracted_factor


# The order in which memories are shown: by rank, with related memories next to each other.


# At most this many are placed before the memory that they amend, next to the one that they
# contradict or change, or after their successor. The others keep the place of their rank, so that a
# memory with many companions does not fill the whole result.
MOST_BEFORE, MOST_OTHER_SIDES, MOST_REPLACED = 2, 3, 2


def placed(
    ranked: Iterable[str],
    around: Callable[[str], Iterable[str]],
    present: Collection[str],
    top_n: int,
) -> dict[str, str]:
    """Return the ids to show, in order, each with the id that it accompanies: usually itself.

    Args:
        ranked: ids, best first.
        around: returns an id between those to place right before it (its amendments, what changes
            it, and the later sides of open contradictions) and those to place right behind it (what
            it changes, the earlier sides, and the memories that it replaced).
        present: the ids that can be shown.
        top_n: the maximum number of ids.
    """
    chosen: dict[str, str] = {}
    for candidate in ranked:
        for other in around(candidate):
            if len(chosen) >= top_n:
                return chosen
            if other in present:
                chosen.setdefault(other, candidate)
    return chosen
