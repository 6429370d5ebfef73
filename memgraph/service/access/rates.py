"""Rates that all servers of one database count together, or alone while it is away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from memgraph.errors import MemgraphError
from memgraph.log import EventLog, error_fields

RETRY_S: Final = 5.0
"""Seconds after a failure in which the database is not asked."""
MINUTE_S: Final = 60.0


class RateLimit(NamedTuple):
    """A token bucket for each source of a kind.

    Attributes:
        burst_s: the capacity, in seconds of the rate.
    """

    kind: str
    per_second: float
    burst_s: float

    @classmethod
    def of_minute(cls, kind: str, number: int) -> RateLimit:
        """Return the limit of so many at once, and so many in each minute that follows."""
        return cls(kind, number / MINUTE_S, MINUTE_S)


class Grant(NamedTuple):
    """Tokens that were taken, and the seconds until there is another one; 0: there is."""

    tokens: int
    wait_s: float


class TokenTable(Protocol):
    """Keeps the buckets; see ``store.postgres.rate_table.RateTable``."""

    def take(
        self, source: str, tokens: int, *, interval_s: float, burst_s: float
    ) -> tuple[int, float]: ...


class SharedRates:
    """The buckets in a database. Thread-safe; ``take`` waits for the database.

    Attributes:
        log: gets a line when the database fails, and when it is back.
    """

    def __init__(self, table: TokenTable, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.log: EventLog | None = None
        self._table = table
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._retry_at = monotonic()
        self._has_failed = False

    @property
    def is_away(self) -> bool:
        """Return True while the database is not asked."""
        return self._monotonic() < self._retry_at

    def take(self, limit: RateLimit, source: str, tokens: int = 1) -> Grant | None:
        """Take tokens, or as many as there are; 0 to look only. None: the database is away."""
        with self._lock:
            if self.is_away:
                return None
            if self._has_failed:
                # One request finds out whether the database is back; the others do not wait.
                self._retry_at = self._monotonic() + RETRY_S
        try:
            grant = self._table.take(
                f"{limit.kind} {source}",
                tokens,
                interval_s=1 / limit.per_second,
                burst_s=limit.burst_s,
            )
        except MemgraphError as error:
            self.fail(error)
            return None
        if self._note(failed=False, retry_at=self._monotonic()) and self.log is not None:
            self.log.info("rates", shared=True)
        return Grant(*grant)

    def fail(self, error: MemgraphError) -> None:
        """Let this process count alone for a while."""
        is_new = self._note(failed=True, retry_at=self._monotonic() + RETRY_S)
        if is_new and self.log is not None:
            self.log.warning("rates", shared=False, reason=error.message, **error_fields(error))

    def _note(self, *, failed: bool, retry_at: float) -> bool:
        """Return True if it was the other way before: an outage is logged once."""
        with self._lock:
            is_new, self._has_failed = failed is not self._has_failed, failed
            self._retry_at = retry_at
        return is_new


def shared_rates(url: str) -> SharedRates:
    """Return the rates in the database that an address names."""
    from memgraph.store.postgres import checked_url
    from memgraph.store.postgres.rate_table import RateTable

    return SharedRates(RateTable(checked_url(url)))
