"""Work that may take minutes: so much of it at a time that others find a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fastapi import Request

from memgraph.errors import ServerBusy

SHARE: Final = 4
"""Of so many threads one may be taken by such work."""
RETRY_S: Final = 5


class Lengthy:
    """How much of it is done. Thread-safe.

    Args:
        threads: of the server, for all requests.
    """

    def __init__(self, threads: int) -> None:
        self._free = threading.BoundedSemaphore(max(1, threads // SHARE))

    @contextmanager
    def one(self) -> Iterator[None]:
        """One piece of work more, for the time of the block; nobody waits for it in a thread.

        Raises:
            ServerBusy: as much is done already as may be.
        """
        if not self._free.acquire(blocking=False):
            raise ServerBusy("other jobs, audits or copies are being done", retry_after_s=RETRY_S)
        try:
            yield
        finally:
            self._free.release()


def lengthy_of(request: Request) -> Lengthy:
    """The server's."""
    found: Lengthy = request.app.state.lengthy
    return found
