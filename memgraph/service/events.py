"""Callbacks for sessions that this process completed or consolidated."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from memgraph.model.events import SessionCallback, SessionEvent
from memgraph.service.background import BackgroundWork

PATIENCE_S: Final = 3.0
"""The seconds that ``close`` waits for callbacks that are running."""


class SessionCallbacks:
    """The callbacks of one orchestrator in this process. Thread-safe.

    Args:
        failed: called with the error that a callback raised.
        threaded: call them in a thread of their own; otherwise in the thread that wrote.
    """

    def __init__(self, failed: Callable[[Exception], None], *, threaded: bool) -> None:
        self._failed = failed
        self._callbacks: tuple[SessionCallback, ...] = ()
        self._pending: deque[SessionEvent] = deque()
        self._thread = BackgroundWork((self._call,), lambda _: None) if threaded else None

    def add(self, callback: SessionCallback) -> None:
        """Add a callback, unless it was added before."""
        if callback not in self._callbacks:
            self._callbacks += (callback,)

    def remove(self, callback: SessionCallback) -> bool:
        """Remove a callback; return True if it was there."""
        before = self._callbacks
        self._callbacks = tuple(item for item in before if item != callback)
        return len(self._callbacks) < len(before)

    def announce(self, events: Sequence[SessionEvent]) -> None:
        """Call every callback with events that were committed."""
        if not events or not self._callbacks:
            return
        self._pending.extend(events)
        if self._thread is None:
            self._call(lambda: False)
        else:
            self._thread.wake()

    def close(self) -> None:
        """End the thread after the current call; events that are still pending are dropped."""
        if self._thread is not None:
            self._thread.stop(PATIENCE_S)

    def _call(self, stop: Callable[[], bool]) -> None:
        while self._pending and not stop():
            event = self._pending.popleft()
            for callback in self._callbacks:
                try:
                    callback(event)
                # The error is logged, and the other callbacks and events follow.
                except Exception as error:  # noqa: BLE001 - a callback may raise anything
                    self._failed(error)
