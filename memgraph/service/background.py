"""A thread for what may follow a write or a recall a little later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from memgraph.errors import MemgraphError

Chore = Callable[[Callable[[], bool]], object]
"""Takes a function that says whether to stop, and returns when nothing is left to do."""


class InFlight:
    """Counts the calls that are being answered. Safe from several threads."""

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
        """Wait until there is none, for a time at most; return whether there is none."""
        until = time.monotonic() + timeout_s
        while self._none.wait(max(until - time.monotonic(), 0.0)):
            # By the time that this thread has its turn the next call may have begun.
            if not self._count:
                return True
        return False


class Background:
    """Does its chores when it is woken, and from time to time for what was put off.

    Args:
        chores: done in order.
        failed: told of a chore that failed with an error of ours; the others go on. Any other
            error ends the thread, and the next ``wake`` begins a new one.
    """

    IDLE_S = 30.0
    # What can wait does so at most that long: a process may only ever be asked, and be killed.
    LATER_S = 3.0
    # What is woken for comes in bursts: to begin at once would be in the way of the next write. It
    # begins when nothing came for a while, and in the midst of a long burst.
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
        """Whether something that it was woken for is still to be done."""
        return not self._idle.is_set()

    def wake(self) -> None:
        """There is something to do; returns at once."""
        with self._start_lock:
            if self._stop.is_set():
                return
            self._idle.clear()
            self._asked = True
            self._begin()

    def wake_later(self) -> None:
        """There is something to do within ``LATER_S``; of many such calls only the first counts."""
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
        """Whether everything that was woken for is done, within a time."""
        return self._idle.wait(timeout_s)

    def stop(self, patience_s: float | None = None) -> bool:
        """Ends the thread after the batch in hand; gives whether it has ended.

        Args:
            patience_s: how long to wait for that; None: as long as it takes.
        """
        self._stop.set()
        self._wake.set()
        with self._start_lock:
            thread = self._thread
        # A chore may come to close what it works for.
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
            # A provider's own bug may have ended it: nobody waits for it, and wake can begin anew.
            with self._start_lock:
                self._thread = None
                self._asked, self._later = False, None
                self._idle.set()

    def _wait(self) -> None:
        """Until it is woken, or what can wait has waited, or it is time to look by itself."""
        until = time.monotonic() + self.IDLE_S
        while True:
            with self._start_lock:
                if self._asked or self._stop.is_set():
                    return
                self._wake.clear()
                if self._later is not None:
                    until = min(until, self._later)
            left = until - time.monotonic()
            if left <= 0:
                return
            self._wake.wait(left)

    def _settle(self) -> None:
        deadline = time.monotonic() + self.LONGEST_SETTLE_S
        settled = False
        while not settled:
            self._wake.clear()
            stopped = self._stop.wait(self.SETTLE_S)
            settled = stopped or not self._wake.is_set() or time.monotonic() >= deadline
        with self._start_lock:
            self._wake.clear()
            # What comes from here on is not surely seen by the chores.
            self._asked, self._later = False, None

    def _do_all(self) -> None:
        for chore in self._chores:
            try:
                chore(self._stop.is_set)
            except MemgraphError as error:
                self._failed(error)
