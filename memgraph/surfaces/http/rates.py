"""Rate limits of one key, or one address."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MOST_KNOWN: Final = 10_000
BURST_S: Final = 2.0
"""The burst, in seconds of the rate."""


class Rates:
    """A token bucket for each source, with a capacity of ``BURST_S`` times the rate.

    The generic cell rate algorithm (ITU-T I.371): for each source only the time is kept at which
    its bucket will be full again. For use in one thread.

    Args:
        per_second: requests of one source.
    """

    def __init__(self, per_second: float) -> None:
        self._interval_s = 1 / per_second
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def take(self, source: str, now: float) -> float:
        """Take one request; return the seconds to wait when there is none, else 0."""
        full_at = max(self._full_at.get(source, now), now) + self._interval_s
        wait = full_at - now - BURST_S
        if wait > 0:
            return wait
        self._full_at[source] = full_at
        self._full_at.move_to_end(source)
        if len(self._full_at) > MOST_KNOWN:
            self._full_at.popitem(last=False)
        return 0.0
