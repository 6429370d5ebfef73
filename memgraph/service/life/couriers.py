"""The threads that deliver events: one for each subscriber."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from memgraph.errors import MemgraphError
from memgraph.log import EventLog
from memgraph.service.background import Background
from memgraph.service.life.events import EventBus


class Couriers:
    """Delivers to each subscriber in its own thread: a blocked one delays nobody else."""

    def __init__(self, bus: EventBus, log: EventLog) -> None:
        self._bus = bus
        self._log = log
        self._lock = threading.Lock()
        self._known: dict[str, Background] = {}
        self._stopped = False

    def wake(self) -> None:
        """Start delivering soon; returns at once."""
        wanted = {each.name for each in self._bus.subscribers.all() if each.threaded}
        with self._lock:
            if self._stopped:
                return
            gone = [self._known.pop(name) for name in set(self._known) - wanted]
            for name in wanted - set(self._known):
                self._known[name] = Background((self._delivering(name),), self._failed)
            for each in self._known.values():
                each.wake()
        for each in gone:
            each.stop(0)

    def stop(self, patience_s: float) -> None:
        """End the threads after the current event.

        Args:
            patience_s: how long to wait for handlers. One that takes longer goes on in its thread;
                its event is not recorded as delivered and comes again.
        """
        with self._lock:
            self._stopped = True
            known = dict(self._known)
        until = time.monotonic() + patience_s
        # All are signalled first, so that they end concurrently.
        for each in known.values():
            each.stop(0)
        for name, each in known.items():
            if not each.stop(max(until - time.monotonic(), 0)):
                self._log.warning("events.subscriber_blocks", subscriber=name)

    def _delivering(self, name: str) -> Callable[[Callable[[], bool]], object]:
        return partial(self._bus.deliver, only=name)

    def _failed(self, error: MemgraphError) -> None:
        self._log.failure("events", error)
