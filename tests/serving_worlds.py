"""A real server for tests: uvicorn in a thread, on a free loopback port, over a root of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn

from memgraph import MemoryService, Orchestrator
from memgraph.model.access import ANY, Permission
from memgraph.model.enums import Sensitivity
from memgraph.service.access.gate import Gate
from memgraph.service.access.keys import KeyStore

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp

PATIENCE_S = 60.0
DRAIN_S = 5.0
TICK_S = 0.002
EVERYTHING: Mapping[str, Any] = {
    "orchestrators": (ANY,),
    "permissions": frozenset(Permission),
    "clearance": Sensitivity.RESTRICTED,
    "project_ids": (ANY,),
    "session_ids": (ANY,),
}
"""What a key may be granted at most."""


def http_app(gate: Gate) -> ASGIApp:
    """The HTTP API alone."""
    from memgraph.surfaces.http.app import create_app

    return create_app(gate)


def whole_app(gate: Gate) -> FastAPI:
    """HTTP, MCP and the console under one address, as `memgraph serve` has them."""
    from memgraph.surfaces.serve import application

    return application(gate, gate.service.settings().memory.server)


@dataclass(frozen=True)
class Served:
    """A running server, and what it serves.

    Attributes:
        url: ``http://127.0.0.1:<port>``.
        service: the server's own; the test may use it at the same time.
    """

    url: str
    service: MemoryService
    keys: KeyStore

    def key(self, **fields: Any) -> str:
        """The secret of a new key: may do everything, but for the fields of ``Principal`` given."""
        made = self.keys.create({"name": "a test", **EVERYTHING, **fields})
        return made.secret

    def client(self, secret: str | None = None, **options: Any) -> httpx.Client:
        """An httpx client at the server's root that shows this secret, or none. Close it."""
        headers = {} if secret is None else {"authorization": f"Bearer {secret}"}
        headers |= options.pop("headers", {})
        return httpx.Client(
            base_url=self.url,
            headers=headers,
            trust_env=False,
            # No TLS here, and to read the certificates that come with httpx takes 40 ms.
            verify=False,
            timeout=PATIENCE_S,
            **options,
        )

    def connect(self) -> socket.socket:
        """A connection for what no client sends. Close it."""
        host, port = self.url.removeprefix("http://").split(":")
        return socket.create_connection((host, int(port)), timeout=PATIENCE_S)

    def orchestrator(self, name: str = "orc-1") -> Orchestrator:
        """The library's own handle, made when there is none."""
        return self.service.orchestrator(name, create=True)


@contextmanager
def serving(
    root: Path,
    *,
    keyless: bool = False,
    app_of: Callable[[Gate], ASGIApp] = http_app,
    **service_options: Any,
) -> Iterator[Served]:
    """Serve the orchestrators under a root for the time of the block.

    Args:
        keyless: requests without a key may do everything.
        app_of: makes the application; by default the HTTP API.
        service_options: further arguments of ``MemoryService``: ``config``, ``clock``, ``ids`` …
    """
    options = {"environ": {}, "background": False, **service_options}
    with MemoryService(root, **options) as service:
        keys = KeyStore(service.root, service.clock)
        with listening(app_of(Gate(service, keys, keyless=keyless))) as url:
            yield Served(url, service, keys)


@contextmanager
def listening(app: ASGIApp) -> Iterator[str]:
    """Any application behind uvicorn; gives its address. It has ended when the block has."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        # asyncio sets it where it makes the socket itself; an answer would wait 40 ms for an ACK.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        chosen = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            ws="none",
            proxy_headers=False,
            server_header=False,
        )
        server = _Prompt(chosen)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            assert server.ready.wait(PATIENCE_S), "the server did not start"
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.end()
            thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the server did not end"


class _Prompt(uvicorn.Server):
    """Tells when it listens, and ends when it is told to: uvicorn's own looks ten times a second,
    which is most of the time of a short test.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self._over = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def end(self) -> None:
        """To be called in another thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._over.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self.ready.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._over.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        deadline = asyncio.get_running_loop().time() + DRAIN_S
        while self.server_state.connections or self.server_state.tasks:
            if asyncio.get_running_loop().time() > deadline:
                for task in self.server_state.tasks:
                    task.cancel()
                break
            await asyncio.sleep(TICK_S)
        await self.lifespan.shutdown()
