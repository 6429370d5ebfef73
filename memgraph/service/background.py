"""A thread for the work that follows a write or a recall."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from memgraph.errors import MemgraphError

Chore = Callable[[Callable[[], bool]], object]
"""Takes a function that returns True to stop, and returns when nothing is left to do."""


class InFlightCalls:
    """Counts the calls in progress. Thread-safe."""

    def __init__(self) -> None:
        self._count = 0
        self._lock = threading.Lock()
        self._none = threading.Event()
        self._none.set()

    def __enter__(self) -> None:
        with self._lock:
            self._count += 1
            self._none.clear()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1
            if not self._count:
                self._none.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until no call is in flight, up to a timeout; return True if there is none."""
        until = time.monotonic() + timeout_s
        while self._none.wait(max(until - time.monotonic(), 0.0)):
            # The next call may have begun before this thread runs.
            if not self._count:
                return True
        return False


class BackgroundWork:
    """Runs its chores when woken, and periodically for postponed work.

    Args:
        chores: run in order.
        failed: called with the MemgraphError of a chore; the other chores go on. Any other error
            ends the thread, and the next ``wake`` starts a new one.
    """

    IDLE_S = 30.0
    # The maximum delay of work that can wait: a process may only recall, and then be killed.
    LATER_S = 3.0
    # Wakes come in bursts, and starting at once would delay the next write. The chores start when
    # no wake has come for ``SETTLE_S``, at the latest after ``LONGEST_SETTLE_S``.
    SETTLE_S = 0.02
    LONGEST_SETTLE_S = 0.25

    def __init__(self, chores: Sequence[Chore], failed: Callable[[MemgraphError], None]) -> None:
        self._chores = tuple(chores)
        self._failed = failed
        self._wake = threading.Event()
        self._asked = False
        self._later: float | None = None
        self._idle = threading.Event()
        self._idle.set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()

    @property
    def busy(self) -> bool:
        """True while there is work for which it was woken."""
        return not self._idle.is_set()

    def wake(self) -> None:
        """Start the chores soon; returns at once."""
        with self._start_lock:
            if self._stop.is_set():
                return
            self._idle.clear()
            self._asked = True
            self._begin()

    def wake_later(self) -> None:
        """Start the chores within ``LATER_S``; further calls until then have no effect."""
        if self._later is not None:
            return
        with self._start_lock:
            if self._stop.is_set():
                return
            self._later = time.monotonic() + self.LATER_S
            self._begin()

    def _begin(self) -> None:
        self._wake.set()
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="memgraph-background", daemon=True
            )
            self._thread.start()

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until all work is done for which it was woken; return False on a timeout."""
        return self._idle.wait(timeout_s)

    def stop(self, patience_s: float | None = None) -> bool:
        """End the thread after the current batch; return True if it has ended.

        Args:
            patience_s: the maximum time to wait, in seconds; None: no limit.
        """
        self._stop.set()
        self._wake.set()
        with self._start_lock:
            thread = self._thread
        # A chore may close its own orchestrator: a thread cannot wait for itself.
        if thread is not None and thread is not threading.current_thread():
            thread.join(patience_s)
            return not thread.is_alive()
        return True

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._wait()
                self._settle()
                self._do_all()
                with self._start_lock:
                    if not self._asked:
                        self._idle.set()
        finally:
            # A bug of a provider may have ended the thread: release all waiters, and let ``wake``
            # start a new one.
            with self._start_lock:
                self._thread = None
                self._asked, self._later = False, None
                self._idle.set()

    def _wait(self) -> None:
        """Wait until it is woken, a postponed wake is due, or the interval has passed."""
        until = time.monotonic() + self.IDLE_S
        while True:
            with self._start_lock:
                if self._asked or self._stop.is_set():
                    return
                self._wake.clear()
                if self._later is not None:
                    until = min(until, self._later)
            remaining_s = until - time.monotonic()
            if remaining_s <= 0:
                return
            self._wake.wait(remaining_s)

    def _settle(self) -> None:
        deadline = time.monotonic() + self.LONGEST_SETTLE_S
        settled = False
        while not settled:
            self._wake.clear()
            stopped = self._stop.wait(self.SETTLE_S)
            settled = stopped or not self._wake.is_set() or time.monotonic() >= deadline
        with self._start_lock:
            self._wake.clear()
            # The chores may miss work that arrives from now on.
            self._asked, self._later = False, None

    def _do_all(self) -> None:
        for chore in self._chores:
            try:
                chore(self._stop.is_set)
            except MemgraphError as error:
                self._failed(error)
