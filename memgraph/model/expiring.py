"""The report of what will be retired by time."""

from __future__ import annotations

from memgraph.model.values import Memory, Millis, Value


class ExpiringMemory(Value):
    """A memory that will be retired unless someone uses it.

    Attributes:
        confidence_now, confidence_then: effective, 0..1, at the moment of the report and at its
            end.
        expires_at: from when on it is under the threshold; it lies in the past when the nightly job
            has not run since.
        course: the effective confidence at equal steps from now to the end of the report, both
            included.
    """

    memory: Memory
    confidence_now: float
    confidence_then: float
    expires_at: Millis
    course: tuple[float, ...]


class ExpiringReport(Value):
    """What will be retired until a moment if nobody uses it, the first to go first.

    Attributes:
        at, until: the time of the report and its end.
        threshold: under which a memory is retired.
        total: how many there are; ``items`` holds the first of them.
    """

    at: Millis
    until: Millis
    threshold: float
    total: int
    items: tuple[ExpiringMemory, ...]
