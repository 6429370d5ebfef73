"""A lease that a thread renews while work is done under it."""

from __future__ import annotations

import os
import socket
import threading
from types import TracebackType

from memgraph.clock import Clock
from memgraph.errors import MemgraphError
from memgraph.service.opened import Opened
from memgraph.store import jobs

RENEWALS = 3
"""How often a lease is renewed in its lifetime."""


def new_holder(run_id: str) -> str:
    """Return a unique name of the process, for people, and the run."""
    return f"{socket.gethostname()}:{os.getpid()}:{run_id}"


class Lease:
    """Renews a lease that was just acquired, for the time of the block, and releases it.

    Args:
        wall: the wall clock, whatever clock the orchestrator has: other processes see it too.
        acquired_ms: when it was acquired, on that clock.
    """

    def __init__(
        self, opened: Opened, name: str, holder: str, *, wall: Clock, acquired_ms: int
    ) -> None:
        self.name = name
        self.holder = holder
        self._opened = opened
        self._wall = wall
        self._lease_ms = lease_ms(opened)
        self._expires_ms = acquired_ms + self._lease_ms
        self._gone = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="memgraph-lease", daemon=True)

    @property
    def lost(self) -> bool:
        """True when another process may have it by now; also right after a suspend."""
        return self._gone or self._wall.now_ms() >= self._expires_ms

    def __enter__(self) -> Lease:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._ended.wait(self._lease_ms / 1000 / RENEWALS) and not self.lost:
            try:
                self._renew_once()
            except MemgraphError as error:
                # It still holds for a while, and the next time may do better.
                self._opened.log.failure("lease.renew", error)

    def _renew_once(self) -> None:
        # An expiry that a power failure took back was in the past by then.
        with self._opened.database.write(durable=False) as transaction:
            now = self._wall.now_ms()
            kept = jobs.renew(
                transaction, self.name, self.holder, wall_ms=now, lease_ms=self._lease_ms
            )
        if kept:
            self._expires_ms = now + self._lease_ms
        else:
            self._gone = True


def lease_ms(opened: Opened) -> int:
    return round(opened.settings.memory.schedule.lease_s * 1000)
