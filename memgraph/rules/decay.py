"""Decay of confidence: computed from a stored base and timestamps, never written back.

Writing the decayed value back every night would compound: with a rate of 0.1 a fact that nobody
reads would fall under 0.05 after 8 nights instead of 30 days.
"""

from __future__ import annotations

import math

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import CapturedBy, MemoryKind, MemoryStatus, MemoryType, SourceType
from memgraph.model.values import Memory, Source

DEFAULT_EXPONENT = 1.0
DEFAULT_THRESHOLD = 0.05

LASTING_TYPES = frozenset(
    {MemoryType.IDENTITY, MemoryType.PREFERENCE, MemoryType.DECISION, MemoryType.GOAL}
)
"""Types that do not decay, whatever their source."""
LASTING_IMPORTANCE = 80
"""A memory of at least this importance (0..100) does not decay."""


def rate_of(
    *,
    kind: MemoryKind,
    memory_type: MemoryType,
    importance: int,
    source: Source,
    inferred_rate: float,
) -> float:
    """Return the default decay rate of a memory, per day.

    Only memories that a machine inferred decay.

    =============================================================  =================
    memory                                                         rate
    =============================================================  =================
    an episode, a reflection                                       0
    an Identity, Preference, Decision or Goal                      0
    importance 80 or more                                          0
    captured by a user or by the host (``user``, ``system``)       0
    extracted from a file or a decision record (``ingest_file``)   0
    any other fact: what a model concluded, what an agent's tool   ``inferred_rate``
    remembered, what a step put out or a diagnosis found
    =============================================================  =================

    Args:
        inferred_rate: the setting ``memory.decay.rate``.
    """
    if (
        kind is not MemoryKind.FACT
        or memory_type in LASTING_TYPES
        or importance >= LASTING_IMPORTANCE
    ):
        return 0.0
    recorded = source.captured_by is not CapturedBy.EXTRACTOR
    if recorded or source.source_type is SourceType.INGEST_FILE:
        return 0.0
    return inferred_rate


def days_idle(now_ms: int, created_at_ms: int, last_accessed_at_ms: int | None) -> float:
    """Return the days since the last access, or since creation without one; never negative."""
    since = created_at_ms if last_accessed_at_ms is None else last_accessed_at_ms
    return max(now_ms - since, 0) / MS_PER_DAY


def confidence_at(memory: Memory, now_ms: int, exponent: float) -> float:
    """Return the effective confidence of a memory at a time, see ``effective_confidence``."""
    days = days_idle(now_ms, memory.created_at, memory.last_accessed_at)
    return effective_confidence(memory.confidence, memory.decay_rate, days, exponent)


def effective_confidence(
    confidence: float, decay_rate: float, days: float, exponent: float = DEFAULT_EXPONENT
) -> float:
    """Return confidence x exp(-decay_rate x days^exponent).

    This is a forgetting curve after Ebbinghaus; with an exponent below 1 it decays fast at first
    and slowly later.

    Args:
        confidence: the stored base value, 0..1.
        decay_rate: per day, >= 0; 0 means no decay.
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
    """Return True if the nightly job should retract a memory with the reason ``decayed``.

    Only active facts are retired; episodes and reflections are kept. A fact with a rate of 0 is
    kept, however low its confidence; see ``rate_of``.
    """
    if kind is not MemoryKind.FACT or status is not MemoryStatus.ACTIVE or decay_rate <= 0.0:
        return False
    return effective_confidence(confidence, decay_rate, days, exponent) < threshold
