"""Merging of ranked lists, and the bounded modifiers that are applied to the merged score.

Every modifier is a factor in a known range, so that none can bury the only answer and each can be
shown to a person who asks why a memory stands where it stands.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from memgraph.clock import MS_PER_DAY
from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryStatus

Id = TypeVar("Id", int, str)

RRF_K = 60


class FusedCandidate(NamedTuple, Generic[Id]):
    """One candidate after the merge.

    Attributes:
        ranks: the leg's name and the candidate's rank in it, from 1; legs without it are absent.
    """

    id: Id
    score: float
    ranks: dict[str, int]


@dataclass(frozen=True, slots=True)
class ModifierSettings:
    """The range of every modifier. A factor or floor of 1 and a weight of 0 switch one off.

    Attributes:
        importance_weight: 0..1; the factor runs from 1 - weight (importance 0) to 1 + weight (100).
        recency_floor: 0..1; what an infinitely old memory keeps.
        recency_half_life_days: > 0; the age at which half of the way to the floor is gone.
        confidence_floor: 0..1; what a memory of effective confidence 0 keeps.
        contradiction_factor: 0..1; applied while a contradiction is open.
        stale_basis_factor: 0..1; applied when the memory stands on a replaced ground.
        superseded_factor, retracted_factor: 0..1; applied when such a memory is shown at all.
    """

    importance_weight: float = 0.02
    recency_floor: float = 0.98
    recency_half_life_days: float = 180.0
    confidence_floor: float = 0.95
    contradiction_factor: float = 0.98
    stale_basis_factor: float = 0.95
    superseded_factor: float = 0.5
    retracted_factor: float = 0.25


class RankFacts(NamedTuple):
    """The facts of a candidate that modifiers use.

    Attributes:
        importance: 0..100.
        effective_confidence: 0..1, after decay.
        age_ms: milliseconds since the event (or since creation); one in the future counts as new.
        in_open_contradiction: a Contradicts edge without ``resolved_at`` touches it.
        stale_basis: it stands on a refuted ground: see ``memgraph.rules.evidence``.
    """

    importance: int
    effective_confidence: float
    age_ms: int
    status: MemoryStatus = MemoryStatus.ACTIVE
    in_open_contradiction: bool = False
    stale_basis: bool = False


class ModifiedScore(NamedTuple):
    """The final score, and every factor by name in the order it was applied."""

    score: float
    factors: dict[str, float]


def reciprocal_rank_fusion(
    legs: Mapping[str, Sequence[Id]],
    k: int = RRF_K,
    weights: Mapping[str, float] | None = None,
) -> list[FusedCandidate[Id]]:
    """Merges ranked lists: score(d) = sum over legs of weight / (k + rank of d), ranks from 1.

    Best first, equal scores by id; neither the order of the legs nor that of the weights matters.
    An id repeated in a leg counts where it comes first.

    Source: Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual
    Rank Learning Methods", SIGIR 2009 (weights are an addition; all 1 by default).

    Args:
        legs: the leg's name and its ids, best first. All ids are of one type.
        k: >= 1; the larger, the less the first places stand out.
        weights: >= 0 by leg; a leg without one weighs 1, a weight without a leg does nothing.

    Raises:
        InvalidInput: k below 1, or a weight that is negative or not finite.
    """
    if k < 1:
        raise InvalidInput("k of the rank fusion must be at least 1", k=k)
    weights = weights or {}
    for name, weight in weights.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise InvalidInput(
                f"the weight of leg {name!r} must be a finite number, 0 or more", leg=name
            )
    ranks: dict[Id, dict[str, int]] = {}
    scores: dict[Id, float] = {}
    # By name, so that the terms of a sum are added in one order.
    for name in sorted(legs):
        share = weights.get(name, 1.0)
        for rank, candidate in enumerate(legs[name], start=1):
            by_leg = ranks.get(candidate)
            if by_leg is None:
                ranks[candidate] = {name: rank}
                scores[candidate] = share / (k + rank)
            elif name not in by_leg:
                by_leg[name] = rank
                scores[candidate] += share / (k + rank)
    # The second sort keeps the order of equals, reversed or not.
    order = sorted(sorted(scores), key=scores.__getitem__, reverse=True)
    return [FusedCandidate(candidate, scores[candidate], ranks[candidate]) for candidate in order]


def apply_modifiers(
    score: float, facts: RankFacts, settings: ModifierSettings | None = None
) -> ModifiedScore:
    """Multiplies a score by every factor. All factors are listed, those of 1.0 too."""
    limits = settings or ModifierSettings()
    factors = {
        "importance": importance_factor(facts.importance, limits),
        "recency": recency_factor(facts.age_ms, limits),
        "confidence": confidence_factor(facts.effective_confidence, limits),
        "contradiction": limits.contradiction_factor if facts.in_open_contradiction else 1.0,
        "stale_basis": limits.stale_basis_factor if facts.stale_basis else 1.0,
        "status": _status_factor(facts.status, limits),
    }
    return ModifiedScore(score * math.prod(factors.values()), factors)


def importance_factor(importance: int, settings: ModifierSettings) -> float:
    """1 + weight x (importance - 50) / 50, for importance 0..100."""
    bounded = min(max(importance, 0), 100)
    return 1.0 + settings.importance_weight * (bounded - 50) / 50


def recency_factor(age_ms: int, settings: ModifierSettings) -> float:
    """floor + (1 - floor) x 0.5 ^ (age / half-life); a time in the future counts as now."""
    half_lives = max(age_ms, 0) / MS_PER_DAY / settings.recency_half_life_days
    return settings.recency_floor + (1.0 - settings.recency_floor) * math.exp2(-half_lives)


def confidence_factor(effective_confidence: float, settings: ModifierSettings) -> float:
    """floor + (1 - floor) x effective confidence."""
    bounded = min(max(effective_confidence, 0.0), 1.0)
    return settings.confidence_floor + (1.0 - settings.confidence_floor) * bounded


def _status_factor(status: MemoryStatus, settings: ModifierSettings) -> float:
    if status is MemoryStatus.ACTIVE:
        return 1.0
    if status is MemoryStatus.SUPERSEDED:
        return settings.superseded_factor
    return settings.retracted_factor


# The order in which memories are shown: by rank, and what belongs together side by side.


Beside = Mapping[str, Sequence[str]]

# So many go before what they amend, stand behind what they contradict, or behind what replaced
# them; the others keep the place of their rank, so that one memory with many fills no answer.
MOST_BEFORE, MOST_OTHER_SIDES, MOST_REPLACED = 2, 3, 2


def placed(
    ranked: Sequence[str],
    predecessors: Beside,
    successors: Beside,
    present: Collection[str],
    top_n: int,
) -> dict[str, str]:
    """Return the ids to show, in order, each with the one beside which it stands: itself, most
    often.

    Args:
        ranked: ids, best first.
        predecessors: what goes right before an id: what amended it, and the later side of an open
            contradiction.
        successors: what goes right after an id: the earlier side of an open contradiction, and what
            it replaced.
        present: the ids that can be shown.
        top_n: how many, at most.
    """
    chosen: dict[str, str] = {}
    for candidate in ranked:
        for other in (*predecessors.get(candidate, ()), candidate, *successors.get(candidate, ())):
            if len(chosen) >= top_n:
                return chosen
            if other in present:
                chosen.setdefault(other, candidate)
    return chosen
