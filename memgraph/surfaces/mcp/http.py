"""The protocol over streamable HTTP: an ASGI application with a path for each orchestrator.

It is stateless. Each request shows its key, a revoked key is refused at once, and there are no
sessions that could be hijacked.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import anyio
import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memgraph.config.server import ServerSettings
from memgraph.errors import (
    AccessDenied,
    InvalidConfig,
    InvalidInput,
    MemgraphError,
    OrchestratorMissing,
    RateLimited,
    RequestRefused,
    StorageError,
    Unauthenticated,
)
from memgraph.log import bug_fields
from memgraph.model import enums
from memgraph.model.access import Narrowing
from memgraph.model.values import Value, validated
from memgraph.service.access.gate import Gate
from memgraph.service.sanitizer import sanitized_error
from memgraph.surfaces.asgi import AUTHENTICATED, BEGAN, ENTERED, REQUEST_ID, shown_key
from memgraph.surfaces.mcp.access import HandleAccess, KeyAccess
from memgraph.surfaces.mcp.server import Context, make_server, silence_sdk

_DOOR: Final = "memgraph.door"
_REPEATED: Final = {"project": "project_ids", "session": "session_ids"}
_SINGLE: Final = {"agent": "agent_id", "clearance": "clearance"}


class McpApp:
    """The application that ``mcp_app`` returns; enter its ``lifespan`` before the first request."""

    def __init__(self, gate: Gate, settings: ServerSettings) -> None:
        silence_sdk()
        self._gate = gate
        server = make_server(_door_of, _failed)
        self._manager = StreamableHTTPSessionManager(
            server,
            json_response=True,
            stateless=True,
            max_request_body_size=settings.max_body_bytes,
        )

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run the application for the time of this context, once."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = scope.get(BEGAN, time.monotonic())
        request = Request(scope, receive)
        try:
            scope[_DOOR] = await run_sync(_opened, self._gate, request)
        except MemgraphError as error:
            # An orchestrator of others is as quick to tell as one that is not there.
            await anyio.sleep(self._gate.pause_s(error, time.monotonic() - began))
            await _refusal(sanitized_error(error, self._gate.service.root))(scope, receive, send)
            return
        if request.method != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        await self._manager.handle_request(scope, receive, send)


def mcp_app(gate: Gate, settings: ServerSettings) -> McpApp:
    """Return the ASGI application to be mounted at ``/mcp``: one path segment names an
    orchestrator.

    Use it within ``async with app.lifespan():``. The query of an address narrows the view as
    elsewhere (``project``, ``session``, ``agent``, ``clearance``); ``scope`` names where facts are
    kept when several places are visible.
    """
    return McpApp(gate, settings)


def _door_of(context: Context) -> HandleAccess:
    return cast(HandleAccess, cast(Request, context.request).scope[_DOOR])


def _failed(context: Context, error: Exception) -> None:
    request = cast(Request, context.request)
    log = getattr(getattr(request.scope.get("app"), "state", None), "log", None)
    if log is not None:
        log.error("mcp.bug", request_id=request.scope.get(REQUEST_ID), **bug_fields(error))


def _opened(gate: Gate, request: Request) -> KeyAccess:
    """Return the door for a request; waits for the disk.

    Raises:
        Unauthenticated: it shows no key.
        InvalidInput: its query is invalid; a misspelt name would widen what it sees.
        MemgraphError: what ``Gate.enter`` raises.
    """
    principal = gate.authenticate(shown_key(request.scope))
    request.scope[AUTHENTICATED] = True
    query = _asked(request)
    name = request.scope["path"].removeprefix(request.scope.get("root_path", "")).strip("/")
    door = KeyAccess(gate, principal, name, query.narrowing, scope=query.scope)
    door.knock()
    request.scope[ENTERED] = (principal, name)
    return door


class _Query(Value):
    narrowing: Narrowing = Narrowing()
    scope: enums.Scope | None = None


def _asked(request: Request) -> _Query:
    query = request.query_params
    names = {*_REPEATED, *_SINGLE, "scope"}
    unknown = set(query) - names
    twice = [item for item in (*_SINGLE, "scope") if len(query.getlist(item)) > 1]
    if unknown or twice:
        raise InvalidInput(
            f"the query has {', '.join(sorted(names))}; {' and '.join(sorted(_REPEATED))} may come"
            " several times, the others once"
        )
    narrowing: dict[str, Any] = {
        field: tuple(query.getlist(name)) for name, field in _REPEATED.items() if name in query
    }
    narrowing |= {field: query[name] for name, field in _SINGLE.items() if name in query}
    return validated(_Query, {"narrowing": narrowing, "scope": query.get("scope")})


_STATUS: Final[Mapping[type[MemgraphError], int]] = {
    Unauthenticated: 401,
    OrchestratorMissing: 404,
    AccessDenied: 403,
    InvalidInput: 400,
    InvalidConfig: 503,
    RateLimited: 429,
    RequestRefused: 400,
    StorageError: 503,
    MemgraphError: 500,
}


def _refusal(error: MemgraphError) -> Response:
    """Return the answer to an unacceptable request, in the protocol's shape."""
    status = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RateLimited) and "retry_after_s" in error.details:
        headers["Retry-After"] = str(math.ceil(error.details["retry_after_s"]))
    details = {
        "code": types.INVALID_REQUEST,
        "message": error.message,
        "data": {"code": error.code, "details": error.details},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": details})
    return Response(body, status, headers, media_type="application/json")
