"""`memgraph serve`: the surfaces of one process put together, from its start to its end."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memgraph.config.server import ServerSettings
from memgraph.errors import InvalidConfig
from memgraph.service.access.gate import Gate
from memgraph.service.access.keys import KeyStore
from memgraph.service.memory_service import MemoryService
from memgraph.surfaces.draining import DrainingServer, ended_at_the_latest

if TYPE_CHECKING:
    from memgraph.service.life.worker import Worker

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
BACKLOG = 2_048
CLOSING_S = 5.0
"""How long closing may take after the requests have had ``memory.server.drain_s``."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that takes requests.

    Attributes:
        url: where it listens.
        worker: whether it runs the jobs, too.
    """

    url: str
    pid: int
    worker: bool


def serve(
    service: MemoryService,
    *,
    with_worker: bool = True,
    ready: Callable[[Serving], None] = lambda _serving: None,
) -> None:
    """Serve until SIGTERM or SIGINT, finish what is in hand, and close the service.

    The first signal ends the taking of requests: those in hand have ``memory.server.drain_s``
    seconds, streams end at once, the worker ends after its batch. A second signal ends the process.
    Signals are only heeded in the main thread.

    Args:
        with_worker: run the jobs of all orchestrators in this process.
        ready: called once it takes requests.

    Raises:
        InvalidConfig: it would be open to those who have no key, or cannot listen there.
        ExtraMissing: the packages of the extra ``server`` are not installed.
    """
    from memgraph.surfaces.http.app import create_app

    chosen = service.settings().memory.server
    keys = KeyStore(service.root, service.clock)
    _check_address(chosen, keys)
    keyless = chosen.allow_without_key and chosen.host in LOOPBACK
    app = create_app(Gate(service, keys, keyless=keyless))
    with _listening(chosen) as listener, ended_at_the_latest() as end_within:

        def draining() -> None:
            end_within(chosen.drain_s + CLOSING_S)
            if worker is not None:
                worker.stop()

        worker = service.worker() if with_worker else None
        server = DrainingServer(app, drain_s=chosen.drain_s, draining=draining)
        serving = Serving(_url(listener), os.getpid(), worker is not None)
        with _working(worker):
            server.serve_at(listener, lambda: ready(serving))
        service.close()


def _check_address(chosen: ServerSettings, keys: KeyStore) -> None:
    if chosen.host not in LOOPBACK and (not keys.has_any or not chosen.allowed_hosts):
        raise InvalidConfig(
            "an address that others reach takes a key (memgraph key create) and "
            "memory.server.allowed_hosts",
            host=chosen.host,
        )


@contextmanager
def _listening(chosen: ServerSettings) -> Iterator[socket.socket]:
    """A bound socket, so that an address in use is told like any other wrong setting."""
    try:
        family, *_, address = socket.getaddrinfo(
            chosen.host, chosen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise InvalidConfig(
            f"cannot listen at {chosen.host}:{chosen.port}: {error.strerror}",
            host=chosen.host,
            port=chosen.port,
        ) from None
    with listener:
        yield listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _working(worker: Worker | None) -> Iterator[None]:
    if worker is None:
        yield
        return
    with worker:
        yield
