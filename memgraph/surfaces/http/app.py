"""The application: routes, errors and limits assembled."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from memgraph import __version__
from memgraph.errors import MemgraphError
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service.access.gate import Gate
from memgraph.service.idempotency import ClaimTaken
from memgraph.surfaces.asgi import ASGIApp, HostCheck, Pages
from memgraph.surfaces.http.access import SlowRequestLimit
from memgraph.surfaces.http.document import document
from memgraph.surfaces.http.envelope import Envelope
from memgraph.surfaces.http.idempotency import (
    AlreadyAnswered,
    IdempotentRequests,
    on_replay,
    on_taken,
)
from memgraph.surfaces.http.limits import RequestLimits
from memgraph.surfaces.http.operations import router_of
from memgraph.surfaces.http.problems import (
    FieldNames,
    on_bug,
    on_http_error,
    on_invalid,
    on_memgraph_error,
)
from memgraph.surfaces.http.routes import files, orchestrators

# The most frequent routes come first.
ROUTERS = (
    router_of(Orchestrator),
    orchestrators.memory_router,
    orchestrators.router,
    orchestrators.operation_router,
    files.router,
    files.upload_router,
    orchestrators.process_router,
    files.event_router,
)


class Api(FastAPI):
    """FastAPI within an ``Envelope``, which also covers the handler of bugs."""

    def openapi(self) -> dict[str, Any]:
        return openapi()

    def build_middleware_stack(self) -> ASGIApp:
        inner = super().build_middleware_stack()
        return Envelope(inner, lambda: getattr(self.state, "log", None))


def create_app(
    gate: Gate, *, pages: Pages | None = None, lengthy: SlowRequestLimit | None = None
) -> FastAPI:
    """Return the HTTP API over the orchestrators of a gate's service.

    Args:
        pages: for people, mounted by the caller; None: there are none.
        lengthy: the limit for long work, shared by all surfaces; None: one of its own.

    The caller owns and closes the service. ``app.state.log``, an ``EventLog``, receives requests
    when it is set.
    """
    app = Api(title="memgraph", version=__version__, docs_url=None, redoc_url=None)
    app.state.gate = gate
    handlers = {
        MemgraphError: on_memgraph_error,
        RequestValidationError: on_invalid,
        HTTPException: on_http_error,
        AlreadyAnswered: on_replay,
        ClaimTaken: on_taken,
        Exception: on_bug,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    chosen = gate.service.settings().memory
    app.state.lengthy = SlowRequestLimit(chosen.server.threads) if lengthy is None else lengthy
    # The last one added is the outermost.
    app.add_middleware(IdempotentRequests)
    app.add_middleware(
        RequestLimits,
        settings=chosen.server,
        max_file_bytes=chosen.ingest.max_file_size_mb * 1_000_000,
        authenticate=gate.authenticate,
        pages=pages,
        shared=gate.rates,
    )
    app.add_middleware(
        HostCheck,
        hosts=chosen.server.allowed_hosts,
        origins=chosen.server.allowed_origins,
        pages=None if pages is None else pages.place,
    )
    if chosen.server.trusted_proxies:
        # Before anything counts requests by their address.
        app.add_middleware(
            ProxyHeadersMiddleware, trusted_hosts=list(chosen.server.trusted_proxies)
        )
    for router in ROUTERS:
        # Their addresses are whole. Included ones would be looked up twice for every request.
        app.router.routes.extend(router.routes)
    app.router.routes.extend(_heads())
    app.add_route("/docs", _docs, include_in_schema=False)
    if pages is not None:
        home = f"{pages.place}/"
        app.add_route("/", lambda _request: RedirectResponse(home), include_in_schema=False)
    app.state.known = FieldNames(openapi)
    return app


def _docs(_request: Request) -> Response:
    from memgraph.surfaces.http import reference

    return HTMLResponse(reference.page(), headers={"Content-Security-Policy": reference.POLICY})


@cache
def _heads() -> tuple[APIRoute, ...]:
    """Add HEAD for every GET that answers with a value; not for streams and copies, which are
    costly.

    The route is the same, and the server omits the body of its answer.
    """
    results = []
    for route in (item for router in ROUTERS for item in router.routes):
        if isinstance(route, APIRoute) and route.methods == {"GET"} and route.response_model:
            head = copy(route)
            head.methods, head.include_in_schema = {"HEAD"}, False
            results.append(head)
    return tuple(results)


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI document; the same for every application of this version."""
    return document(ROUTERS)
