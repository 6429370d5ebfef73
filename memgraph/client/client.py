"""The client of a server, in two forms: ``Client`` and ``AsyncClient``."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any, Self, TypedDict, Unpack

import httpx

from memgraph.client.operations import body_of, orchestrator_path
from memgraph.client.orchestrator import AsyncRemoteOrchestrator, RemoteOrchestrator
from memgraph.client.server import Call, Server, value_of
from memgraph.model.access import Narrowing
from memgraph.model.enums import Sensitivity
from memgraph.model.operation import Awaited, Methods
from memgraph.model.remote import Health, OrchestratorList
from memgraph.model.values import validated
from memgraph.operations.threads import AwaitableMethod, daemon_pool


class ViewOptions(TypedDict, total=False):
    """The options that narrow the view of a handle; see ``Narrowing``."""

    project_ids: Sequence[str]
    session_ids: Sequence[str]
    agent_id: str
    clearance: Sensitivity | str


class ClientOptions(TypedDict, total=False):
    """The options of ``Client``."""

    key: str | None
    timeout_s: float
    retries: int
    verify: ssl.SSLContext | bool
    plain_http: bool
    transport: httpx.BaseTransport | None


class Client:
    """A blocking client of a server. Thread-safe; close it, or use it as a context manager.

    Args:
        url: the server's URL, such as ``https://memory.example`` or ``http://127.0.0.1:8420``.
        key: the secret of an API key; it is sent only to this server, and never shown.
        timeout_s: how long a connection may be silent, seconds; long work (jobs, audits, copies)
            may take an hour.
        retries: how often a call that is safe to repeat is sent again, 0 or more.
        verify: False disables the check of certificates; an ``ssl.SSLContext`` configures it.
        plain_http: allow sending the key to another machine unencrypted.
        transport: replaces the network, for tests or a proxy (``httpx.HTTPTransport``).

    Raises:
        InvalidInput: the URL is invalid, or the key would leave the machine unencrypted.
    """

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        self._server = Server(url, **options)

    def orchestrator(self, name: str, **narrowing: Unpack[ViewOptions]) -> RemoteOrchestrator:
        """Return the handle of one orchestrator.

        Nothing is sent yet: if the orchestrator does not exist, the first call fails.

        Args:
            narrowing: the fields of ``Narrowing``. An omitted one stays as the key grants it; an
                empty ``project_ids`` or ``session_ids`` leaves none. A key for every project or
                session (``*``) sees only those that are listed here.

        Raises:
            InvalidInput: an option is invalid.
            OrchestratorMissing: the name is impossible.
        """
        return RemoteOrchestrator(self._server, name, validated(Narrowing, dict(narrowing)))

    def orchestrators(self) -> list[str]:
        """Return the names of the orchestrators that the key may use, sorted."""
        details = self._server.send(Call("GET", "/v1/orchestrators", value_of(OrchestratorList)))
        return [item.name for item in details.items]

    def create(self, name: str) -> None:
        """Create a new orchestrator; requires the permission admin.

        Raises:
            OrchestratorExists: it exists already, also when an earlier attempt succeeded but its
                response was lost.
            InvalidInput: the name is invalid.
        """
        body = body_of({"name": name})
        self._server.send(
            Call("POST", "/v1/orchestrators", lambda _: None, body=body, repeats=False)
        )

    def health(self, name: str) -> dict[str, Any]:
        """Return the state of an orchestrator's memory; see ``MemoryService.health``.

        Raises:
            OrchestratorMissing: it does not exist, or the key may not use it.
        """
        health = self._server.send(Call("GET", orchestrator_path(name), value_of(Health)))
        details = {"degraded"} if health.status == "ready" else {"code", "message", "details"}
        return health.model_dump(mode="json", include={"orchestrator", "status", *details})

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<memgraph Client of {self._server.url}>"


class AsyncClient(Methods[Awaited]):
    """The methods of ``Client`` as coroutines, with its arguments; each runs in a thread.

    A request whose call is cancelled is not stopped, but the process can exit during it.
    """

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        self.client = Client(url, **options)
        self._target = self.client
        self._pool = daemon_pool()

    def orchestrator(self, name: str, **narrowing: Unpack[ViewOptions]) -> AsyncRemoteOrchestrator:
        """Return the handle of one orchestrator; see ``Client.orchestrator``."""
        return AsyncRemoteOrchestrator(self.client.orchestrator(name, **narrowing))

    orchestrators = AwaitableMethod(Client.orchestrators)
    create = AwaitableMethod(Client.create)
    health = AwaitableMethod(Client.health)
    close = AwaitableMethod(Client.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<memgraph AsyncClient of {self.client._server.url}>"
