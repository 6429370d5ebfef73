"""Assemble the HTTP application: routes, error handlers and middleware."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from memgraph import __version__
from memgraph.errors import MemgraphError
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service.access.gate import Gate
from memgraph.service.readiness import Readiness
from memgraph.surfaces.asgi import HostCheck, Pages
from memgraph.surfaces.http import limits
from memgraph.surfaces.http.access import slow_places
from memgraph.surfaces.http.document import document
from memgraph.surfaces.http.envelope import Envelope
from memgraph.surfaces.http.operations import router_of
from memgraph.surfaces.http.problems import (
    QueryNames,
    on_bug,
    on_http_error,
    on_invalid,
    on_memgraph_error,
    query_names,
)
from memgraph.surfaces.http.routes import files, orchestrators

# The most frequent routes come first, since they are tried in order; see ``create_app``.
ROUTERS = (
    router_of(Orchestrator),
    orchestrators.router,
    files.router,
    files.upload_router,
    orchestrators.process_router,
)


class Api(FastAPI):
    """FastAPI inside an ``Envelope``, which also covers the handler for unexpected errors."""

    def openapi(self) -> dict[str, Any]:
        return openapi()

    def build_middleware_stack(self) -> ASGIApp:
        inner = super().build_middleware_stack()
        meters = self.state.gate.service.meters
        return Envelope(inner, lambda: getattr(self.state, "log", None), meters)


def create_app(gate: Gate, *, pages: Pages | None = None) -> FastAPI:
    """Return the HTTP API for the orchestrators of a gate's service.

    The caller owns and closes the service. Set ``app.state.log`` to an ``EventLog`` to log
    requests.

    Args:
        pages: the web console, which the caller mounts; None: there is no console.
    """
    app = Api(title="memgraph", version=__version__, docs_url=None, redoc_url=None)
    app.state.gate = gate
    app.state.readiness = Readiness(gate.service)
    handlers = {
        MemgraphError: on_memgraph_error,
        RequestValidationError: on_invalid,
        HTTPException: on_http_error,
        Exception: on_bug,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    settings = gate.service.settings().memory
    app.state.slow_places = slow_places(limits.THREADS)
    # Starlette makes the middleware that was added last the outermost.
    app.add_middleware(
        limits.RequestLimits,
        settings=settings.server,
        max_file_bytes=settings.ingest.max_file_size_mb * 1_000_000,
        authenticate=gate.authenticate,
        pages=pages,
    )
    app.add_middleware(
        HostCheck,
        hosts=settings.server.allowed_hosts,
        origins=settings.server.allowed_origins,
        pages=None if pages is None else pages.place,
    )
    if settings.server.trusted_proxies:
        # Outermost, so that sign-ins are counted by the address that the proxy reports.
        app.add_middleware(
            ProxyHeadersMiddleware, trusted_hosts=list(settings.server.trusted_proxies)
        )
    for router in ROUTERS:
        # Add the routes directly: ``include_router`` would match every request twice.
        # Of two paths that fit a request, the one with a literal segment is tried first.
        app.router.routes.extend(sorted(router.routes, key=_templated))
    if pages is not None:
        home = f"{pages.place}/"
        app.add_route("/", lambda _request: RedirectResponse(home), include_in_schema=False)
    app.state.known = known_queries
    return app


def _templated(route: BaseRoute) -> list[bool]:
    """Return for each segment of a route's path whether it is a parameter."""
    path: str = getattr(route, "path", "")
    return [segment.startswith("{") for segment in path.split("/")]


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI document, which is the same for all applications of this version."""
    return document(ROUTERS)


_names = cache(lambda: query_names(openapi()))
_loading = threading.Lock()


def known_queries() -> QueryNames:
    """Return the query parameters of all routes.

    The first call takes half a second, and concurrent ones wait for it. It also builds the pydantic
    models, which must precede the parsing of a body.
    """
    with _loading:
        return _names()
