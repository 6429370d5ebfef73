"""Serve MCP over streamable HTTP: an ASGI application with a path for each orchestrator.

It is stateless. Each request carries its key, so a revoked key is refused at once, and there are
no sessions that could be hijacked.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Final, cast

import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memgraph.config.server import ServerSettings
from memgraph.errors import InvalidInput, MemgraphError
from memgraph.log import bug_fields
from memgraph.model import enums
from memgraph.model.access import Narrowing, Permission
from memgraph.model.values import Value, validated
from memgraph.service.access.gate import Gate
from memgraph.service.sanitizer import sanitized_error
from memgraph.surfaces.asgi import (
    CODE,
    ENTERED,
    REPEATED,
    REQUEST_ID,
    SINGLE,
    error_headers,
    narrowing_of,
    shown_key,
)
from memgraph.surfaces.mcp.server import Context, HandleAccess, make_server, silence_sdk

_ACCESS: Final = "memgraph.access"
_OPTIONS: Final = ("scope", "tools")


class McpApp:
    """The ASGI application to mount at ``/mcp``; its paths are names of orchestrators.

    Use it within ``async with app.lifespan():``. The query parameters ``project``, ``session``,
    ``agent`` and ``clearance`` narrow the view, as in the HTTP API. ``scope`` is the scope in which
    facts are stored if more than one is visible; ``tools=all`` offers all tools.
    """

    def __init__(self, gate: Gate, settings: ServerSettings) -> None:
        silence_sdk()
        self._gate = gate
        server = make_server(_access_of, _log_bug)
        self._manager = StreamableHTTPSessionManager(
            server,
            json_response=True,
            stateless=True,
            max_request_body_size=settings.max_body_bytes,
        )

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run the application for the duration of this context. It can be entered only once."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            scope[_ACCESS] = await run_sync(_authenticated, self._gate, request)
        except MemgraphError as error:
            scope[CODE] = error.code
            await _refusal(sanitized_error(error, self._gate.service.root))(scope, receive, send)
            return
        if request.method != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        await self._manager.handle_request(scope, receive, send)


def _access_of(context: Context) -> HandleAccess:
    return cast(HandleAccess, cast(Request, context.request).scope[_ACCESS])


def _log_bug(context: Context, error: Exception) -> None:
    request = cast(Request, context.request)
    log = getattr(getattr(request.scope.get("app"), "state", None), "log", None)
    if log is not None:
        log.error("mcp.bug", request_id=request.scope.get(REQUEST_ID), **bug_fields(error))


def _authenticated(gate: Gate, request: Request) -> HandleAccess:
    """Authenticate a request and return its access to an orchestrator. Blocks on disk access."""
    principal = gate.authenticate(shown_key(request.scope))
    query = _parsed_query(request)
    name = request.scope["path"].removeprefix(request.scope.get("root_path", "")).strip("/")
    access = HandleAccess(
        # A handle is opened once for each permission.
        cache(lambda permission: gate.enter(principal, name, permission, query.narrowing)),
        gate.service.root,
        principal.permissions,
        query.scope,
        query.tools,
        lambda error: gate.miss(principal, name, error),
    )
    # A principal without any permission is refused the permission to read.
    permission = next((item for item in Permission if item in access.permissions), Permission.READ)
    access.ask(permission, lambda _handle: None)
    request.scope[ENTERED] = (principal, name)
    return access


class _Query(Value):
    narrowing: Narrowing = Narrowing()
    scope: enums.Scope | None = None
    tools: enums.ToolChoice = enums.ToolChoice.DEFAULT


def _parsed_query(request: Request) -> _Query:
    # Ignoring a misspelt parameter would widen the view.
    query = request.query_params
    names = {*REPEATED, *SINGLE, *_OPTIONS}
    unknown = set(query) - names
    repeated = [item for item in (*SINGLE, *_OPTIONS) if len(query.getlist(item)) > 1]
    if unknown or repeated:
        raise InvalidInput(
            f"the allowed query parameters are {', '.join(sorted(names))}; only"
            f" {' and '.join(sorted(REPEATED))} may be repeated"
        )
    options = {name: query[name] for name in _OPTIONS if name in query}
    return validated(_Query, {"narrowing": narrowing_of(query), **options})


def _refusal(error: MemgraphError) -> Response:
    """Return the response to a refused request, as a JSON-RPC error."""
    error_object = {
        "code": types.INVALID_REQUEST,
        "message": error.message,
        "data": {"code": error.code, "details": error.details},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error_object})
    return Response(body, error.status, error_headers(error), media_type="application/json")
