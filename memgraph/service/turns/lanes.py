"""Lanes: small thread pools, so that work that hangs in one does not delay the others.

A caller decides how long it waits. Work that has not begun is dropped once nobody waits for it,
unless the lane keeps its work.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext
from typing import Any, Generic, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

IDLE_S = 30.0


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

    def __init__(
        self, work: Callable[[], T_co], *, keeps: bool = False, gate: LaneLimit | None = None
    ) -> None:
        self._work = work
        self._gate = gate
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
        if not self._keeps:
            self.abandoned = True
            if self._gate is not None:
                self._gate.give_up(self)
        raise LaneError("memory.slow", "the memory did not answer in time")

    def refuse(self, error: LaneError) -> None:
        """End the task without doing its work."""
        self.refusal = error
        self._future.set_exception(error)

    def run(self) -> None:
        """Run the work in a thread of the lane; ``result`` raises its error."""
        with nullcontext() if self._gate is None else self._gate.place(self):
            if self.abandoned:
                return
            try:
                value = self._work()
            except Exception as error:  # noqa: BLE001 - handed to the caller, whatever it is
                self._future.set_exception(error)
            except BaseException as error:  # noqa: BLE001 - as above, but it must not end the caller
                text = f"a part of the memory failed: {type(error).__name__}"
                self._future.set_exception(LaneError("memory.failed", text))
            else:
                self._future.set_result(value)


class LaneLimit:
    """Limits how many tasks of a process run at a time.

    Python runs one thread at a time, so with many running tasks each takes as long as all of them
    together. Tasks that nobody waits for give up their place.

    Args:
        places: the maximum number of running tasks.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._changed = threading.Condition()
        self._inside: set[LaneTask[Any]] = set()

    @contextmanager
    def place(self, task: LaneTask[Any]) -> Iterator[None]:
        """Wait for a place, or until the task is abandoned; free the place at the end."""
        with self._changed:
            self._changed.wait_for(lambda: task.abandoned or len(self._inside) < self._places)
            self._inside.add(task)
        try:
            yield
        finally:
            with self._changed:
                self._inside.discard(task)
                self._changed.notify()

    def give_up(self, task: LaneTask[Any]) -> None:
        """Free the place of an abandoned task, or let it stop waiting for one."""
        with self._changed:
            self._inside.discard(task)
            self._changed.notify_all()


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
        self._running: set[LaneTask[Any]] = set()
        self._changed = threading.Condition()
        self._alive = 0
        self._idle = 0
        self._closed = False

    @property
    def unfinished(self) -> int:
        """The number of tasks that wait or run."""
        return len(self._queue) + len(self._running)

    def submit(self, work: Callable[[], T]) -> LaneTask[T]:
        """Submit work; it begins when a thread is free.

        The result raises LaneError at once if the queue is full, every thread is busy with
        abandoned work, no thread can start, or the lane was closed.
        """
        task = LaneTask(work, keeps=self._keeps, gate=self._gate)
        with self._changed:
            if self._closed:
                task.refuse(LaneError("memory.closed", "these hooks were closed"))
            elif self._is_full():
                task.refuse(LaneError("memory.full", "too many calls are waiting for the memory"))
            else:
                self._queue.append(task)
                if len(self._queue) <= self._idle:
                    self._changed.notify_all()
                elif self._alive < self._threads:
                    self._start_thread()
        return task

    def close(self, patience_s: float) -> int:
        """Accept no more work, wait for running work, and return the number of unfinished tasks.

        Queued work is dropped; if the lane keeps its work, only after ``patience_s`` seconds.
        """
        with self._changed:
            self._closed = True
            if not self._keeps:
                self._drop_queued()
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self.unfinished, patience_s)
            unfinished = self.unfinished
            self._drop_queued()
        return unfinished

    def _is_full(self) -> bool:
        if len(self._queue) >= self._waiting:
            self._queue = deque(task for task in self._queue if not task.abandoned)
        hanging = sum(task.abandoned for task in self._running)
        return hanging >= self._threads or len(self._queue) >= self._waiting

    def _drop_queued(self) -> None:
        while self._queue:
            self._queue.popleft().refuse(LaneError("memory.closed", "these hooks were closed"))

    def _start_thread(self) -> None:
        # A daemon thread: a hanging model must not keep the process from exiting.
        thread = threading.Thread(target=self._serve, name=f"memgraph-{self._name}", daemon=True)
        self._alive += 1
        try:
            thread.start()
        except RuntimeError:
            self._alive -= 1
            # Other threads serve the queue as well.
            if not self._alive:
                self._queue.pop().refuse(
                    LaneError("memory.full", "the system cannot start another thread")
                )

    def _serve(self) -> None:
        while (task := self._next()) is not None:
            task.run()
            with self._changed:
                self._running.discard(task)
                self._changed.notify_all()

    def _next(self) -> LaneTask[Any] | None:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._queue or self._closed, IDLE_S)
            self._idle -= 1
            if not self._queue:
                self._alive -= 1
                return None
            task = self._queue.popleft()
            self._running.add(task)
            return task
