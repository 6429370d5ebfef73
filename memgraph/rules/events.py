"""How long an event is kept, when a subscriber gets it again, and when no more."""

from __future__ import annotations

MOST_ATTEMPTS = 6
FIRST_PAUSE_MS = 1_000
GROWTH = 5

DAY_MS = 86_400_000
# What every subscriber has had stays a little for one that asks to begin at the start.
KEEP_TAKEN_MS = DAY_MS
MOST_TAKEN = 10_000
# What a subscriber has not had waits for it, but not for ever: it may never come back.
KEEP_WAITING_MS = 30 * DAY_MS
MOST_WAITING = 1_000_000
MOST_PARKED = 10_000


def pause_ms(attempts: int) -> int:
    """How long to wait after so many attempts: 1 s, 5 s, 25 s, 2 min, 10 min."""
    return int(FIRST_PAUSE_MS * GROWTH ** (max(attempts, 1) - 1))


def gives_up(attempts: int) -> bool:
    """Whether an event that was tried so often is put aside."""
    return attempts >= MOST_ATTEMPTS


def removable_through(*, last: int, taken: int, aged: int, expired: int) -> int:
    """The number up to which events may be removed; 0: none.

    Args:
        last: the newest event's number.
        taken: up to there every subscriber has had them; without subscribers it is ``last``.
        aged: up to there they are older than ``KEEP_TAKEN_MS``.
        expired: up to there they are older than ``KEEP_WAITING_MS``.
    """
    return max(min(taken, max(aged, last - MOST_TAKEN)), expired, last - MOST_WAITING, 0)
