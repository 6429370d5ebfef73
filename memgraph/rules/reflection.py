"""The rules of the week's reflection: when there is one, and which goals and todos it names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import MemoryType, Sensitivity

WEEKLY = "weekly"
"""The tag of the reflections that the job makes."""

DONE_TAG = "done"
STALE_DAYS = 14.0
CLEARANCE = Sensitivity.INTERNAL
"""A reflection is made of memories up to this: it is shown to everybody who may see that much."""

# Below the 50 of a memory that says nothing of itself: a reflection repeats others, and where the
# most important come first it comes after them.
IMPORTANCE = 30
DIGEST_CONFIDENCE, MODEL_CONFIDENCE = 0.9, 0.6


@dataclass(frozen=True, slots=True)
class ReflectionPeriod:
    """The period of a reflection: ``since`` <= a time < ``until``, milliseconds."""

    since: int
    until: int

    def holds(self, at_ms: int) -> bool:
        return self.since <= at_ms < self.until


def period(now_ms: int, days: float) -> ReflectionPeriod:
    """The days before now; what is stored at this very moment belongs to it."""
    return ReflectionPeriod(now_ms - round(days * MS_PER_DAY), now_ms + 1)


def is_too_soon(others_at_ms: Iterable[int], now_ms: int, min_days_between: float) -> bool:
    """Return True when a reflection is so near that there is no other one to be made.

    One that lies a little in the future counts, since clocks differ; one that lies further ahead
    than the pause was made by a clock that was wrong, and would stop all others for as long.
    """
    pause = min_days_between * MS_PER_DAY
    return any(abs(now_ms - moment) < pause for moment in others_at_ms)


def is_done(tags: Collection[str], attributes: Mapping[str, Any]) -> bool:
    """A goal or todo with the tag ``done`` or ``attributes.done`` true, as in the bulletin."""
    return DONE_TAG in tags or attributes.get("done") is True


def is_finished(
    memory_type: MemoryType,
    tags: Collection[str],
    attributes: Mapping[str, Any],
    touched_ms: int,
    during: ReflectionPeriod,
) -> bool:
    """Return True when a goal or todo was done in the period."""
    return _is_task(memory_type) and is_done(tags, attributes) and during.holds(touched_ms)


def is_stale(
    memory_type: MemoryType,
    tags: Collection[str],
    attributes: Mapping[str, Any],
    touched_ms: int,
    now_ms: int,
    days: float = STALE_DAYS,
) -> bool:
    """Return True when a goal or todo is open and was not touched for ``days``.

    Args:
        touched_ms: when it was stored or last changed. That it was recalled does not count: it
            says that somebody looked, not that somebody worked on it.
    """
    if not _is_task(memory_type) or is_done(tags, attributes):
        return False
    return now_ms - touched_ms >= days * MS_PER_DAY


def highest(sensitivities: Iterable[Sensitivity]) -> Sensitivity:
    """Return the highest of several sensitivities; Public of none."""
    return max(sensitivities, key=lambda sensitivity: sensitivity.level, default=Sensitivity.PUBLIC)


def _is_task(memory_type: MemoryType) -> bool:
    return memory_type in (MemoryType.GOAL, MemoryType.TODO)
