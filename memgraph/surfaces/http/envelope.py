"""Bodies of requests and answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from fastapi import Request, Response
from pydantic import TypeAdapter

from memgraph.errors import MemgraphError, ServerEnding
from memgraph.log import EventLog, bug_fields
from memgraph.model.values import Value
from memgraph.surfaces.asgi import (
    BEGAN,
    CODE,
    ENTERED,
    REQUEST_ID,
    ASGIApp,
    Headers,
    Message,
    Receive,
    Scope,
    Send,
    header,
    refuse,
)
from memgraph.surfaces.http.problems import BUG
from memgraph.surfaces.metrics import known_method, route_of

SECURITY: Final[Headers] = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
]
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that machines poll; logged only when they fail."""
CUT_OFF: Final = "the server ends before this is done; a write may be done all the same"
NO_STORE: Final = (b"cache-control", b"no-store")
# An id of a trace or a UUID, and nothing that could be a text: it comes to stand in the log.
_GIVEN_ID: Final = re.compile(r"^[0-9a-fA-F-]{8,64}$")
_CODE: Final = re.compile(r"^[a-z_]+(\.[a-z_]+)*$")


class Envelope:
    """Completes every answer of an application, and logs it.

    Args:
        log: of the process, if there is one.
    """

    def __init__(self, app: ASGIApp, log: Callable[[], EventLog | None]) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = scope[BEGAN] = time.monotonic()
        given = header(scope, b"x-request-id")
        request_id = given if given and _GIVEN_ID.match(given) else uuid.uuid4().hex
        scope[REQUEST_ID] = request_id
        told_id = (b"x-request-id", request_id.encode())
        status, code = 0, None

        async def completed(message: Message) -> None:
            nonlocal status, code
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*_relative(scope, message.get("headers", ())), told_id]
                # What is mounted and shows pages says by itself what they may load.
                there = {name for name, _ in headers}
                headers += [item for item in (*SECURITY, NO_STORE) if item[0] not in there]
                message["headers"] = headers
            elif status >= 400 and code is None:
                code = scope.get(CODE) or _code_of(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, completed)
        except asyncio.CancelledError:
            # Only a server that ends breaks requests off, and only those that took too long for it.
            if not status:
                await refuse(completed, ServerEnding(CUT_OFF), 503)
            self._log_request(scope, request_id, (status, code), time.monotonic() - began)
            raise
        except Exception as error:  # noqa: BLE001 # the last one before the socket, see above
            self._log_bug(error, request_id)
            if not status:
                await refuse(completed, MemgraphError(BUG), 500)
        self._log_request(scope, request_id, (status, code), time.monotonic() - began)

    def _log_request(
        self, scope: Scope, request_id: str, answer: tuple[int, str | None], took_s: float
    ) -> None:
        status, code = answer
        log = self._log()
        if log is None:
            return
        route = route_of(scope)
        if route in QUIET and status == 200:
            return
        who, orchestrator = scope.get(ENTERED, (None, None))
        write = log.warning if status >= 500 else log.info
        write(
            "request",
            request_id=request_id,
            method=known_method(scope["method"]),
            route=route,
            orchestrator=orchestrator,
            actor=None if who is None else who.actor,
            status=status,
            **({} if code is None else {"code": code}),
            ms=round(took_s * 1_000, 1),
        )

    def _log_bug(self, error: Exception, request_id: str) -> None:
        log = self._log()
        if log is not None:
            log.error("request.bug", request_id=request_id, **bug_fields(error))


def _relative(scope: Scope, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Make redirects to ourselves relative: behind a TLS proxy, the address that we see is not the
    client's.
    """
    own = f"{scope.get('scheme', 'http')}://{header(scope, b'host')}".encode("latin-1")
    lines = []
    for name, value in headers:
        path = value.removeprefix(own) if name == b"location" else value
        # Two slashes would begin the address of another host.
        own_path = path.startswith(b"/") and not path.startswith(b"//")
        lines.append((name, path if own_path else value))
    return lines


def _code_of(body: bytes) -> str | None:
    """Return the code of the error in an answer: of a problem, or of an error over MCP."""
    try:
        document = json.loads(body)
        code = document["code"] if "code" in document else document["error"]["data"]["code"]
    except (ValueError, KeyError, TypeError):
        # Mounted applications may answer in their own way.
        return None
    return code if isinstance(code, str) and _CODE.match(code) else None


JSON: Final = "application/json"
T = TypeVar("T")


def answered(value: Value, *, status: int = 200) -> Response:
    """Return a value as the body of an answer.

    The declared response model documents it; the service's values are not validated again.
    """
    return Response(value.__pydantic_serializer__.to_json(value), status, media_type=JSON)


def answered_as(adapter: TypeAdapter[T], value: T) -> Response:
    """Return ``answered`` for a value that is no ``Value``, such as a dataclass."""
    return Response(adapter.dump_json(value), media_type=JSON)


def tagged(response: Response, request: Request) -> Response:
    """Return an answer with an ETag of its bytes, or 304 when the client has these bytes."""
    tag = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
    if _names(request.headers.get("if-none-match", ""), tag):
        response = Response(status_code=304)
    response.headers["ETag"] = tag
    return response


def done() -> Response:
    """Return the empty answer to a change."""
    return Response(status_code=204)


def _names(header: str, tag: str) -> bool:
    return header.strip() == "*" or tag in [
        item.strip().removeprefix("W/") for item in header.split(",")
    ]
