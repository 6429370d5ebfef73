"""The states of candidates in the graph, and their scores under the modifiers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from memgraph.model.columns import unreadable
from memgraph.model.enums import MemoryStatus
from memgraph.rules.decay import days_idle, effective_confidence
from memgraph.rules.evidence import BASIS_EDGES
from memgraph.rules.marks import MarkGraph
from memgraph.rules.ranking import ModifierSettings, modifiers
from memgraph.store import evidence, graph
from memgraph.store.recall import GraphContents, RecallCandidate
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MODIFIERS = ModifierSettings()


@dataclass(frozen=True, slots=True)
class CandidateStates:
    """The state of candidates in the graph.

    Attributes:
        pairs: what contradicts, changes or replaced them, and the reverse.
        stale: ids of candidates whose evidence was replaced or retracted.
    """

    pairs: MarkGraph = field(default_factory=MarkGraph)
    stale: frozenset[str] = frozenset()


def read_states(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    view: View,
    ties: GraphContents,
    before: CandidateStates,
) -> CandidateStates:
    """Return the states of further candidates, from their direct edges and their evidence.

    Hidden memories are ignored.

    Args:
        ties: the kinds of links in the store; other kinds are not queried.
        before: the states of other candidates, whose graph is extended.
    """
    stale: Collection[str] = ()
    if not graph.PAIRED.isdisjoint(ties.edge_types):
        graph.read_pairs(snapshot, before.pairs, memory_ids, view)
    if ties.derivations or not BASIS_EDGES.isdisjoint(ties.edge_types):
        stale = evidence.broken_evidence(snapshot, memory_ids, view)
    return CandidateStates(before.pairs, before.stale.union(stale))


TURN_PLACE = 2
"""The lowest place, from 0, of a turn that is first by text and by vectors."""
AGREED = 1.000001
"""The factor by which a lifted candidate outscores the one it passes."""
AGREEMENT = "agreement"
"""The name of the lift among the modifiers."""
PAIR = "pair"
"""The name of the factor by which the sides of a pair score next to each other."""
_STATUSES = {status.value: status for status in MemoryStatus}


class RatedCandidate(NamedTuple):
    """A candidate with its score and the reasons for its rank.

    Attributes:
        legs: its rank, from 1, in every leg that found it.
        factors: what its score was multiplied by, by name.
        effective_confidence: 0..1, after decay.
        brought_by: the id of the memory that it accompanies; None if it was found itself.
    """

    candidate: RecallCandidate
    legs: Mapping[str, int]
    score: float
    factors: Mapping[str, float]
    effective_confidence: float
    brought_by: str | None = None

    @property
    def memory_id(self) -> str:
        return self.candidate.memory_id

    @property
    def is_active(self) -> bool:
        return self.candidate.status == MemoryStatus.ACTIVE

    def multiplied(self, name: str, factor: float) -> RatedCandidate:
        """Return the candidate with its score multiplied by a factor, which it records."""
        return self._replace(score=self.score * factor, factors={**self.factors, name: factor})


def modifier_settings(*, of_a_time: bool) -> ModifierSettings:
    """Return the ranges of the modifiers, for a question about now or about an earlier time.

    What was valid then is no worse an answer about that time for having been replaced since.
    """
    return replace(MODIFIERS, superseded_factor=1.0) if of_a_time else MODIFIERS


def rate_candidate(
    settings: ModifierSettings,
    at: int,
    exponent: float,
    states: CandidateStates,
    candidate: RecallCandidate,
    score: float,
    legs: Mapping[str, int],
    brought_by: str | None = None,
) -> RatedCandidate:
    """Return a candidate with its modified score. Raises DatabaseCorrupt: a damaged row.

    Args:
        settings: the range of every modifier.
        at: the time of the recall, milliseconds.
        exponent: the exponent of the decay.
    """
    status = _STATUSES.get(candidate.status)
    # In a damaged database a numeric column may contain text: SQLite does not enforce types.
    if status is None or not isinstance(candidate.created_at, int):
        raise unreadable("memories", candidate.memory_id)
    days = days_idle(at, candidate.created_at, candidate.last_accessed_at)
    confidence = effective_confidence(candidate.confidence, candidate.decay_rate, days, exponent)
    factors = modifiers(
        settings,
        candidate.importance,
        confidence,
        at - candidate.said_at,
        status,
        in_open_contradiction=states.pairs.is_contested(candidate.memory_id),
        stale_basis=candidate.memory_id in states.stale,
    )
    score *= math.prod(factors.values())
    return RatedCandidate(candidate, legs, score, factors, confidence, brought_by)


def lift_agreed(ranked: list[RatedCandidate], agreed: int | None) -> None:
    """Move up the active memory that is first by text and by vectors, in place.

    A turn is moved to the third place, because its neighbours may be better answers; any other
    memory is moved to the first, unless it is a side of an open contradiction. The modifier
    `AGREEMENT` records the factor.

    Args:
        agreed: the key of that memory; None if there is none.
    """
    at = next((at for at, rated in enumerate(ranked) if rated.candidate.pk == agreed), None)
    if at is None:
        return
    lifted = ranked[at]
    place = 0 if lifted.candidate.sequence is None else TURN_PLACE
    if at > place and lifted.factors["contradiction"] == 1.0 and lifted.is_active:
        factor = ranked[place].score / lifted.score * AGREED
        ranked.insert(place, ranked.pop(at).multiplied(AGREEMENT, factor))


def in_order(ranked: Sequence[RatedCandidate]) -> list[RatedCandidate]:
    """Lower scores so that they descend in this order; the factor is named ``source_share``."""
    ordered: list[RatedCandidate] = []
    for rated in ranked:
        if ordered and rated.score >= ordered[-1].score > 0:
            # The candidate placed earlier is not lifted; the better one is lowered below it.
            factor = ordered[-1].score / rated.score / AGREED
            rated = rated.multiplied("source_share", factor)
        ordered.append(rated)
    return ordered


def in_pairs(chosen: Sequence[RatedCandidate], beside: Mapping[str, str]) -> list[RatedCandidate]:
    """Raise the scores of active memories that stand beside a better one, so that scores descend.

    The modifier `PAIR` records the factor. What was brought in has no score of its own, and gets
    none.

    Args:
        chosen: in the order in which they are shown.
        beside: for each id the id that it accompanies: usually itself.
    """
    places = {rated.memory_id: place for place, rated in enumerate(chosen)}
    result = list(chosen)
    for at, rated in enumerate(chosen):
        other = places.get(beside[rated.memory_id], at)
        better = chosen[other].score
        if 0.0 < rated.score < better and rated.is_active:
            result[at] = rated.multiplied(PAIR, better / rated.score * AGREED ** (other - at))
    return result
