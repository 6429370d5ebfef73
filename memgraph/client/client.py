"""The client of a server, in two forms: ``Client`` and ``AsyncClient``."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

import httpx

from memgraph.client.calls import Call, Read, body, orchestrator_path, part_of, value_of
from memgraph.client.exchange import RetryRules
from memgraph.client.operations import ServerTarget, method
from memgraph.client.orchestrator import AsyncRemoteOrchestrator, RemoteOrchestrator
from memgraph.client.senders import AsyncioSender, BlockingSender, ServerConnection, server_of
from memgraph.model.access import Narrowing
from memgraph.model.enums import Sensitivity
from memgraph.model.operation import Awaited, Blocking, F, Methods
from memgraph.model.remote import Health, OrchestratorList
from memgraph.model.values import validated

TIMEOUT_S = 35.0
"""A little longer than a server's default time limit, so that its own error arrives."""
RETRIES = 2


class ViewOptions(TypedDict, total=False):
    """The options that narrow the view of a handle; see ``Narrowing``."""

    project_ids: Sequence[str]
    session_ids: Sequence[str]
    agent_id: str
    clearance: Sensitivity | str


class ServerMethods(Methods[F]):
    """The methods for the server itself."""

    _remote: ServerTarget

    @method
    def orchestrators(self) -> Call[list[str]]:
        """Return the names of the orchestrators that the key may use, sorted."""
        return Call("GET", "/v1/orchestrators", _NAMES)

    @method
    def create(self, name: str) -> Call[None]:
        """Create a new orchestrator; requires the permission admin.

        Raises:
            OrchestratorExists: it exists already, also when an earlier attempt succeeded but its
                response was lost.
            InvalidInput: the name is invalid.
        """
        return Call(
            "POST",
            "/v1/orchestrators",
            lambda _: None,
            body=body({"name": name}),
            repeats=False,
        )

    @method
    def health(self, name: str) -> Call[dict[str, Any]]:
        """Return the state of an orchestrator's memory; see ``MemoryService.health``.

        Raises:
            OrchestratorMissing: it does not exist, or the key may not use it.
        """
        return Call("GET", orchestrator_path(name), _health)


class Client(ServerMethods[Blocking]):
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

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        verify: ssl.SSLContext | bool = True,
        plain_http: bool = False,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._server = server_of(
            url, key, timeout_s=timeout_s, verify=verify, plain_http=plain_http
        )
        self._sending = BlockingSender(self._server, key, RetryRules(retries=retries), transport)
        self._remote = ServerTarget(self._sending)

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
        return RemoteOrchestrator(self._sending, name, validated(Narrowing, dict(narrowing)))

    def close(self) -> None:
        """Close the connections."""
        self._sending.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return _shown(self, self._server)


class AsyncClient(ServerMethods[Awaited]):
    """An asynchronous client of a server, with the arguments of ``Client``."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        verify: ssl.SSLContext | bool = True,
        plain_http: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._server = server_of(
            url, key, timeout_s=timeout_s, verify=verify, plain_http=plain_http
        )
        self._sending = AsyncioSender(self._server, key, RetryRules(retries=retries), transport)
        self._remote = ServerTarget(self._sending)

    def orchestrator(self, name: str, **narrowing: Unpack[ViewOptions]) -> AsyncRemoteOrchestrator:
        """Return the handle of one orchestrator; see ``Client.orchestrator``."""
        return AsyncRemoteOrchestrator(self._sending, name, validated(Narrowing, dict(narrowing)))

    async def close(self) -> None:
        """Close the connections."""
        await self._sending.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return _shown(self, self._server)


def _health(answer: bytes) -> dict[str, Any]:
    health = value_of(Health)(answer)
    details = {"degraded"} if health.status == "ready" else {"code", "message", "details"}
    return health.model_dump(mode="json", include={"orchestrator", "status", *details})


def _named(details: OrchestratorList) -> list[str]:
    return [item.name for item in details.items]


_NAMES: Read[list[str]] = part_of(OrchestratorList, _named)


def _shown(client: Client | AsyncClient, server: ServerConnection) -> str:
    return f"<memgraph {type(client).__name__} of {server.url}>"
