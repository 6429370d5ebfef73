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
        # The first of a queue is being served; a key without requests has none.
        self._queues: dict[Hashable, deque[threading.Event]] = {}

    @contextmanager
    def turn(self, key: Hashable) -> Iterator[None]:
        """Waits until every earlier request for ``key`` has ended, however it ended.

        A request that makes another for the same key within its turn would wait for itself.
        """
        mine = threading.Event()
        try:
            self._arrive(key, mine)
            mine.wait()
            yield
        finally:
            self._leave(key, mine)

    def waiting(self, key: Hashable) -> int:
        """How many requests for ``key`` are being served or wait."""
        with self._lock:
            return len(self._queues.get(key, ()))

    def _arrive(self, key: Hashable, mine: threading.Event) -> None:
        with self._lock:
            queue = self._queues.setdefault(key, deque())
            queue.append(mine)
            queue[0].set()

    def _leave(self, key: Hashable, mine: threading.Event) -> None:
        with self._lock:
            queue = self._queues.get(key, deque())
            # Who was interrupted may stand further back, or nowhere yet.
            if mine in queue:
                queue.remove(mine)
            if queue:
                queue[0].set()
            else:
                self._queues.pop(key, None)


_by_owner: WeakKeyDictionary[object, Mailboxes] = WeakKeyDictionary()
_by_owner_lock = threading.Lock()


def mailboxes_of(owner: object) -> Mailboxes:
    """The queues that belong to an object, for as long as it lives."""
    with _by_owner_lock:
        return _by_owner.setdefault(owner, Mailboxes())
