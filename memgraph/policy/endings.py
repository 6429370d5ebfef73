"""How a memory came to its end, and whether that says anything against what it said."""

from __future__ import annotations

from typing import Final, NamedTuple

from memgraph.model.enums import MemoryStatus

EVICTED: Final = "evicted"
TASK_CLOSED: Final = "task_closed"
CLEARED: Final = "cleared"
DECAYED: Final = "decayed"

QUIET: Final = frozenset({EVICTED, TASK_CLOSED, CLEARED, DECAYED})
"""Reasons of a retraction that is housekeeping: no room, task, place or reader for it any more."""


def reason_of(status: MemoryStatus, reason: str) -> str:
    """The reason with which a memory of a status is retracted.

    Housekeeping does not make good what was refuted before it: its word alone would say so.
    """
    if status is MemoryStatus.SUPERSEDED and reason in QUIET:
        return f"{reason} after its correction"
    return reason


def lost_to(winner_id: str, reason: str) -> str:
    """The reason with which a memory is superseded that lost a contradiction."""
    return f"lost to {winner_id}: {reason}"


class Ending(NamedTuple):
    """What tells whether a memory still holds.

    Attributes:
        status: that it has.
        reason: with which it came to that status; None: none was given.
        lost: a contradiction that it was part of was decided for the other side.
    """

    status: MemoryStatus
    reason: str | None = None
    lost: bool = False


def refuted(ending: Ending) -> bool:
    """Whether what stands on such a memory stands on nothing: it was replaced, or taken back."""
    if ending.status is MemoryStatus.ACTIVE:
        return False
    quiet = ending.status is MemoryStatus.RETRACTED and ending.reason in QUIET
    return ending.lost or not quiet
