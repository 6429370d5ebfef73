"""Fading of confidence: computed from a stored base and timestamps, never written back.

Writing the faded value back every night would compound: with a rate of 0.1 a fact that nobody
reads would fall under 0.05 after 8 nights instead of 30 days.
"""

from __future__ import annotations

import math

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import MemoryKind, MemoryStatus

DEFAULT_RATE = 0.1
DEFAULT_EXPONENT = 1.0
DEFAULT_THRESHOLD = 0.05


def days_idle(now_ms: int, created_at_ms: int, last_accessed_at_ms: int | None) -> float:
    """Days since the last access, or since creation when there was none; never negative."""
    since = created_at_ms if last_accessed_at_ms is None else last_accessed_at_ms
    return max(now_ms - since, 0) / MS_PER_DAY


def effective_confidence(
    confidence: float, decay_rate: float, days: float, exponent: float = DEFAULT_EXPONENT
) -> float:
    """confidence x exp(-decay_rate x days^exponent).

    The shape is that of a forgetting curve after Ebbinghaus; an exponent below 1 fades fast at
    first and slowly later.

    Args:
        confidence: the stored base, 0..1.
        decay_rate: >= 0 per day; 0 protects.
        days: since last access or creation; below 0 counts as 0.
        exponent: > 0.

    Returns:
        0..confidence.
    """
    return confidence * math.exp(-decay_rate * max(days, 0.0) ** exponent)


def should_retire(
    *,
    kind: MemoryKind,
    status: MemoryStatus,
    confidence: float,
    decay_rate: float,
    days: float,
    threshold: float = DEFAULT_THRESHOLD,
    exponent: float = DEFAULT_EXPONENT,
) -> bool:
    """Whether the nightly job retracts a memory with the reason ``decayed``.

    Only active facts fade away; episodes are the record of what was said, reflections are kept.
    A protected one (decay_rate 0) stays, however low its confidence.
    """
    if kind is not MemoryKind.FACT or status is not MemoryStatus.ACTIVE or decay_rate <= 0.0:
        return False
    return effective_confidence(confidence, decay_rate, days, exponent) < threshold
