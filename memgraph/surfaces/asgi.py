"""Host and Origin checks that every request passes before a surface sees it.

Plain ASGI, so that it guards every mounted surface.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync

from memgraph.config.server import allowed_host, host_name
from memgraph.errors import AccessDenied, MemgraphError, NotFound, RequestRefused
from memgraph.service.access.gate import Gate

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

PROBLEM: Final = "application/problem+json"
LOOPBACK: Final = frozenset({"127.0.0.1", "[::1]", "localhost"})

_METHODS: Final = b"GET, POST, PUT, DELETE"
_ASKED: Final = (
    b"authorization, content-type, idempotency-key, if-none-match, x-request-id,"
    b" mcp-protocol-version, mcp-method, mcp-name"
)
_SHOWN: Final = b"etag, idempotency-replayed, retry-after, x-request-id"
_HOUR: Final = b"3600"
_BEARER: Final = "bearer "


def problem_body(error: MemgraphError, status: int) -> bytes:
    """Return an error as problem details (RFC 9457), with the library's own code."""
    problem = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message,
        "code": error.code,
        "details": error.details,
    }
    return json.dumps(problem, ensure_ascii=False, separators=(",", ":")).encode()


async def refuse(
    send: Send, error: MemgraphError, status: int, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Answer with an error, and close the connection: the request may be incomplete."""
    body = problem_body(error, status)
    start: Headers = [
        (b"content-type", PROBLEM.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first header of a name (in lower case), None when there is none."""
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return None


def shown_key(scope: Scope) -> str | None:
    """Return the secret of a request: None without one, empty when it is no bearer token."""
    authorization = header(scope, b"authorization")
    if authorization is None:
        return None
    return (
        authorization[len(_BEARER) :].strip() if authorization.lower().startswith(_BEARER) else ""
    )


class HostCheck:
    """Answers requests for known hosts, and those of allowed web pages.

    A page in a browser on the same machine can reach a loopback address, too: its Origin gives it
    away, and the Host a name that was made to point here (DNS rebinding).

    Args:
        hosts: allowed names in the Host header, besides loopback ones; ports are ignored.
        origins: of pages that may send requests, such as ``https://console.example``; no other may.
        pages: the path of the server's own pages, which may send requests there; pages of another
            address of this machine may not.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Iterable[str],
        origins: Iterable[str],
        pages: str | None = None,
    ) -> None:
        self._app = app
        self._pages = pages
        self._hosts = LOOPBACK | set(map(allowed_host, hosts))
        self._origins = frozenset(item.lower().rstrip("/") for item in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if host_name(header(scope, b"host") or "") not in self._hosts:
            error = RequestRefused("this Host is not one of memory.server.allowed_hosts")
            await refuse(send, error, HTTPStatus.MISDIRECTED_REQUEST)
            return
        origin = header(scope, b"origin")
        if origin is None or self._is_own_page(scope, origin):
            await self._app(scope, receive, send)
        elif origin.lower() not in self._origins:
            error = RequestRefused("this Origin is not one of memory.server.allowed_origins")
            await refuse(send, error, HTTPStatus.FORBIDDEN)
        elif scope["method"] == "OPTIONS":
            await _permit(send, origin)
        else:
            await self._app(scope, receive, _shown_to(origin, send))

    def _is_own_page(self, scope: Scope, origin: str) -> bool:
        """Return True when a page of the console calls the console: the same name and port
        exactly.
        """
        if self._pages is None or not scope["path"].startswith(f"{self._pages}/"):
            return False
        scheme, _, authority = origin.lower().partition("://")
        return scheme in ("http", "https") and authority == (header(scope, b"host") or "").lower()


def _allowed(origin: str) -> Headers:
    return [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin")]


async def _permit(send: Send, origin: str) -> None:
    """Send the answer to a CORS preflight."""
    headers: Headers = [
        *_allowed(origin),
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _ASKED),
        (b"access-control-max-age", _HOUR),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _shown_to(origin: str, send: Send) -> Send:
    async def shown(message: Message) -> None:
        if message["type"] == "http.response.start":
            exposed = (b"access-control-expose-headers", _SHOWN)
            message["headers"] = [*message.get("headers", ()), *_allowed(origin), exposed]
        await send(message)

    return shown


async def settle(gate: Gate, scope: Scope, error: MemgraphError) -> None:
    """Journal a refusal before it is answered, and delay the answer so that its time reveals
    nothing.
    """
    entered = scope.get(ENTERED)
    refused = isinstance(error, AccessDenied | NotFound) and not error.journalled
    if entered is not None and refused:
        principal, orchestrator = entered
        await run_sync(gate.miss, principal, orchestrator, error)
    now = time.monotonic()
    pause_s = gate.pause_s(error, now - scope.get(BEGAN, now))
    if pause_s > 0:
        await anyio.sleep(pause_s)


BEGAN: Final = "memgraph.began"
"""When the request arrived: seconds of ``time.monotonic``."""
REQUEST_ID: Final = "memgraph.request_id"
AUTHENTICATED: Final = "memgraph.authenticated"
"""True once the request's key was accepted."""
ENTERED: Final = "memgraph.entered"
"""The principal, and the name of the orchestrator that it entered."""
CODE: Final = "memgraph.code"
"""The code of the error that was answered, when the answer is a page."""
UNTIMED: Final = "memgraph.untimed"
"""A function that removes the time limit of the answer, for routes that an operator waits for."""
WANTED: Final = "memgraph.wanted"
"""A function that returns True while somebody waits for the answer."""
TURN: Final = "memgraph.turn"
"""The turn of a request with an Idempotency-Key; see ``Once``."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages that are mounted beside the API.

    Attributes:
        place: their address; all paths below it are theirs.
        app: answers there.
        visitor: the unit that a request counts for by its session; None: none. Called for every
            request, in the event loop: it reads no file.
        refusal: returns the page for an error, with a status, when ``app`` is not called.
    """

    place: str
    app: ASGIApp
    visitor: Callable[[Scope], str | None]
    refusal: Callable[[Scope, MemgraphError, int], ASGIApp]

    def has(self, scope: Scope) -> bool:
        """Return True when a request is for one of them."""
        return f"{scope['path']}/".startswith(f"{self.place}/")
