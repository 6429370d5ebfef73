"""The work that follows a write or a recall: its thread, and callbacks for sessions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from math import inf

from memgraph.errors import MemgraphError
from memgraph.model.conversation import SessionCallback, SessionCompleted
from memgraph.operations.threads import DaemonThreads

Stop = Callable[[], bool]
Chore = Callable[[Stop], object]
"""Takes a function that returns True to stop, and returns True if it left something to do."""


class InFlightCalls:
    """Counts the calls in progress. Thread-safe."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1
            if not self._count:
                self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Wait until no call is in flight, up to a timeout; return True if there is none."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._count, timeout_s)


class BackgroundWork:
    """Runs its chores when woken, and periodically for postponed work.

    Args:
        chores: run in order, and again while one of them has more to do.
        failed: called with the MemgraphError of a chore; the other chores go on. Any other error
            ends the thread, and the next ``wake`` starts a new one.
        threaded: False: a wake has no effect; only ``once`` runs them.
    """

    IDLE_S = 30.0
    # The maximum delay of work that can wait: a process may only recall, and then be killed.
    LATER_S = 3.0
    # Wakes come in bursts, and starting at once would delay the next write. The chores start when
    # no wake has come for ``SETTLE_S``, at the latest after ``LONGEST_SETTLE_S``.
    SETTLE_S = 0.02
    LONGEST_SETTLE_S = 0.25

    def __init__(
        self, chores: Sequence[Chore], failed: Callable[[MemgraphError], None], *, threaded: bool
    ) -> None:
        self._chores = tuple(chores)
        self._failed = failed
        # Guards all of the following.
        self._changed = threading.Condition()
        # When the chores start next, and at the latest; by the monotonic clock.
        self._due = self._latest = inf
        # Whether it was woken since the chores began.
        self._woken = False
        self.busy = False
        """True while there is work for which it was woken."""
        self._stopping = not threaded
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Start the chores soon; returns at once."""
        with self._changed:
            if self._stopping:
                return
            now = time.monotonic()
            self._latest = min(self._latest, now + self.LONGEST_SETTLE_S)
            self._woken = self.busy = True
            self._start_at(min(now + self.SETTLE_S, self._latest))

    def wake_later(self) -> None:
        """Start the chores within ``LATER_S``; further calls until then have no effect."""
        with self._changed:
            if self._due == inf and not self._stopping:
                self._start_at(time.monotonic() + self.LATER_S)

    def _start_at(self, due: float) -> None:
        self._due = due
        self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="memgraph-background", daemon=True
            )
            self._thread.start()

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until all work is done for which it was woken; return False on a timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.busy, timeout_s)

    def once(self, stop: Stop) -> bool:
        """Run each chore in this thread; return True if one of them has more to do."""
        more = False
        for chore in self._chores:
            try:
                more |= chore(stop) is True
            except MemgraphError as error:
                self._failed(error)
        return more

    def stop(self) -> None:
        """End the thread after the current batch."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            thread = self._thread
        # A chore may close its own orchestrator: a thread cannot wait for itself.
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._wait()
                if self.once(lambda: self._stopping):
                    self.wake()
                with self._changed:
                    self.busy = self._woken
                    self._changed.notify_all()
        finally:
            # A bug of a provider may have ended the thread: release all waiters, and let ``wake``
            # start a new one.
            with self._changed:
                self._thread, self._due, self._latest = None, inf, inf
                self._woken = self.busy = False
                self._changed.notify_all()

    def _wait(self) -> None:
        with self._changed:
            until = time.monotonic() + self.IDLE_S
            while not self._stopping:
                remaining_s = min(self._due, until) - time.monotonic()
                if remaining_s <= 0:
                    break
                self._changed.wait(remaining_s)
            # The chores may miss work that arrives from now on.
            self._woken, self._due, self._latest = False, inf, inf


class SessionCallbacks:
    """The callbacks of one orchestrator in this process, for the ends of sessions. Thread-safe.

    Args:
        failed: called with the error that a callback raised.
        threaded: call them in a thread of their own; otherwise in the thread that wrote.
    """

    def __init__(self, failed: Callable[[Exception], None], *, threaded: bool) -> None:
        self._failed = failed
        self._callbacks: tuple[SessionCallback, ...] = ()
        self._thread = DaemonThreads(1, "memgraph-callbacks") if threaded else None

    def add(self, callback: SessionCallback) -> None:
        """Add a callback, unless it was added before."""
        if callback not in self._callbacks:
            self._callbacks += (callback,)

    def remove(self, callback: SessionCallback) -> bool:
        """Remove a callback; return True if it was there."""
        before = self._callbacks
        self._callbacks = tuple(item for item in before if item != callback)
        return len(self._callbacks) < len(before)

    def announce(self, session_ids: Sequence[str]) -> None:
        """Call every callback with sessions whose end was committed."""
        if not session_ids or not self._callbacks:
            return
        if self._thread is None:
            self._call(session_ids)
        else:
            self._thread.submit(self._call, session_ids)

    def _call(self, session_ids: Sequence[str]) -> None:
        for event in (SessionCompleted(session_id=session_id) for session_id in session_ids):
            for callback in self._callbacks:
                try:
                    callback(event)
                # The error is logged, and the other callbacks and events follow.
                except Exception as error:  # noqa: BLE001 - a callback may raise anything
                    self._failed(error)
