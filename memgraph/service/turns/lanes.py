"""Lanes: small thread pools, so that work that hangs in one does not delay the others.

A caller decides how long it waits. Work that has not begun is dropped once nobody waits for it,
unless the lane keeps its work.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, ClassVar, Generic, TypeVar

T = TypeVar("T")

IDLE_S = 30.0


class LaneLimit:
    """Limits how many tasks of a process run at a time, in order of arrival.

    Python runs one thread at a time, so with many running tasks each takes as long as all of them
    together. Tasks that nobody waits for give up their place.

    Args:
        places: the maximum number of running tasks.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._lock = threading.Lock()
        self._inside: set[LaneTask[Any]] = set()
        self._queue: deque[tuple[LaneTask[Any], threading.Event]] = deque()

    def enter(self, task: LaneTask[Any]) -> None:
        """Wait for a place; return early when the task is abandoned."""
        with self._lock:
            if len(self._inside) < self._places:
                self._inside.add(task)
                return
            turn = threading.Event()
            self._queue.append((task, turn))
        turn.wait()

    def leave(self, task: LaneTask[Any]) -> None:
        """Free the place of a task that is done or abandoned; may be called twice."""
        with self._lock:
            self._inside.discard(task)
            waiting = deque[tuple[LaneTask[Any], threading.Event]]()
            for waiter, turn in self._queue:
                if waiter.abandoned:
                    turn.set()
                elif len(self._inside) < self._places:
                    self._inside.add(waiter)
                    turn.set()
                else:
                    waiting.append((waiter, turn))
            self._queue = waiting


class LaneError(Exception):
    """The reason why a lane has no result; hooks report its ``code`` as a warning."""

    code: ClassVar[str] = "memory.failed"


class LaneFull(LaneError):
    """The lane accepts no more work; raised immediately, since waiting would not help."""

    code = "memory.full"


class LaneClosed(LaneError):
    code = "memory.closed"


class LaneTimeout(LaneError):
    """The work was not done in time."""

    code = "memory.slow"


class WorkEnded(LaneError):
    """The work raised an exception like SystemExit, which must not end the waiting caller."""


def handed_over(error: BaseException) -> Exception:
    """Return an error that may be raised in the waiting thread, so never SystemExit."""
    if isinstance(error, Exception):
        return error
    return WorkEnded(f"a part of the memory failed: {type(error).__name__}")


class LaneTask(Generic[T]):
    """A unit of work submitted to a lane."""

    def __init__(
        self, work: Callable[[], T], *, keeps: bool = False, gate: LaneLimit | None = None
    ) -> None:
        self._work = work
        self._gate = gate
        self._keeps = keeps
        self._future: Future[T] = Future()
        # True when nobody waits any more; the lane counts the threads of such work as lost.
        self.abandoned = False

    def result(self, until: float) -> T:
        """Return the result of the work.

        Args:
            until: when to stop waiting, in the time of ``time.monotonic``.

        Raises:
            LaneTimeout: the work was not done in time.
            LaneClosed: the lane was closed before the work began.
            Exception: whatever the work raised.
        """
        try:
            return self._future.result(max(until - time.monotonic(), 0.0))
        except TimeoutError:
            if self._future.done():
                # The work itself raised TimeoutError, or it has ended just now.
                return self._future.result()
            self.abandoned = not self._keeps
            if self._gate is not None and self.abandoned:
                self._gate.leave(self)
            raise LaneTimeout("the memory did not answer in time") from None
        except CancelledError:
            raise LaneClosed("these hooks were closed") from None

    def run(self) -> None:
        """Run the work in a thread of the lane; ``result`` raises its error."""
        if self._gate is None:
            self._run()
            return
        self._gate.enter(self)
        try:
            self._run()
        finally:
            self._gate.leave(self)

    def _run(self) -> None:
        if self.abandoned or not self._future.set_running_or_notify_cancel():
            return
        try:
            value = self._work()
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            self._future.set_exception(handed_over(error))
        else:
            self._future.set_result(value)

    def cancel(self) -> None:
        """Cancel the work; ``result`` raises LaneClosed."""
        if self._future.cancel():
            self._future.set_running_or_notify_cancel()


class Lane:
    """A bounded queue and its threads, which are started on demand.

    Args:
        name: the name of its threads.
        threads: the maximum number of threads; with one, work is done in order.
        waiting: the maximum number of queued tasks.
        keeps: run the work even when nobody waits for it any more.
        gate: a limit for its running work, shared with other lanes.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int,
        waiting: int,
        keeps: bool = False,
        gate: LaneLimit | None = None,
    ) -> None:
        self._name = name
        self._threads = threads
        self._waiting = waiting
        self._keeps = keeps
        self._gate = gate
        self._queue: deque[LaneTask[Any]] = deque()
        self._changed = threading.Condition()
        self._alive = 0
        self._idle = 0
        self._running: set[LaneTask[Any]] = set()
        self._closed = False

    def submit(self, work: Callable[[], T]) -> LaneTask[T]:
        """Submit work; it begins when a thread is free.

        Raises:
            LaneFull: the queue is full, every thread is busy with abandoned work, or no thread can
                start.
            LaneClosed: the lane was closed.
        """
        task = LaneTask(work, keeps=self._keeps, gate=self._gate)
        with self._changed:
            if self._closed:
                raise LaneClosed("these hooks were closed")
            if self._lost() or len(self._queue) >= self._waiting:
                self._drop_abandoned()
                if self._lost() or len(self._queue) >= self._waiting:
                    raise LaneFull("too many calls are waiting for the memory")
            self._queue.append(task)
            if len(self._queue) <= self._idle:
                self._changed.notify_all()
            elif self._alive < self._threads:
                self._begin()
        return task

    @property
    def alive(self) -> int:
        """The current number of threads."""
        return self._alive

    def close(self, patience_s: float) -> bool:
        """Accept no more work, and wait for running work; return True when all of it has ended.

        Queued work is cancelled, unless the lane keeps its work.
        """
        until = time.monotonic() + patience_s
        with self._changed:
            self._closed = True
            if not self._keeps:
                self._cancel_all()
            self._changed.notify_all()
            done = self._changed.wait_for(
                lambda: not self._queue and not self._running, max(until - time.monotonic(), 0.0)
            )
            self._cancel_all()
        return done

    def _cancel_all(self) -> None:
        while self._queue:
            self._queue.popleft().cancel()

    def _lost(self) -> bool:
        """Return True when all threads are busy with abandoned work."""
        return sum(task.abandoned for task in self._running) >= self._threads

    def _drop_abandoned(self) -> None:
        self._queue = deque(task for task in self._queue if not task.abandoned)

    def _begin(self) -> None:
        # A daemon thread: a hanging model must not keep the process from exiting.
        thread = threading.Thread(target=self._serve, name=f"memgraph-{self._name}", daemon=True)
        self._alive += 1
        try:
            thread.start()
        except RuntimeError as error:
            self._alive -= 1
            if not self._alive:
                self._queue.pop()
                raise LaneFull("the system cannot start another thread") from error

    def _serve(self) -> None:
        while (task := self._next()) is not None:
            task.run()
            with self._changed:
                self._running.discard(task)
                self._changed.notify_all()

    def _next(self) -> LaneTask[Any] | None:
        with self._changed:
            self._idle += 1
            has_work = self._changed.wait_for(lambda: self._queue or self._closed, IDLE_S)
            self._idle -= 1
            if not has_work or not self._queue:
                self._alive -= 1
                return None
            task = self._queue.popleft()
            self._running.add(task)
            return task
