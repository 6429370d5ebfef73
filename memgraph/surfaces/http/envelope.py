"""Complete and log every response, and build response bodies."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Final

from fastapi import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memgraph.errors import MemgraphError, ServerEnding
from memgraph.log import EventLog, bug_fields
from memgraph.model.values import Value
from memgraph.service.meters import SILENT, Meters
from memgraph.surfaces.asgi import CODE, ENTERED, REQUEST_ID, Headers, header, refuse
from memgraph.surfaces.http.problems import BUG

SECURITY: Final[Headers] = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
]
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that machines poll; requests to them are logged only if they fail."""
CUT_OFF: Final = "the server is shutting down; a write may still have been completed"
NO_ROUTE: Final = "(none)"
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
NO_STORE: Final = (b"cache-control", b"no-store")
# A trace id or a UUID. It is written to the log, so free text is not accepted.
_REQUEST_ID_FORM: Final = re.compile(r"^[0-9a-fA-F-]{8,64}$")


class Envelope:
    """ASGI middleware that adds headers to every response of an application, and records it.

    Args:
        log: returns the log of the process; None: nothing is logged.
        meters: measure the requests.
    """

    def __init__(
        self, app: ASGIApp, log: Callable[[], EventLog | None], meters: Meters = SILENT
    ) -> None:
        self._app = app
        self._log = log
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        sent_id = header(scope, b"x-request-id")
        request_id = sent_id if sent_id and _REQUEST_ID_FORM.match(sent_id) else uuid.uuid4().hex
        scope[REQUEST_ID] = request_id
        id_header = (b"x-request-id", request_id.encode())
        status = 0

        async def completed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*_relative_redirects(scope, message.get("headers", ())), id_header]
                # Mounted applications with pages set their own content security policy.
                names = {name for name, _ in headers}
                headers += [item for item in (*SECURITY, NO_STORE) if item[0] not in names]
                message["headers"] = headers
            await send(message)

        self._meters.request_began()
        try:
            await self._app(scope, receive, completed)
        except asyncio.CancelledError:
            # A server that shuts down cancels the requests that exceed its drain time.
            if not status:
                await refuse(scope, completed, ServerEnding(CUT_OFF), 503)
            raise
        except Exception as error:  # noqa: BLE001 # the outermost handler: logged and answered
            self._log_bug(error, request_id)
            if not status:
                await refuse(scope, completed, MemgraphError(BUG), 500)
        finally:
            route, seconds = route_of(scope), time.monotonic() - began
            self._meters.request_ended(known_method(scope["method"]), route, status, seconds)
            self._log_request(scope, route, request_id, status, seconds)

    def _log_request(
        self, scope: Scope, route: str, request_id: str, status: int, seconds: float
    ) -> None:
        log = self._log()
        if log is None or (route in QUIET and status == 200):
            return
        principal, orchestrator = scope.get(ENTERED, (None, None))
        write = log.warning if status >= 500 else log.info
        write(
            "request",
            request_id=request_id,
            method=known_method(scope["method"]),
            route=route,
            orchestrator=orchestrator,
            actor=None if principal is None else principal.actor,
            status=status,
            **({"code": scope[CODE]} if CODE in scope and status >= 400 else {}),
            ms=round(seconds * 1_000, 1),
        )

    def _log_bug(self, error: Exception, request_id: str) -> None:
        log = self._log()
        if log is not None:
            log.error("request.bug", request_id=request_id, **bug_fields(error))


def known_method(method: str) -> str:
    """Return a request's method if it is one of HTTP's, else ``other``: it may be any text."""
    return method if method in METHODS else "other"


def route_of(scope: Scope) -> str:
    """Return the path template of a request's route: ``/v1/orchestrators/{orchestrator}``.

    For a request refused before routing, it is the route that would have matched. For a mounted
    application, it is the mount's path, followed by the template of its own route if it has one.
    """
    place: str = scope.get("root_path", "")
    template = getattr(scope.get("route"), "path", None)
    if isinstance(template, str):
        return f"{place}{template}"
    if place:
        return place
    matching = (
        str(route.path)
        for route in getattr(scope.get("app"), "routes", ())
        if route.matches(scope)[0] is Match.FULL
    )
    return next(matching, NO_ROUTE)


def _relative_redirects(scope: Scope, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Make redirects to this server relative.

    Behind a TLS proxy, the URL that the server sees is not the one that the client uses.
    """
    own_origin = f"{scope.get('scheme', 'http')}://{header(scope, b'host')}".encode("latin-1")
    lines = []
    for name, value in headers:
        path = value.removeprefix(own_origin) if name == b"location" else value
        # A path that begins with two slashes would be read as the name of another host.
        is_own_path = path.startswith(b"/") and not path.startswith(b"//")
        lines.append((name, path if is_own_path else value))
    return lines


JSON: Final = "application/json"


def answered(value: Value, *, status: int = 200) -> Response:
    """Return a response with a value as its JSON body.

    The route's response model only documents it; the service's values are not validated again.
    """
    return Response(value.__pydantic_serializer__.to_json(value), status, media_type=JSON)
