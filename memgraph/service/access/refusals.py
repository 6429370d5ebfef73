"""How often a key may be refused: each refusal is a journal entry, so their number is bounded."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from typing import Final

from memgraph.errors import RateLimited

WINDOW_MS: Final = 60_000
MAX_ACTORS: Final = 10_000
"""Actors that are remembered; there are as many as keys."""


class Refusals:
    """Counts the refusals of each actor within a minute. Thread-safe, kept in memory alone.

    They are asked before a request is looked at: those in hand at the same time are let through
    together, and the items of one batch are refused together, so there may be a few more.

    Args:
        per_minute: of one actor; whoever had as many waits until the oldest is a minute old.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._lock = threading.Lock()
        self._times: OrderedDict[str, deque[int]] = OrderedDict()

    def add(self, actor: str, now: int) -> None:
        """Count one at a time, in milliseconds."""
        with self._lock:
            times = self._times.setdefault(actor, deque(maxlen=self._per_minute))
            times.append(now)
            self._times.move_to_end(actor)
            while len(self._times) > MAX_ACTORS:
                self._times.popitem(last=False)

    def check(self, actor: str, now: int) -> None:
        """See that an actor has refusals left.

        Raises:
            RateLimited: none; ``details["retry_after_s"]``, 1..60, says when there is one again.
        """
        with self._lock:
            times = self._times.get(actor)
            if times is None or len(times) < self._per_minute:
                return
            since = now - times[0]
        # A clock that was put back ends the minute, too.
        if not 0 <= since < WINDOW_MS:
            return
        wait_s = -(-(WINDOW_MS - since) // 1_000)
        raise RateLimited(
            f"too many requests of this key were refused; wait {wait_s} s", retry_after_s=wait_s
        )
