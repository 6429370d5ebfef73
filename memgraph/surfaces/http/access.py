"""Resolve a request to its handle: authenticate it, open the orchestrator, narrow the view."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final, cast

from anyio.to_thread import run_sync
from fastapi import Depends, Request

from memgraph.errors import AccessDenied, RequestTimeout, ServerBusy
from memgraph.model.access import Permission, Principal
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service.access.gate import Gate
from memgraph.surfaces.asgi import ENTERED, UNTIMED, WANTED, narrowing_of, shown_key
from memgraph.surfaces.http.problems import require_known


def gate_of(request: Request) -> Gate:
    return cast(Gate, request.app.state.gate)


def principal_of(request: Request) -> Principal:
    """Return the authenticated principal of a request. Raises Unauthenticated."""
    return gate_of(request).authenticate(shown_key(request.scope))


def asking_of(request: Request) -> Principal:
    """Return the principal of a request with valid query parameters.

    Raises:
        Unauthenticated: see ``principal_of``.
        InvalidInput: the query has a parameter that the route does not accept.
    """
    principal = principal_of(request)
    require_known(request, request.app.state.known())
    return principal


async def untimed(request: Request) -> None:
    """Exempt a request from the time limit; for use as a dependency of a route."""
    request.scope.get(UNTIMED, lambda: None)()


Asking = Annotated[Principal, Depends(asking_of)]


def entering(permission: Permission) -> Callable[..., Awaitable[Orchestrator]]:
    """Return the dependency that provides a route's handle and requires a permission.

    What the handle sees comes from the key and the URL, never from the body; query parameters
    narrow it.
    """

    async def enter(request: Request) -> Orchestrator:
        # All file access is done in one call to a thread.
        principal, handle = await run_sync(_open_handle, request, permission)
        request.scope[ENTERED] = (principal, handle.name)
        return handle

    enter.permission = permission  # type: ignore[attr-defined] # read for the OpenAPI document
    return enter


def _open_handle(request: Request, permission: Permission) -> tuple[Principal, Orchestrator]:
    # It may have timed out while it waited for its turn.
    if not request.scope.get(WANTED, lambda: True)():
        raise RequestTimeout("the request timed out before it began; nothing was done")
    principal = asking_of(request)
    name = request.path_params["orchestrator"]
    narrowing = narrowing_of(request.query_params) if request.scope["query_string"] else None
    return principal, gate_of(request).enter(principal, name, permission, narrowing)


Reader = Annotated[Orchestrator, Depends(entering(Permission.READ))]
Writer = Annotated[Orchestrator, Depends(entering(Permission.WRITE))]
Admin = Annotated[Orchestrator, Depends(entering(Permission.ADMIN))]


def undivided(what: str, *, field: str) -> Callable[..., Orchestrator]:
    """Return the dependency that requires an admin with an unrestricted, unnarrowed view.

    Args:
        what: the subject of the error message, such as "a copy".
    """

    def enter(orc: Admin) -> Orchestrator:
        if not orc.whole:
            raise AccessDenied(f"{what} requires a key that may see everything", field=field)
        return orc

    return enter


SHARE: Final = 4
"""Slow requests may use one thread in this many."""
RETRY_S: Final = 5


def slow_places(threads: int) -> threading.BoundedSemaphore:
    """Return the places for slow requests of a server with some threads for all requests."""
    return threading.BoundedSemaphore(max(1, threads // SHARE))


@contextmanager
def slow_request(request: Request) -> Iterator[None]:
    """Count a request as a slow one for the duration of the block; never wait.

    Raises:
        ServerBusy: the server works on as many slow requests as it may.
    """
    places: threading.BoundedSemaphore = request.app.state.slow_places
    if not places.acquire(blocking=False):
        raise ServerBusy(
            "other jobs, audits, copies or questions to a model are running",
            retry_after_s=RETRY_S,
        )
    try:
        yield
    finally:
        places.release()
