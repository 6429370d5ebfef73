"""Lanes: small thread pools, so that work that hangs in one does not delay the others.

A caller decides how long it waits. Work that has not begun is dropped once nobody waits for it,
unless the lane keeps its work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, Generic, TypeVar

from memgraph.operations.threads import DaemonThreads

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

GATE_S = 0.1
"""The maximum wait for a place in a gate, so that work that hangs there stops nobody."""


class LaneError(Exception):
    """The reason why a lane has no result; hooks report its ``code`` as a warning.

    ``memory.full``: the lane accepts no more work; reported immediately, since waiting would not
    help. ``memory.closed``: it was closed before the work began. ``memory.slow``: the work was not
    done in time. ``memory.failed``: the work raised an exception like SystemExit, which must not
    end the waiting caller.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class LaneTask(Generic[T_co]):
    """A unit of work submitted to a lane.

    Attributes:
        refusal: why the lane did not accept the work; None if it did.
        abandoned: True when nobody waits any more.
    """

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self.future: Future[Any] = Future()
        self.refusal: LaneError | None = None
        self.abandoned = False

    def result(self, until: float) -> T_co:
        """Return the result of the work, or raise its error or a LaneError.

        ``until`` is when to stop waiting, in the time of ``time.monotonic``.
        """
        if self.refusal is not None:
            raise self.refusal
        try:
            error = self.future.exception(max(until - time.monotonic(), 0.0))
        except CancelledError:
            raise LaneError("memory.closed", "these hooks were closed") from None
        except TimeoutError:
            if not self._keeps:
                self.abandoned = True
                self.future.cancel()
            raise LaneError("memory.slow", "the memory did not answer in time") from None
        if error is None:
            result: T_co = self.future.result()
            return result
        if isinstance(error, Exception):
            raise error
        raise LaneError("memory.failed", f"a part of the memory failed: {type(error).__name__}")


class Lane:
    """A bounded queue and its threads, which are started on demand.

    Args:
        name: the name of its threads.
        threads: the maximum number of threads; with one, work is done in order.
        waiting: the maximum number of queued tasks.
        keeps: run the work even when nobody waits for it any more.
        gate: shared with other lanes: Python runs one thread at a time, so with many running
            tasks each would take as long as all of them together.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int,
        waiting: int,
        keeps: bool = False,
        gate: threading.Semaphore | None = None,
    ) -> None:
        self._pool = DaemonThreads(threads, f"memgraph-{name}")
        self._threads = threads
        self._places = waiting
        self._keeps = keeps
        self._gate = gate
        self._tasks: set[LaneTask[Any]] = set()
        self._changed = threading.Condition()
        self._closed = False

    @property
    def unfinished(self) -> int:
        """The number of tasks that wait or run."""
        return len(self._tasks)

    def submit(self, work: Callable[[], T]) -> LaneTask[T]:
        """Submit work; it begins when a thread is free.

        The result raises LaneError at once if the queue is full, every thread is busy with
        abandoned work, no thread can start, or the lane was closed.
        """
        task = LaneTask[T](keeps=self._keeps)
        with self._changed:
            if self._closed:
                task.refusal = LaneError("memory.closed", "these hooks were closed")
            elif self._is_full():
                task.refusal = LaneError("memory.full", "too many calls are waiting for the memory")
            else:
                try:
                    task.future = self._pool.submit(self._run, task, work)
                except RuntimeError:
                    text = "the system cannot start another thread"
                    task.refusal = LaneError("memory.full", text)
                else:
                    self._tasks.add(task)
                    task.future.add_done_callback(lambda _future: self._end(task))
        return task

    def close(self, patience_s: float) -> int:
        """Accept no more work, wait for running work, and return the number of unfinished tasks.

        Queued work is dropped; if the lane keeps its work, only after ``patience_s`` seconds.
        """
        with self._changed:
            self._closed = True
            if not self._keeps:
                self._drop_waiting()
            self._changed.wait_for(lambda: not self._tasks, patience_s)
            unfinished = self.unfinished
            self._drop_waiting()
        return unfinished

    def _is_full(self) -> bool:
        if self._keeps and len(self._tasks) < self._places:
            # What is kept is never abandoned.
            return False
        running = [task for task in self._tasks if task.future.running()]
        hanging = sum(task.abandoned for task in running)
        return hanging >= self._threads or len(self._tasks) - len(running) >= self._places

    def _drop_waiting(self) -> None:
        for task in list(self._tasks):
            task.future.cancel()

    def _end(self, task: LaneTask[Any]) -> None:
        with self._changed:
            self._tasks.discard(task)
            self._changed.notify_all()

    def _run(self, task: LaneTask[Any], work: Callable[[], Any]) -> Any:
        is_inside = self._gate is not None and self._gate.acquire(timeout=GATE_S)
        try:
            return None if task.abandoned else work()
        finally:
            if is_inside and self._gate is not None:
                self._gate.release()
