"""An HTTP server that bounds slow requests, and finishes running ones before it ends."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, ClassVar, Final

from starlette.types import ASGIApp

from memgraph.config.server import ServerSettings
from memgraph.errors import ExtraMissing

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ModuleNotFoundError:
    raise ExtraMissing.of("serving needs the extra server", extra="server") from None

MOST_FILES: Final = 65_536
"""The number of open files that a server allows itself, as far as the hard limit permits."""
KEEP_ALIVE_S: Final = 75
"""Longer than the keep-alive time of clients and proxies, so that they close idle connections."""
REQUEST_THREAD: Final = "AnyIO worker thread"
"""The name of the threads that process requests."""
CUT_OFF: Final = 1
"""The exit code of a process that did not end in time."""


class TimedHeads(H11Protocol):
    """uvicorn's HTTP/1.1 protocol, with a time limit for the head of a request.

    The time begins with the connection for its first request, and with the first byte for a later
    one. uvicorn has no limit for either.
    """

    head_timeout_s: ClassVar[float] = 10.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.head_timeout_s, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            # The head is complete.
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.head_timeout_s, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class DrainingServer(uvicorn.Server):
    """uvicorn's server, stopped gracefully by the first signal and at once by the second.

    Args:
        settings: the time for running requests after the first signal.
        draining: called in the event loop when the graceful stop begins; must not block.
    """

    def __init__(
        self, app: ASGIApp, *, settings: ServerSettings, draining: Callable[[], None]
    ) -> None:
        config = uvicorn.Config(
            app,
            http=TimedHeads,
            access_log=False,
            log_config=None,
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=settings.drain_s,
        )
        super().__init__(config)
        self._draining = draining
        self._ready: Callable[[], None] = lambda: None

    def serve_at(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        """Serve until a signal arrives and running requests are done.

        Args:
            listener: a bound socket.
            ready: called when the server accepts requests.
        """
        self._ready = ready
        _allow_files()
        self.run(sockets=[listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._draining()
        await super().shutdown(sockets=sockets)

    def handle_exit(self, _sig: int, _frame: FrameType | None) -> None:
        """Stop gracefully. Unlike uvicorn, do not raise the signal again after the shutdown."""
        # Leave a second signal to the kernel: Python's SIGINT handler would wait for threads.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        self.should_exit = True


def _allow_files() -> None:
    """Raise the soft limit of open files: each connection is one, and databases need some."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@contextmanager
def ended_at_the_latest() -> Iterator[Callable[[float], None]]:
    """Yield a function that ends the process after some seconds, unless the block ends earlier.

    A thread that waits for a remote response cannot be stopped. Killing it loses nothing, because
    acknowledged writes are in the database. The block waits for such threads at its end, while the
    timer runs; the interpreter would wait for them at exit without a limit.
    """
    timers: list[threading.Timer] = []

    def end_within(seconds: float) -> None:
        timer = threading.Timer(seconds, os._exit, [CUT_OFF])
        timer.daemon = True
        timer.start()
        timers.append(timer)

    others = frozenset(threading.enumerate())
    try:
        yield end_within
    finally:
        for thread in threading.enumerate():
            if timers and thread.name == REQUEST_THREAD and thread not in others:
                thread.join()
        for timer in timers:
            timer.cancel()
