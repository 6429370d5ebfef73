"""The door to a server, in two colours: ``Client`` and ``AsyncClient``."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

import httpx

from memgraph.client.calls import Call, Read, Repeat, body, orchestrator_path, part_of, value_of
from memgraph.client.exchange import Rules
from memgraph.client.orchestrator import AsyncRemoteOrchestrator, RemoteOrchestrator
from memgraph.client.sending import AwaitedSender, BlockingSender, Server, server_of
from memgraph.client.words import Awaiting, Blocking, word
from memgraph.model.access import Narrowing
from memgraph.model.enums import Sensitivity
from memgraph.model.remote import Health, OrchestratorList
from memgraph.model.values import validated

TIMEOUT_S = 35.0
"""A little longer than a server takes by default before it says itself that it took too long."""
RETRIES = 2


class Options(TypedDict, total=False):
    """What a request narrows its view to; see ``Narrowing``."""

    project_ids: Sequence[str]
    session_ids: Sequence[str]
    agent_id: str
    clearance: Sensitivity | str


class ServerWords:
    """What is asked of the server itself."""

    @word
    def orchestrators(self) -> Call[list[str]]:
        """The names of the orchestrators that the key may ask for, sorted."""
        return Call("GET", "/v1/orchestrators", _NAMES)

    @word
    def create(self, name: str) -> Call[None]:
        """Provision a new orchestrator; takes the permission admin.

        Raises:
            OrchestratorExists: there is one. Also where a first try was done and its answer lost.
            InvalidInput: not a name for an orchestrator.
        """
        return Call(
            "POST",
            "/v1/orchestrators",
            lambda _: None,
            body=body({"name": name}),
            repeat=Repeat.NEVER,
        )

    @word
    def health(self, name: str) -> Call[dict[str, Any]]:
        """Whether an orchestrator's memory works; see ``MemoryService.health``.

        Raises:
            OrchestratorMissing: there is none, or it is not the key's.
        """
        return Call("GET", orchestrator_path(name), _health)


class Client(ServerWords, Blocking):
    """A server, asked and waited for. Thread-safe; close it, or use it as a context manager.

    Args:
        url: where it is, for instance ``https://memory.example`` or ``http://127.0.0.1:8420``.
        key: the secret of a key; it is sent to this server alone and shown nowhere.
        timeout_s: how long a connection may be silent, seconds; what works for minutes (jobs,
            audits, copies) may take an hour.
        retries: how often what is safe to send again is sent again, 0 or more.
        verify: False checks no certificate; a context of ``ssl`` knows other authorities.
        plain_http: lets the key go to another machine unencrypted.
        transport: in place of the network, for tests or a proxy (``httpx.HTTPTransport``).

    Raises:
        InvalidInput: it is no address, or the key would leave the machine unencrypted.
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
        self._sending = BlockingSender(self._server, key, Rules(retries=retries), transport)
        super().__init__(self._sending)

    def orchestrator(self, name: str, **narrowing: Unpack[Options]) -> RemoteOrchestrator:
        """The handle of one orchestrator. Nothing is sent: its first word tells whether it is.

        Args:
            narrowing: of ``Narrowing``; what is not given stays as the key grants it, an empty
                ``project_ids`` or ``session_ids`` leaves none. A key for every project or session
                (``*``) sees only those that are named here.

        Raises:
            InvalidInput: a field is wrong.
            OrchestratorMissing: nothing can be called so.
        """
        return RemoteOrchestrator(self._sending, name, validated(Narrowing, dict(narrowing)))

    def close(self) -> None:
        """Give the connections back."""
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


class AsyncClient(ServerWords, Awaiting):
    """A server, asked and awaited; ``Client`` says what the arguments are."""

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
        self._sending = AwaitedSender(self._server, key, Rules(retries=retries), transport)
        super().__init__(self._sending)

    def orchestrator(self, name: str, **narrowing: Unpack[Options]) -> AsyncRemoteOrchestrator:
        """The handle of one orchestrator; see ``Client.orchestrator``."""
        return AsyncRemoteOrchestrator(self._sending, name, validated(Narrowing, dict(narrowing)))

    async def close(self) -> None:
        """Give the connections back."""
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
    told = value_of(Health)(answer)
    kept = {"degraded"} if told.status == "ready" else {"code", "message", "details"}
    return told.model_dump(mode="json", include={"orchestrator", "status", *kept})


def _named(told: OrchestratorList) -> list[str]:
    return [each.name for each in told.items]


_NAMES: Read[list[str]] = part_of(OrchestratorList, _named)


def _shown(client: Client | AsyncClient, server: Server) -> str:
    return f"<memgraph {type(client).__name__} of {server.url}>"
