"""When a subscriber gets an event again that it did not take, and when no more."""

from __future__ import annotations

MOST_ATTEMPTS = 6
FIRST_PAUSE_MS = 1_000
GROWTH = 5


def pause_ms(attempts: int) -> int:
    """How long to wait after so many attempts: 1 s, 5 s, 25 s, 2 min, 10 min."""
    return int(FIRST_PAUSE_MS * GROWTH ** (max(attempts, 1) - 1))


def gives_up(attempts: int) -> bool:
    """Whether an event that was tried so often is put aside."""
    return attempts >= MOST_ATTEMPTS
