"""The two sides of a contradiction: which is later, and which is more likely to be true."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from memgraph.clock import MS_PER_DAY

UNDATED = 0
MOST_NAMED = 3
"""The number of other sides that a mark lists; the rest are only counted."""


class ConflictSide(NamedTuple):
    """One side of a contradiction. ``time``: when it happened, or else when it was stored, in
    milliseconds; ``UNDATED`` if unknown."""

    time: int
    memory_id: str


def in_order(pair: tuple[ConflictSide, ConflictSide]) -> tuple[ConflictSide, ConflictSide]:
    """Return the later side, then the earlier one; if their times are equal, the higher id first.

    Of two undated sides neither is newer: the one that was stored first comes first.
    """
    newest = max(side.time for side in pair)
    first, second = sorted(pair, reverse=newest != UNDATED)
    return first, second


# Suggest which side of a contradiction is more likely to be true, and why; a person decides.


LEAST_CONFIDENCE: Final = 0.65
"""Below this no side is suggested: the evidence is hardly better than a guess."""

_CONFIRMED: Final = math.log(8)
_ENDED: Final = math.log(20)
_STALE: Final = math.log(4)
_NEWER: Final = math.log(2)
# Limits, however many sources repeat a statement and however confident they are.
_MOST_SOURCES: Final = math.log(4)
_MOST_CONFIDENCE: Final = math.log(4)
_LEAST_DIFFERENCE: Final = 0.05


class SuggestionGround(StrEnum):
    """Why a side is favoured."""

    CONFIRMED = "confirmed"
    OTHER_ENDED = "other_ended"
    OTHER_STALE = "other_stale"
    MORE_SOURCES = "more_sources"
    HIGHER_CONFIDENCE = "higher_confidence"
    NEWER = "newer"


@dataclass(frozen=True, slots=True)
class SideFacts:
    """The facts about one side that are weighed.

    Attributes:
        said_at: the time of the statement, milliseconds.
        independent_sources: the number of independent sources, >= 1.
        effective_confidence: 0..1, after decay.
        confirmed: True if a person confirmed it.
        active: True if it is neither replaced nor retracted.
        stale: True if it depends on retracted or superseded evidence.
    """

    memory_id: str
    said_at: int
    independent_sources: int
    effective_confidence: float
    confirmed: bool
    active: bool
    stale: bool


class WeighedReason(NamedTuple):
    """A reason for one side. ``weight``: the natural log of the odds, above 0."""

    ground: SuggestionGround
    favours: str
    weight: float


class WeighedSuggestion(NamedTuple):
    """A suggestion, with its reasons added up.

    Attributes:
        winner_id: the suggested side; None if neither is suggested.
        confidence: 0.5..1, that the side with more evidence is true.
        reasons: strongest first, ties by name.
    """

    winner_id: str | None
    confidence: float
    reasons: tuple[WeighedReason, ...]


def suggest(side: SideFacts, other: SideFacts) -> WeighedSuggestion:
    """Weigh two sides, in either order, and suggest a winner.

    A replaced or retracted side is never suggested, nor a side below ``LEAST_CONFIDENCE``.
    """
    reasons = sorted(
        (*_reasons(side, other), *_reasons(other, side)),
        key=lambda reason: (-reason.weight, reason.ground, reason.favours),
    )
    balance = math.fsum(
        reason.weight if reason.favours == side.memory_id else -reason.weight for reason in reasons
    )
    confidence = 1.0 / (1.0 + math.exp(-abs(balance)))
    favoured = side if balance > 0.0 else other
    is_clear = confidence >= LEAST_CONFIDENCE and favoured.active
    return WeighedSuggestion(favoured.memory_id if is_clear else None, confidence, tuple(reasons))


def _reasons(side: SideFacts, other: SideFacts) -> Iterator[WeighedReason]:
    """Yield the reasons in favour of ``side``."""
    for ground, weight in (
        (SuggestionGround.CONFIRMED, _CONFIRMED * (side.confirmed and not other.confirmed)),
        (SuggestionGround.OTHER_ENDED, _ENDED * (side.active and not other.active)),
        (SuggestionGround.OTHER_STALE, _STALE * (other.stale and not side.stale)),
        (SuggestionGround.MORE_SOURCES, _by_sources(side, other)),
        (SuggestionGround.HIGHER_CONFIDENCE, _by_confidence(side, other)),
        (SuggestionGround.NEWER, _NEWER * (side.said_at - other.said_at >= MS_PER_DAY)),
    ):
        if weight > 0.0:
            yield WeighedReason(ground, side.memory_id, weight)


def _by_sources(side: SideFacts, other: SideFacts) -> float:
    ratio = math.log(side.independent_sources / other.independent_sources)
    return min(ratio, _MOST_SOURCES)


def _by_confidence(side: SideFacts, other: SideFacts) -> float:
    if side.effective_confidence - other.effective_confidence < _LEAST_DIFFERENCE:
        return 0.0
    # Half of the difference in log odds, because stated confidence is weak evidence.
    apart = _logit(side.effective_confidence) - _logit(other.effective_confidence)
    return min(apart / 2, _MOST_CONFIDENCE)


def _logit(share: float) -> float:
    bounded = min(max(share, 0.05), 0.95)
    return math.log(bounded / (1.0 - bounded))
