"""Rate candidates: modifiers of the fused score, by state and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from memgraph.config.schema import MemorySettings, ModifierGroup
from memgraph.model.enums import MemoryStatus
from memgraph.model.recall import AS_STORED, Accesses
from memgraph.retrieval.candidate_states import CandidateStates
from memgraph.rules.decay import days_idle, effective_confidence
from memgraph.rules.ranking import ModifiedScore, ModifierSettings, RankFacts, apply_modifiers
from memgraph.rules.trust import LOW_TRUST
from memgraph.store.recall import RecallCandidate
from memgraph.store.rows import unreadable

TURN_PLACE = 2
"""The place, from 0, that a turn has at worst which is first by text and by vectors."""
AGREED = 1.000001
"""What is moved up scores so much more than what it passes."""
AGREEMENT = "agreement"
"""What that factor is called among the modifiers."""
_STATUSES = {status.value: status for status in MemoryStatus}


class RatedCandidate(NamedTuple):
    """A candidate and why it stands where it stands.

    Attributes:
        legs: its rank, from 1, in every leg that found it.
        effective_confidence: 0..1, after decay.
        brought_by: the id of the memory beside which it was brought in; None: it was found.
    """

    candidate: RecallCandidate
    legs: Mapping[str, int]
    modified: ModifiedScore
    effective_confidence: float
    brought_by: str | None = None


@dataclass(frozen=True, slots=True)
class CandidateRater:
    """The rating of the candidates of one recall.

    Attributes:
        at: the time of the answer, milliseconds.
        exponent: of the decay.
        stand: how the candidates stand in the graph.
        accessed: of some candidates, what counts instead of what is stored.
    """

    at: int
    limits: ModifierSettings
    exponent: float
    stand: CandidateStates
    accessed: Accesses

    def rated(
        self,
        candidate: RecallCandidate,
        score: float,
        legs: Mapping[str, int],
        brought_by: str | None = None,
    ) -> RatedCandidate:
        """The candidate with its modified score. Raises DatabaseCorrupt: its row is damaged."""
        status = _STATUSES.get(candidate.status)
        # SQLite keeps a text in a column of numbers, if that is what damage made of it.
        if status is None or not isinstance(candidate.created_at, int):
            raise unreadable("memory", candidate.memory_id)
        last = self.accessed.get(candidate.memory_id, candidate.last_accessed_at)
        days = days_idle(self.at, candidate.created_at, last)
        confidence = effective_confidence(
            candidate.confidence, candidate.decay_rate, days, self.exponent
        )
        moment = candidate.created_at if candidate.event_time is None else candidate.event_time
        facts = RankFacts(
            candidate.importance,
            confidence,
            self.at - moment,
            status,
            candidate.memory_id in self.stand.conflicts,
            candidate.memory_id in self.stand.stale,
        )
        modified = apply_modifiers(score, facts, self.limits)
        return RatedCandidate(candidate, legs, modified, confidence, brought_by)


def lift_agreed(ranked: list[RatedCandidate], agreed: int | None) -> None:
    """Move the active memory that is first by text and by vectors up, in place.

    A turn of a conversation may be outweighed by what was said around it: it comes third at worst.
    Any other memory comes first. The factor `AGREEMENT` says so among the modifiers.

    Args:
        agreed: its key; None: there is none.
    """
    at = next((at for at, each in enumerate(ranked) if each.candidate.pk == agreed), None)
    if at is None:
        return
    each = ranked[at]
    place = 0 if each.candidate.sequence is None else TURN_PLACE
    if at <= place or each.candidate.status != MemoryStatus.ACTIVE.value:
        return
    factor = ranked[place].modified.score / each.modified.score * AGREED
    factors = each.modified.factors | {AGREEMENT: factor}
    ranked.insert(
        place,
        ranked.pop(at)._replace(modified=ModifiedScore(each.modified.score * factor, factors)),
    )


def distrusted(each: RatedCandidate) -> RatedCandidate:
    """Return a candidate whose source is of low trust, with the factor ``trust``."""
    factors = each.modified.factors | {"trust": LOW_TRUST}
    return each._replace(modified=ModifiedScore(each.modified.score * LOW_TRUST, factors))


def in_order(ranked: Sequence[RatedCandidate]) -> list[RatedCandidate]:
    """Return candidates with scores that fall in their order: who gave way has ``source_share``."""
    found: list[RatedCandidate] = []
    for each in ranked:
        score = each.modified.score
        if found and score >= found[-1].modified.score > 0:
            # One that went before a better one is not lifted; the better one is lowered to it.
            factor = found[-1].modified.score / score / AGREED
            factors = each.modified.factors | {"source_share": factor}
            each = each._replace(modified=ModifiedScore(score * factor, factors))
        found.append(each)
    return found


def rating(
    at: int, settings: MemorySettings, stand: CandidateStates, accessed: Accesses = AS_STORED
) -> CandidateRater:
    """As the settings say."""
    modifiers = settings.retrieval.modifiers
    return CandidateRater(at, _limits(modifiers), settings.decay.exponent, stand, accessed)


@lru_cache(maxsize=16)
def _limits(group: ModifierGroup) -> ModifierSettings:
    return ModifierSettings(**group.model_dump())
