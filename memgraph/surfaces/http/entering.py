"""From a request to the handle that answers it: who asks, which orchestrator, how narrowly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, cast

from anyio.to_thread import run_sync
from fastapi import Depends, Request
from fastapi.datastructures import QueryParams

from memgraph.errors import AccessDenied, RequestTimeout
from memgraph.model.access import Narrowing, Permission, Principal
from memgraph.model.values import validated
from memgraph.rules import access
from memgraph.service.access.gate import Gate
from memgraph.service.orchestrator import Orchestrator
from memgraph.surfaces.guarding import shown_key
from memgraph.surfaces.http.known import Known
from memgraph.surfaces.http.once import take_turn
from memgraph.surfaces.scopes import AUTHENTICATED, ENTERED, UNTIMED, WANTED

WRITING = (Permission.WRITE, Permission.ADMIN)


def gate_of(request: Request) -> Gate:
    return cast(Gate, request.app.state.gate)


def principal_of(request: Request) -> Principal:
    """Who asks. Raises Unauthenticated."""
    principal = gate_of(request).authenticate(shown_key(request.scope))
    request.scope[AUTHENTICATED] = True
    return principal


def asking_of(request: Request) -> Principal:
    """Who asks, and in words that there are.

    Raises:
        Unauthenticated: see ``principal_of``.
        InvalidInput: the query has a parameter that the route does not take.
    """
    principal = principal_of(request)
    known: Known = request.app.state.known
    known.require_query(request)
    return principal


async def untimed(request: Request) -> None:
    """The dependency of a route whose answer may take longer than others."""
    request.scope.get(UNTIMED, lambda: None)()


Asking = Annotated[Principal, Depends(asking_of)]


def sees_whole(orc: Orchestrator, principal: Principal) -> bool:
    """Whether nothing is hidden from who asks, and no less was asked for."""
    return access.sees_whole(principal, orc.viewer)


def entering(permission: Permission) -> Callable[..., Awaitable[Orchestrator]]:
    """The dependency that gives a route its handle, for those with a permission.

    The scope comes from the key and the address of the request, never from its body; the query
    parameters narrow it. A write with an Idempotency-Key that was done before goes no further.
    """

    async def enter(request: Request) -> Orchestrator:
        # One way to a thread and back for all that looks at files.
        principal, handle = await run_sync(_entered, request, permission)
        request.scope[ENTERED] = (principal, handle.name)
        if permission in WRITING:
            await take_turn(request, gate_of(request).service, handle)
            _require_wanted(request)
        return handle

    enter.permission = permission  # type: ignore[attr-defined] # what the reference tells of it
    return enter


def _require_wanted(request: Request) -> None:
    """Raises RequestTimeout: it waited so long for its turn that it was answered meanwhile."""
    if not request.scope.get(WANTED, lambda: True)():
        raise RequestTimeout("nobody waits for this any more; nothing was done")


def _entered(request: Request, permission: Permission) -> tuple[Principal, Orchestrator]:
    _require_wanted(request)
    principal = asking_of(request)
    name = request.path_params["orchestrator"]
    return principal, gate_of(request).enter(principal, name, permission, _narrowing(request))


def _narrowing(request: Request) -> Narrowing | None:
    """What the query parameters narrow the view to; they are described in ``document.NARROWING``.

    Read by hand: every request has them, nearly none names them, and FastAPI takes 0.2 ms.
    """
    if not request.scope["query_string"]:
        return None
    given = request.query_params
    asked = {
        "project_ids": _names(given, "project"),
        "session_ids": _names(given, "session"),
        "agent_id": given.get("agent"),
        "clearance": given.get("clearance"),
    }
    return validated(Narrowing, asked)


def _names(given: QueryParams, name: str) -> list[str] | None:
    """What a parameter names; an empty one names nothing, and narrows to that."""
    return [each for each in given.getlist(name) if each] if name in given else None


Reader = Annotated[Orchestrator, Depends(entering(Permission.READ))]
Writer = Annotated[Orchestrator, Depends(entering(Permission.WRITE))]
Auditor = Annotated[Orchestrator, Depends(entering(Permission.AUDIT))]
Admin = Annotated[Orchestrator, Depends(entering(Permission.ADMIN))]


def undivided(what: str, *, field: str) -> Callable[..., Orchestrator]:
    """The dependency of ``what`` is for an admin from whom nothing is hidden, who asks for all."""

    def enter(orc: Admin, asking: Asking) -> Orchestrator:
        if not sees_whole(orc, asking):
            raise AccessDenied(f"{what} takes a key from which nothing is hidden", field=field)
        return orc

    return enter
