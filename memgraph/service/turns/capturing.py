"""Messages to be stored: in order, together, retried while the database is busy.

A message is acknowledged only when its transaction is committed. What cannot be stored now because
another process holds the database, or the disk is full, waits here.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice

from memgraph.errors import DatabaseBusy, DatabaseFull, DatabaseReplaced
from memgraph.model.conversation import AgentTurn, UserTurn
from memgraph.model.values import Outcome
from memgraph.service.turns.lanes import Lane, LaneClosed, LaneError, LaneFull, handed_over

Turn = UserTurn | AgentTurn
StoreTurns = Callable[[Sequence[Turn]], Sequence[Outcome]]
"""Stores turns in one transaction, in order; one outcome for each."""

MAX_WAITING = 1_000
TOGETHER = 32
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
# A locked database or a full disk passes; any other error needs a person.
PASSING = (DatabaseBusy, DatabaseFull, DatabaseReplaced)


@dataclass(frozen=True, slots=True)
class Capture:
    """A waiting message; ``stored`` has its outcome, or why it will never be stored."""

    turn: Turn
    stored: Future[Outcome] = field(default_factory=Future)


class Captures:
    """The queue of one orchestrator's messages. Thread-safe.

    Args:
        store: writes some of them.
        failed: called with the error for which captures wait or were dropped; None: all is well.
    """

    def __init__(self, store: StoreTurns, failed: Callable[[Exception | None], None]) -> None:
        self._store = store
        self._failed = failed
        self._lane = Lane("captures", threads=1, waiting=2, keeps=True)
        self._lock = threading.Lock()
        self._queue: deque[Capture] = deque()
        self._draining = False
        self._one_by_one = 0
        self._closed = False
        self._given_up = threading.Event()
        # Why the first of them is not stored yet, where it was tried.
        self.trouble: Exception | None = None

    @property
    def waiting(self) -> int:
        """The number of messages that are not stored yet."""
        return len(self._queue)

    def add(self, turn: Turn) -> Capture:
        """Put a message in the queue.

        Raises:
            LaneFull: 1,000 wait already, or the system gives no thread.
            LaneClosed: it was closed.
        """
        capture = Capture(turn)
        with self._lock:
            if self._closed:
                raise LaneClosed("these hooks were closed")
            if len(self._queue) >= MAX_WAITING:
                raise LaneFull("too many messages wait to be stored already")
            self._queue.append(capture)
            if not self._draining:
                try:
                    self._lane.submit(self._drain)
                except LaneError:
                    self._queue.pop()
                    raise
                self._draining = True
        return capture

    def close(self, patience_s: float) -> int:
        """Take no more; store what waits within a time; return how many messages were lost."""
        # Under the lock: nobody adds to a lane that is being closed.
        with self._lock:
            self._closed = True
        self._lane.close(patience_s)
        self._given_up.set()
        with self._lock:
            lost = list(self._queue)
            self._queue.clear()
            for each in lost:
                each.stored.set_exception(LaneClosed("these hooks were closed"))
        return len(lost)

    def _drain(self) -> None:
        pause = FIRST_PAUSE_S
        while batch := self._next():
            try:
                outcomes = self._store([each.turn for each in batch])
            except PASSING as error:
                self.trouble = error
                self._failed(error)
                self._given_up.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE_S)
            except BaseException as error:  # noqa: BLE001 - told to whoever waits for these messages
                self._refuse(batch, handed_over(error))
            else:
                pause = FIRST_PAUSE_S
                self._acknowledge(batch, outcomes)

    def _next(self) -> list[Capture]:
        with self._lock:
            most = 1 if self._one_by_one else TOGETHER
            batch = [] if self._given_up.is_set() else list(islice(self._queue, most))
            self._draining = bool(batch)
            return batch

    def _acknowledge(self, batch: Sequence[Capture], outcomes: Sequence[Outcome]) -> None:
        self.trouble = None
        self._failed(None)
        self._remove(batch)
        for each, outcome in zip(batch, outcomes, strict=True):
            if not each.stored.done():
                each.stored.set_result(outcome)

    def _refuse(self, batch: Sequence[Capture], error: Exception) -> None:
        """Retry each message singly, as one of them may be at fault, then drop it."""
        if len(batch) > 1:
            self._one_by_one = len(batch)
            return
        self._failed(error)
        self._remove(batch)
        if not batch[0].stored.done():
            batch[0].stored.set_exception(error)

    def _remove(self, batch: Sequence[Capture]) -> None:
        with self._lock:
            # Whoever closed may have given them up meanwhile.
            for _ in batch if self._queue and self._queue[0] is batch[0] else ():
                self._queue.popleft()
            self._one_by_one = max(self._one_by_one - 1, 0)
