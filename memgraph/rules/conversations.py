"""Rules for conversations: session states and reflections."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import Sensitivity


class SessionState(StrEnum):
    """OPEN: more turns are expected. COMPLETED: waiting for consolidation."""

    OPEN = "open"
    COMPLETED = "completed"
    CONSOLIDATED = "consolidated"


@dataclass(slots=True)
class SessionTransition:
    """The effect of a batch of turns on sessions.

    Attributes:
        completes: for each turn, the sessions that it completes, in the order they opened.
        open: the sessions that are open after the batch.
        done: the sessions that were completed by the batch, even if they are open again.
    """

    completes: list[tuple[str, ...]] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)


def follow(
    turns: Sequence[str], followed: Collection[str], open_now: Iterable[str]
) -> SessionTransition:
    """Return the effect of a batch of live turns: a new session completes all open ones.

    Args:
        turns: the session id of each turn, in order.
        followed: the sessions in ``turns`` that are already registered.
        open_now: all open sessions; needed only if a turn begins a session.
    """
    transition = SessionTransition()
    open_sessions = dict.fromkeys(open_now)
    registered = set(followed)
    for session_id in turns:
        completed: tuple[str, ...] = ()
        if session_id not in registered:
            registered.add(session_id)
            completed = tuple(session for session in open_sessions if session != session_id)
            transition.done.update(completed)
            open_sessions.clear()
        open_sessions[session_id] = None
        transition.completes.append(completed)
    transition.open.update(open_sessions)
    return transition


def taken_over(turns: Iterable[str], states: Mapping[str, SessionState]) -> list[str]:
    """Return the sessions that are complete once these imported turns are stored.

    An open session stays open, and a completed one was already reported as complete.
    """
    waiting = (SessionState.OPEN, SessionState.COMPLETED)
    return [
        session_id for session_id in dict.fromkeys(turns) if states.get(session_id) not in waiting
    ]


WEEKLY = "weekly"
"""The tag of reflections made by the weekly job."""

DONE_TAG = "done"
CLEARANCE = Sensitivity.INTERNAL
"""The highest sensitivity of memories in a reflection, which every reader with it may see."""

# Below the default of 50: a reflection repeats other memories and should rank after them.
IMPORTANCE = 30
LISTED_CONFIDENCE, MODEL_CONFIDENCE = 0.9, 0.6


@dataclass(frozen=True, slots=True)
class ReflectionPeriod:
    """The period of a reflection: ``since`` <= a time < ``until``, milliseconds."""

    since: int
    until: int


def period(now_ms: int, days: float) -> ReflectionPeriod:
    """Return the last ``days`` days; a memory that is stored right now is included."""
    return ReflectionPeriod(now_ms - round(days * MS_PER_DAY), now_ms + 1)


def is_too_soon(others_at_ms: Iterable[int], now_ms: int, min_days_between: float) -> bool:
    """Return True if another reflection is too near in time to make a new one.

    A reflection slightly in the future counts, because clocks differ. One further ahead than the
    pause is ignored: its clock was wrong, and it would block all others until then.
    """
    pause = min_days_between * MS_PER_DAY
    return any(abs(now_ms - moment) < pause for moment in others_at_ms)


def is_done(tags: Collection[str], attributes: Mapping[str, Any]) -> bool:
    """Return True if a goal or todo is done: it has the tag ``done``, or ``attributes.done``."""
    return DONE_TAG in tags or attributes.get("done") is True


def highest(sensitivities: Iterable[Sensitivity]) -> Sensitivity:
    """Return the highest of several sensitivities; Public if there are none."""
    return max(sensitivities, key=lambda sensitivity: sensitivity.level, default=Sensitivity.PUBLIC)
