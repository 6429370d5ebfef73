"""Requests that are served one after another, in the order in which they came."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary


class Mailboxes:
    """One queue for each key. Keys do not wait for one another. Safe from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The first of a queue is being served; a key without requests has none. Each waits for
        # its own lock. An Event would do as well, but for an interruption within its methods.
        self._queues: dict[Hashable, deque[threading.Lock]] = {}

    @contextmanager
    def turn(self, key: Hashable) -> Iterator[None]:
        """Waits until every earlier request for ``key`` has ended, however it ended.

        A request that makes another for the same key within its turn would wait for itself.
        """
        mine = threading.Lock()
        mine.acquire()
        try:
            self._arrive(key, mine)
            mine.acquire()
            yield
        finally:
            try:
                self._leave(key, mine)
            except BaseException:
                # Ctrl-C may come just here. Whoever stays in the line holds up all that follow.
                self._leave(key, mine)
                raise

    def waiting(self, key: Hashable) -> int:
        """How many requests for ``key`` are being served or wait."""
        with self._lock:
            return len(self._queues.get(key, ()))

    def __len__(self) -> int:
        """For how many keys somebody is being served: the others take no room."""
        with self._lock:
            return len(self._queues)

    def _arrive(self, key: Hashable, mine: threading.Lock) -> None:
        with self._lock:
            queue = self._queues.setdefault(key, deque())
            queue.append(mine)
            _wake(queue[0])

    def _leave(self, key: Hashable, mine: threading.Lock) -> None:
        with self._lock:
            queue = self._queues.get(key, deque())
            # Who was interrupted may stand further back, or nowhere yet.
            if mine in queue:
                queue.remove(mine)
            if queue:
                _wake(queue[0])
            else:
                self._queues.pop(key, None)


def _wake(first: threading.Lock) -> None:
    """Twice is as once: nobody but the first of a queue takes its lock."""
    if first.locked():
        first.release()


_by_owner: WeakKeyDictionary[object, Mailboxes] = WeakKeyDictionary()
_by_owner_lock = threading.Lock()


def mailboxes_of(owner: object) -> Mailboxes:
    """The queues that belong to an object, for as long as it lives."""
    with _by_owner_lock:
        return _by_owner.setdefault(owner, Mailboxes())
