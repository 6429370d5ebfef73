"""An HTTP server with bounded connections that finishes running requests before it ends."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from types import FrameType
from typing import Any, ClassVar, Final

from memgraph.config.server import ServerSettings
from memgraph.errors import ExtraMissing, MemgraphError, RequestRefused, RequestTimeout, ServerBusy
from memgraph.surfaces.asgi import PROBLEM, ASGIApp, problem_body

try:
    import h11
    import uvicorn
    from h11._receivebuffer import ReceiveBuffer
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ModuleNotFoundError:
    raise ExtraMissing.of("serving needs the extra server", extra="server") from None

OTHER_FILES: Final = 512
"""The number of open files reserved for databases, logs and models."""
_BARE_LF: Final = re.compile(rb"(?<!\r)\n")
_IPV6_SITE_BITS: Final = 64


class Connections:
    """The open connections of a process, with a limit for each address and one in total.

    At a limit, a new connection replaces one without a running request: first one that has never
    sent a request, then an idle one, oldest first. If all have running requests, the new connection
    is refused.

    Args:
        limit: the maximum for all addresses together.
        most_per_address: the maximum for one IPv4 address, or one IPv6 network of 64 bits.
        exempt: addresses and networks that only ``limit`` applies to, such as proxies.
    """

    def __init__(self, limit: int, most_per_address: int, exempt: Iterable[str] = ()) -> None:
        self._most = limit
        self._most_per_address = most_per_address
        self._exempt = tuple(map(ip_network, exempt))
        # Dictionaries keep the order of insertion: the oldest connection comes first.
        self._open: dict[BoundedProtocol, None] = {}
        self._of_address: defaultdict[str, dict[BoundedProtocol, None]] = defaultdict(dict)

    def admit(self, connection: BoundedProtocol) -> bool:
        """Add a new connection; return False if there is no room for it."""
        site = _counted_address(connection.address)
        neighbours = self._of_address[site]
        if len(neighbours) >= self._most_per_address and not self._is_exempt(connection.address):
            admitted = self._evict(neighbours)
        else:
            admitted = len(self._open) < self._most or self._evict(self._open)
        if admitted:
            self._open[connection] = self._of_address[site][connection] = None
        elif not neighbours:
            self._of_address.pop(site, None)
        return admitted

    def remove(self, connection: BoundedProtocol) -> None:
        """Remove a connection, unless it was never added or has been evicted."""
        if connection not in self._open:
            return
        del self._open[connection]
        site = _counted_address(connection.address)
        del self._of_address[site][connection]
        if not self._of_address[site]:
            del self._of_address[site]

    def _evict(self, candidates: dict[BoundedProtocol, None]) -> bool:
        waiting = [candidate for candidate in candidates if not candidate.has_request]
        chosen = min(waiting, key=lambda item: item.cycle is not None, default=None)
        if chosen is None:
            return False
        self.remove(chosen)
        chosen.transport.abort()
        return True

    def _is_exempt(self, address: str) -> bool:
        return any(ip_address(address.partition("%")[0]) in network for network in self._exempt)


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with limits.

    - The head of a request must arrive within ``head_timeout_s`` seconds of its first byte, or of
      the connection for the first request. The same applies to other data between requests.
    - A client that reads none of a response for ``write_timeout_s`` seconds is disconnected.
    - Lines must end with CR LF: a proxy that treats a bare LF differently would see other requests
      (request smuggling).
    """

    open_connections: ClassVar[Connections]
    head_timeout_s: ClassVar[float]
    write_timeout_s: ClassVar[float]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn._receive_buffer = _StrictLines()
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        """The client's IP address; empty if it is unknown."""
        return "" if self.client is None else self.client[0]

    @property
    def has_request(self) -> bool:
        """True from the arrival of a request's head until its response is complete."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self.open_connections.admit(self):
            self._refuse(ServerBusy("too many connections", retry_after_s=1), 503)
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.open_connections.remove(self)
        self._stop_head_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_head()

    def send_400_response(self, msg: str) -> None:
        """Send a problem for invalid HTTP; if a response has begun, close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._refuse(RequestRefused(msg), 400)
        else:
            self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.has_request:
            # The client pipelined the next request, whose head has arrived already.
            self._stop_head_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.write_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_write_timer()
        super().resume_writing()

    def _time_head(self) -> None:
        if self.has_request or self.transport.is_closing():
            self._stop_head_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_timeout_s, self._head_late)

    def _head_late(self) -> None:
        if self.conn.our_state is h11.IDLE:
            self._refuse(RequestTimeout("the request did not arrive in time"), 408)
        else:
            # The response was sent before the rest of its request arrived.
            self.transport.abort()

    def _refuse(self, error: MemgraphError, status: int) -> None:
        body = problem_body(error, status)
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {PROBLEM}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


class _StrictLines(ReceiveBuffer):
    """h11's receive buffer, but refuses header lines that end with a bare LF."""

    def __init__(self) -> None:
        super().__init__()
        self._taken = bytearray()

    def _extract(self, count: int) -> bytearray:
        self._taken = super()._extract(count)
        return self._taken

    def maybe_extract_lines(self) -> list[bytearray] | None:
        lines = super().maybe_extract_lines()
        if lines is not None and _BARE_LF.search(self._taken):
            raise h11.RemoteProtocolError("a line does not end with CR LF")
        return lines


def bounded_protocol(settings: ServerSettings) -> type[BoundedProtocol]:
    """Return the protocol class of a server with the limits of ``memory.server``.

    Connections may use at most half of the files that the process may open. Its soft limit of open
    files is raised if necessary, as far as the hard limit allows.
    """
    limit = min(settings.max_connections, max(1, _open_files(settings.max_connections) // 2))
    table = Connections(limit, settings.connections_per_address, settings.trusted_proxies)

    class BoundedServerProtocol(BoundedProtocol):
        open_connections = table
        head_timeout_s = settings.head_timeout_s
        write_timeout_s = settings.request_timeout_s

    return BoundedServerProtocol


def _open_files(connections: int) -> int:
    """Return how many files the process may open, after raising the soft limit if necessary."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        needed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
        soft = needed
    return needed if soft == resource.RLIM_INFINITY else soft


def _counted_address(address: str) -> str:
    """Return the address that a connection is counted by: an IPv4 address or an IPv6 network."""
    if ":" not in address:
        return address
    parsed = IPv6Address(address.partition("%")[0])
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed, _IPV6_SITE_BITS), strict=False))


KEEP_ALIVE_S = 75
"""Longer than the keep-alive time of clients and proxies, so that they close idle connections."""
REQUEST_THREAD = "AnyIO worker thread"
"""The name of the threads that process requests."""
CUT_OFF = 1
"""The exit code of a process that did not end in time."""


class DrainingServer(uvicorn.Server):
    """uvicorn's server, stopped gracefully by the first signal and at once by the second.

    Args:
        settings: the limits of connections, and the time for running requests after the first
            signal.
        draining: called in the event loop when the graceful stop begins; must not block.
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
        # Declared as int, but passed to a function that accepts fractions.
        config.timeout_graceful_shutdown = settings.drain_s  # type: ignore[assignment]
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
        self.run(sockets=[listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._draining()
        await super().shutdown(sockets=sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals. Unlike uvicorn, do not raise the signal again after the shutdown."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

        def end(_number: int, _frame: FrameType | None) -> None:
            # Leave a second signal to the kernel: Python's SIGINT handler would wait for threads.
            for number in before:
                signal.signal(number, signal.SIG_DFL)
            self.should_exit = True

        for number in before:
            signal.signal(number, end)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


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
