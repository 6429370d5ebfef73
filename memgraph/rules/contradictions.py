"""The two sides of a contradiction: which is later, and which is more likely to be true."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import MemoryStatus
from memgraph.model.graph import CaseSide, Suggestion, SuggestionReason

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


def suggest(side: CaseSide, other: CaseSide) -> Suggestion:
    """Weigh two sides, in either order, and suggest a winner.

    A replaced or retracted side is never suggested, nor a side below ``LEAST_CONFIDENCE``. The
    strongest reasons come first, ties by name.
    """
    reasons = sorted(
        (*_reasons(side, other), *_reasons(other, side)),
        key=lambda reason: (-reason[2], reason[0], reason[1]),
    )
    balance = math.fsum(
        weight if favours == side.memory.memory_id else -weight for _, favours, weight in reasons
    )
    confidence = 1.0 / (1.0 + math.exp(-abs(balance)))
    favoured = side if balance > 0.0 else other
    is_clear = confidence >= LEAST_CONFIDENCE and _is_active(favoured)
    return Suggestion(
        winner_id=favoured.memory.memory_id if is_clear else None,
        confidence=confidence,
        reasons=tuple(
            SuggestionReason(code=code, favours=favours, weight=round(weight, 3))
            for code, favours, weight in reasons
        ),
    )


def _is_active(side: CaseSide) -> bool:
    return side.memory.status is MemoryStatus.ACTIVE


def _reasons(side: CaseSide, other: CaseSide) -> Iterator[tuple[str, str, float]]:
    """Yield the reasons in favour of ``side``, as the fields of a ``SuggestionReason``."""
    is_other_stale = other.premise is not None and side.premise is None
    for code, weight in (
        ("confirmed", _CONFIRMED * (side.confirmed and not other.confirmed)),
        ("other_ended", _ENDED * (_is_active(side) and not _is_active(other))),
        ("other_stale", _STALE * is_other_stale),
        ("more_sources", _by_sources(side, other)),
        ("higher_confidence", _by_confidence(side, other)),
        ("newer", _NEWER * _is_newer(side, other)),
    ):
        if weight > 0.0:
            yield code, side.memory.memory_id, weight


def _is_newer(side: CaseSide, other: CaseSide) -> bool:
    if side.said_at is None or other.said_at is None:
        return False
    return side.said_at - other.said_at >= MS_PER_DAY


def _by_sources(side: CaseSide, other: CaseSide) -> float:
    ratio = math.log(side.independent_sources / other.independent_sources)
    return min(ratio, _MOST_SOURCES)


def _by_confidence(side: CaseSide, other: CaseSide) -> float:
    if side.effective_confidence - other.effective_confidence < _LEAST_DIFFERENCE:
        return 0.0
    # Half of the difference in log odds, because stated confidence is weak evidence.
    apart = _logit(side.effective_confidence) - _logit(other.effective_confidence)
    return min(apart / 2, _MOST_CONFIDENCE)


def _logit(share: float) -> float:
    bounded = min(max(share, 0.05), 0.95)
    return math.log(bounded / (1.0 - bounded))
