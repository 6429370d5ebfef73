"""Lanes: small thread pools, so that work that hangs in one does not delay the others.

A caller decides how long it waits. Work that has not begun is dropped once nobody waits for it,
unless the lane keeps its work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
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

    def __init__(self, work: Callable[[], T_co], *, keeps: bool) -> None:
        self._work = work
        self._keeps = keeps
        self._future: Future[T_co] = Future()
        self.refusal: LaneError | None = None
        self.abandoned = False

    def result(self, until: float) -> T_co:
        """Return the result of the work.

        Args:
            until: when to stop waiting, in the time of ``time.monotonic``.

        Raises:
            LaneError: the work was not done in time, the lane did not accept it, or was closed
                before it began.
            Exception: whatever the work raised.
        """
        wait([self._future], max(until - time.monotonic(), 0.0))
        if self._future.done():
            return self._future.result()
        self.abandoned = not self._keeps
        raise LaneError("memory.slow", "the memory did not answer in time")

    def refuse(self, code: str, text: str) -> None:
        """End the task without doing its work."""
        self.refusal = LaneError(code, text)
        self._future.set_exception(self.refusal)

    def run(self) -> None:
        """Run the work in a thread of the lane; ``result`` raises its error."""
        try:
            value = self._work()
        except Exception as error:  # noqa: BLE001 - handed to the caller, whatever it is
            self._future.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - as above, but it must not end the caller
            text = f"a part of the memory failed: {type(error).__name__}"
            self._future.set_exception(LaneError("memory.failed", text))
        else:
            self._future.set_result(value)


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
        self._waiting: set[LaneTask[Any]] = set()
        self._running: set[LaneTask[Any]] = set()
        self._changed = threading.Condition()
        self._closed = False

    @property
    def unfinished(self) -> int:
        """The number of tasks that wait or run."""
        return len(self._waiting) + len(self._running)

    def submit(self, work: Callable[[], T]) -> LaneTask[T]:
        """Submit work; it begins when a thread is free.

        The result raises LaneError at once if the queue is full, every thread is busy with
        abandoned work, no thread can start, or the lane was closed.
        """
        task = LaneTask(work, keeps=self._keeps)
        with self._changed:
            if self._closed:
                task.refuse("memory.closed", "these hooks were closed")
            elif self._is_full():
                task.refuse("memory.full", "too many calls are waiting for the memory")
            else:
                self._waiting.add(task)
                try:
                    self._pool.submit(self._run, task)
                except RuntimeError:
                    self._waiting.discard(task)
                    task.refuse("memory.full", "the system cannot start another thread")
        return task

    def close(self, patience_s: float) -> int:
        """Accept no more work, wait for running work, and return the number of unfinished tasks.

        Queued work is dropped; if the lane keeps its work, only after ``patience_s`` seconds.
        """
        with self._changed:
            self._closed = True
            if not self._keeps:
                self._drop_waiting()
            self._changed.wait_for(lambda: not self.unfinished, patience_s)
            unfinished = self.unfinished
            self._drop_waiting()
        return unfinished

    def _is_full(self) -> bool:
        if len(self._waiting) >= self._places:
            self._waiting = {task for task in self._waiting if not task.abandoned}
        hanging = sum(task.abandoned for task in self._running)
        return hanging >= self._threads or len(self._waiting) >= self._places

    def _drop_waiting(self) -> None:
        while self._waiting:
            self._waiting.pop().refuse("memory.closed", "these hooks were closed")

    def _run(self, task: LaneTask[Any]) -> None:
        """Run a task in a thread of the pool, unless it was dropped or nobody waits for it."""
        with self._changed:
            if task not in self._waiting:
                return
            self._waiting.discard(task)
            self._running.add(task)
        is_inside = self._gate is not None and self._gate.acquire(timeout=GATE_S)
        try:
            if not task.abandoned:
                task.run()
        finally:
            if is_inside and self._gate is not None:
                self._gate.release()
            with self._changed:
                self._running.discard(task)
                self._changed.notify_all()
