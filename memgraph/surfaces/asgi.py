"""Checks of the Host and Origin headers, and shared helpers for ASGI apps.

The checks are plain ASGI middleware, so that they guard every mounted surface.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from anyio.to_thread import run_sync
from starlette.datastructures import QueryParams
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from memgraph.config.server import allowed_host, host_name
from memgraph.errors import AccessDenied, MemgraphError, NotFound, RequestRefused, Unauthenticated
from memgraph.model.access import Narrowing
from memgraph.model.values import validated
from memgraph.service.access.gate import Gate

Headers = list[tuple[bytes, bytes]]

PROBLEM: Final = "application/problem+json"
LOOPBACK: Final = frozenset({"127.0.0.1", "[::1]", "localhost"})

_CORS: Final[dict[str, Any]] = {
    "allow_methods": ("GET", "POST", "PUT"),
    "allow_headers": (
        *("authorization", "content-type", "x-request-id"),
        *("mcp-protocol-version", "mcp-method", "mcp-name"),
    ),
    "expose_headers": ("retry-after", "x-request-id"),
    "max_age": 3_600,
}
_BEARER: Final = "bearer "


def problem_body(error: MemgraphError, status: int) -> bytes:
    """Encode an error as problem details (RFC 9457), with its code and details."""
    problem = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message,
        "code": error.code,
        "details": error.details,
    }
    return json.dumps(problem, ensure_ascii=False, separators=(",", ":")).encode()


def error_headers(error: MemgraphError) -> dict[str, str]:
    """Return the headers that the response to an error has: how to authenticate, when to retry."""
    headers = {"www-authenticate": "Bearer"} if isinstance(error, Unauthenticated) else {}
    wait_s = error.details.get("retry_after_s")
    return headers if wait_s is None else {**headers, "retry-after": str(math.ceil(wait_s))}


async def refuse(scope: Scope, send: Send, error: MemgraphError, status: int) -> None:
    """Respond with an error, and close the connection, because the request may be incomplete."""
    scope[CODE] = error.code
    body = problem_body(error, status)
    start: Headers = [
        (b"content-type", PROBLEM.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *((name.encode(), value.encode()) for name, value in error_headers(error).items()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first header with a name (in lower case), or None."""
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return None


def is_encrypted(scope: Scope) -> bool:
    """Return True if the client uses TLS, up to the server or to a proxy that says so.

    No web page can add the proxy's header to a request.
    """
    forwarded = (header(scope, b"x-forwarded-proto") or "").partition(",")[0].strip().lower()
    return "https" in (scope.get("scheme"), forwarded)


def shown_key(scope: Scope) -> str | None:
    """Return the bearer token of a request; None without one, empty if it is another kind."""
    authorization = header(scope, b"authorization")
    if authorization is None:
        return None
    return (
        authorization[len(_BEARER) :].strip() if authorization.lower().startswith(_BEARER) else ""
    )


class HostCheck:
    """Middleware that refuses requests for unknown hosts and from web pages that are not allowed.

    A web page in a browser on this machine can reach a loopback address, too. The Origin header
    reveals the page, and the Host header a name that was made to point here (DNS rebinding).

    Args:
        app: the app to protect.
        hosts: the allowed names in the Host header, in addition to loopback; ports are ignored.
        origins: the origins of web pages that may send requests, such as
            ``https://console.example``.
        pages: the path of the server's own pages, which may send requests to that path if their
            origin has the same scheme, host and port.
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
        self._cors = CORSMiddleware(app, tuple(self._origins), **_CORS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if host_name(header(scope, b"host") or "") not in self._hosts:
            error = RequestRefused("this Host is not one of memory.server.allowed_hosts")
            await refuse(scope, send, error, HTTPStatus.MISDIRECTED_REQUEST)
            return
        origin = header(scope, b"origin")
        is_page = self._pages is not None and scope["path"].startswith(f"{self._pages}/")
        if origin is None or (is_page and is_own_origin(scope, origin)):
            await self._app(scope, receive, send)
        elif origin not in self._origins:
            error = RequestRefused("this Origin is not one of memory.server.allowed_origins")
            await refuse(scope, send, error, HTTPStatus.FORBIDDEN)
        else:
            await self._cors(scope, receive, send)


def is_own_origin(scope: Scope, origin: str) -> bool:
    """Return True for the origin of the server's own pages: same scheme, host and port."""
    scheme = "https" if is_encrypted(scope) else "http"
    return origin.lower() == f"{scheme}://{header(scope, b'host') or ''}".lower()


async def settle(gate: Gate, scope: Scope, error: MemgraphError) -> None:
    """Log a refusal before its response is sent."""
    entered = scope.get(ENTERED)
    is_refusal = isinstance(error, AccessDenied | NotFound) and not error.logged
    if entered is not None and is_refusal:
        principal, orchestrator = entered
        await run_sync(gate.miss, principal, orchestrator, error)


REQUEST_ID: Final = "memgraph.request_id"
ENTERED: Final = "memgraph.entered"
"""The principal, and the name of the orchestrator that it accesses."""
CODE: Final = "memgraph.code"
"""The code of the error, if the response is one, for the log."""
UNTIMED: Final = "memgraph.untimed"
"""A function that removes the time limit of a response, for routes that an operator waits for."""
WANTED: Final = "memgraph.wanted"
"""A function that returns True while the client waits for the response."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Web pages that are mounted next to the API.

    Attributes:
        place: the path of the pages; all paths below it belong to them.
        app: the app that serves them.
        knows: returns True if a request has a session. It is called in the event loop, so it must
            not read files.
        refusal: returns the page for an error and a status, used if ``app`` is not called.
        takes_files: returns True if a request is a form with files, which ``app`` reads in chunks.
    """

    place: str
    app: ASGIApp
    knows: Callable[[Scope], bool]
    refusal: Callable[[Scope, MemgraphError, int], ASGIApp]
    takes_files: Callable[[Scope], bool] = lambda _scope: False

    def has(self, scope: Scope) -> bool:
        """Return True if a request is for one of the pages."""
        return f"{scope['path']}/".startswith(f"{self.place}/")


REPEATED: Final = {"project": "project_ids", "session": "session_ids"}
SINGLE: Final = {"agent": "agent_id", "clearance": "clearance"}
"""The query parameters that narrow a request's view, with the fields of a ``Narrowing``."""


def narrowing_of(query: QueryParams) -> Narrowing:
    """Return the narrowing in query parameters; an empty project or session narrows to nothing.

    They are parsed by hand because few requests have any, and FastAPI would take 0.2 ms for each.

    Raises:
        InvalidInput: a value is invalid.
    """
    fields: dict[str, Any] = {
        field: [item for item in query.getlist(name) if item]
        for name, field in REPEATED.items()
        if name in query
    }
    fields |= {field: query[name] for name, field in SINGLE.items() if name in query}
    return validated(Narrowing, fields)
