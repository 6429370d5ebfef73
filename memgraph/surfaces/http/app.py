"""The application: routes, errors and limits put together."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from memgraph import __version__
from memgraph.errors import MemgraphError
from memgraph.service.access.gate import Gate
from memgraph.service.readiness import Readiness
from memgraph.surfaces.http.document import describe
from memgraph.surfaces.http.problems import on_bug, on_http_error, on_invalid, on_memgraph_error
from memgraph.surfaces.http.routes import (
    contexts,
    conversations,
    copying,
    entities,
    forgetting,
    graph,
    memories,
    operating,
    orchestrators,
    recalling,
    receipts,
    running,
    watching,
)

ROUTERS = (
    orchestrators.router,
    conversations.router,
    entities.router,
    contexts.router,
    forgetting.router,
    operating.router,
    copying.router,
    memories.router,
    recalling.router,
    graph.router,
    receipts.router,
    running.router,
    watching.router,
)


def create_app(gate: Gate) -> FastAPI:
    """The HTTP API over the orchestrators of a gate's service.

    The service stays the caller's: it is closed by who made it.
    """
    app = FastAPI(title="memgraph", version=__version__, docs_url=None, redoc_url=None)
    app.state.gate = gate
    app.state.readiness = Readiness(gate.service)
    app.add_exception_handler(MemgraphError, on_memgraph_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(Exception, on_bug)
    for router in ROUTERS:
        # Their addresses are whole. Included ones would be looked up twice for every request.
        app.router.routes.extend(router.routes)
    # All that requests need is built now: a first request does not wait for it.
    app.openapi = lambda: describe(app)  # type: ignore[method-assign] # FastAPI's own way
    app.openapi()
    return app
