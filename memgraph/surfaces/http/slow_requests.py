"""Work that may take minutes, limited so that other requests find a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fastapi import Request

from memgraph.errors import ServerBusy

SHARE: Final = 4
"""One thread of so many may be used for such work."""
RETRY_S: Final = 5


class SlowRequestLimit:
    """The limit of such work. Thread-safe.

    Args:
        threads: of the server, for all requests.
    """

    def __init__(self, threads: int) -> None:
        self._free = threading.BoundedSemaphore(max(1, threads // SHARE))

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count one more piece of work for the time of the block; never blocks.

        Raises:
            ServerBusy: the limit is reached.
        """
        if not self._free.acquire(blocking=False):
            raise ServerBusy("other jobs, audits or copies are running", retry_after_s=RETRY_S)
        try:
            yield
        finally:
            self._free.release()


def lengthy_of(request: Request) -> SlowRequestLimit:
    """Return the server's limit."""
    result: SlowRequestLimit = request.app.state.lengthy
    return result
