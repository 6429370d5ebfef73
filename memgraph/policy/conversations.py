"""When a conversation is over: the rules, without the tables.

A new conversation completes every other that is open. Several may go on at once: a turn of one that
was completed opens it again, and the next new one completes it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class SessionState(StrEnum):
    """OPEN: more turns are expected. COMPLETED: it waits until it is CONSOLIDATED."""

    OPEN = "open"
    COMPLETED = "completed"
    CONSOLIDATED = "consolidated"


@dataclass(slots=True)
class Course:
    """What a batch of turns does to sessions.

    Attributes:
        completes: for each turn, the sessions that it completes, in the order they opened.
        open: the sessions that are open after the batch.
        done: those that were completed on the way, open again or not.
    """

    completes: list[tuple[str, ...]] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)


def follow(turns: Sequence[str], known: Collection[str], open_now: Iterable[str]) -> Course:
    """Turns as they are said, in order, each given by its session.

    Args:
        known: sessions that were registered before, of those in ``turns``.
        open_now: all sessions that are open; needed only where a turn begins a session.
    """
    course = Course()
    going_on = dict.fromkeys(open_now)
    registered = set(known)
    for session_id in turns:
        over: tuple[str, ...] = ()
        if session_id not in registered:
            registered.add(session_id)
            over = tuple(one for one in going_on if one != session_id)
            course.done.update(over)
            going_on.clear()
        going_on[session_id] = None
        course.completes.append(over)
    course.open.update(going_on)
    return course


def taken_over(turns: Iterable[str], known: Mapping[str, SessionState]) -> list[str]:
    """Turns that are taken over from elsewhere: the sessions that are complete with them.

    A session that is open here stays so, and one that waits for its consolidation was told to be
    complete before.
    """
    waiting = (SessionState.OPEN, SessionState.COMPLETED)
    return [one for one in dict.fromkeys(turns) if known.get(one) not in waiting]
