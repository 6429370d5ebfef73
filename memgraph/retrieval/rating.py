"""What becomes of a candidate's fused score: its modifiers, by how it stands and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from memgraph.config.schema import MemorySettings, ModifierGroup
from memgraph.model.enums import MemoryStatus
from memgraph.policy.decay import days_idle, effective_confidence
from memgraph.policy.ranking import Modified, ModifierSettings, RankFacts, apply_modifiers
from memgraph.retrieval.grounds import Standing
from memgraph.storage.recall_queries import Candidate


class Rated(NamedTuple):
    """A candidate and why it stands where it stands.

    Attributes:
        legs: its rank, from 1, in every leg that found it.
        effective_confidence: 0..1, after decay.
        brought_by: the id of the memory beside which it was brought in; None: it was found.
    """

    candidate: Candidate
    legs: Mapping[str, int]
    modified: Modified
    effective_confidence: float
    brought_by: str | None = None


def rated(
    candidate: Candidate,
    score: float,
    legs: Mapping[str, int],
    *,
    stand: Standing,
    at: int,
    settings: MemorySettings,
    beside: str | None = None,
) -> Rated:
    """The candidate with its modified score; ``at`` is the time of the answer, milliseconds."""
    confidence = effective_confidence(
        candidate.confidence,
        candidate.decay_rate,
        days_idle(at, candidate.created_at, candidate.last_accessed_at),
        settings.decay.exponent,
    )
    moment = candidate.created_at if candidate.event_time is None else candidate.event_time
    facts = RankFacts(
        importance=candidate.importance,
        effective_confidence=confidence,
        age_ms=at - moment,
        status=MemoryStatus(candidate.status),
        in_open_contradiction=candidate.memory_id in stand.contradicted_by,
        stale_basis=candidate.memory_id in stand.stale,
    )
    limits = _limits(settings.retrieval.modifiers)
    return Rated(candidate, legs, apply_modifiers(score, facts, limits), confidence, beside)


@lru_cache(maxsize=16)
def _limits(group: ModifierGroup) -> ModifierSettings:
    return ModifierSettings(**group.model_dump())
