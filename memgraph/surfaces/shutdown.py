"""A server that finishes its running requests before it ends."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from memgraph.config.server import ServerSettings
from memgraph.errors import ExtraMissing
from memgraph.surfaces.asgi import ASGIApp

try:
    import uvicorn

    from memgraph.surfaces.connections import bounded_protocol
except ModuleNotFoundError:
    raise ExtraMissing.of("serving needs the extra server", extra="server") from None

KEEP_ALIVE_S = 75
"""Longer than the keep-alive of clients and proxies, so that they close idle connections."""
REQUEST_THREAD = "AnyIO worker thread"
"""The name of the threads that work on requests."""
CUT_OFF = 1
"""The exit code of a process that did not end in time."""


class DrainingServer(uvicorn.Server):
    """uvicorn, ended gracefully by the first signal and at once by the second.

    Args:
        settings: the bounds of connections, and how long running requests may take after the first
            signal.
        draining: called when the drain begins, in the event loop; must return at once.
    """

    def __init__(
        self, app: ASGIApp, *, settings: ServerSettings, draining: Callable[[], None]
    ) -> None:
        config = uvicorn.Config(
            app,
            http=bounded_protocol(settings),
            access_log=False,
            log_config=None,
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
        )
        # Its type says int, and what it is handed to takes fractions.
        config.timeout_graceful_shutdown = settings.drain_s  # type: ignore[assignment]
        super().__init__(config)
        self._draining = draining
        self._ready: Callable[[], None] = lambda: None

    def serve_at(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        """Serve until a signal arrives and running requests are done. ``ready``: it takes
        requests.
        """
        self._ready = ready
        self.run(sockets=[listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._draining()
        await super().shutdown(sockets=sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals; unlike uvicorn's own, it does not end the process by the signal."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}

        def end(_number: int, _frame: FrameType | None) -> None:
            # The second one is the kernel's: Python's own handler of SIGINT would wait for threads.
            for number in before:
                signal.signal(number, signal.SIG_DFL)
            self.should_exit = True

        for each in before:
            signal.signal(each, end)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def ended_at_the_latest() -> Iterator[Callable[[float], None]]:
    """Yield a function that ends the process after so many seconds, unless all is done before.

    A thread that waits for a remote answer cannot be stopped. Nothing is lost by ending it:
    acknowledged writes are in the database. Such threads are waited for at the end of the block:
    the interpreter would wait for them at its own end, without a limit.
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
        for each in threading.enumerate():
            if timers and each.name == REQUEST_THREAD and each not in others:
                each.join()
        for timer in timers:
            timer.cancel()


def notify_supervisor(state: str) -> None:
    """Notify the supervisor, if there is one, by systemd's protocol, sd_notify(3).

    Args:
        state: ``READY=1`` or ``STOPPING=1``.
    """
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    # A name that begins with @ is of Linux's abstract namespace.
    target = "\0" + address[1:] if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as recorder, suppress(OSError):
        # One that does not listen any more is no reason not to serve.
        recorder.sendto(state.encode(), target)
