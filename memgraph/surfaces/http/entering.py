"""From a request to the handle that answers it: who asks, which orchestrator, how narrowly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, cast

from anyio.to_thread import run_sync
from fastapi import Depends, Path, Query, Request

from memgraph.model.access import Narrowing, Permission, Principal
from memgraph.model.enums import Sensitivity
from memgraph.model.values import validated
from memgraph.service.access.gate import Gate
from memgraph.service.orchestrator import Orchestrator
from memgraph.surfaces.http.once import take_turn
from memgraph.surfaces.scopes import AUTHENTICATED, ENTERED, UNTIMED

SCHEME = "bearer "
WRITING = (Permission.WRITE, Permission.ADMIN)


def gate_of(request: Request) -> Gate:
    return cast(Gate, request.app.state.gate)


def principal_of(request: Request) -> Principal:
    """Who asks. Raises Unauthenticated."""
    given = request.headers.get("authorization")
    secret = None
    if given is not None:
        secret = given[len(SCHEME) :].strip() if given.lower().startswith(SCHEME) else ""
    principal = gate_of(request).authenticate(secret)
    request.scope[AUTHENTICATED] = True
    return principal


async def untimed(request: Request) -> None:
    """The dependency of a route whose answer may take longer than others."""
    request.scope.get(UNTIMED, lambda: None)()


Asking = Annotated[Principal, Depends(principal_of)]


def entering(permission: Permission) -> Callable[..., Awaitable[Orchestrator]]:
    """The dependency that gives a route its handle, for those with a permission.

    The scope comes from the key and the address of the request, never from its body; the query
    parameters narrow it. A write with an Idempotency-Key that was done before goes no further.
    """

    async def enter(
        request: Request,
        orchestrator: Annotated[str, Path(description="Its name.", examples=["orc-1"])],
        project: Annotated[list[str] | None, Query(description="Only these projects.")] = None,
        session: Annotated[list[str] | None, Query(description="Only these sessions.")] = None,
        agent: Annotated[str | None, Query(description="Only this agent's and nobody's.")] = None,
        clearance: Annotated[
            Sensitivity | None, Query(description="Nothing of a higher sensitivity.")
        ] = None,
    ) -> Orchestrator:
        asked = {
            "project_ids": project,
            "session_ids": session,
            "agent_id": agent,
            "clearance": clearance,
        }
        # One way to a thread and back for all that looks at files.
        principal, handle = await run_sync(_entered, request, orchestrator, permission, asked)
        request.scope[ENTERED] = (principal, handle.name)
        if permission in WRITING:
            await take_turn(request, gate_of(request), handle.name, principal.actor)
        return handle

    enter.permission = permission  # type: ignore[attr-defined] # what the reference tells of it
    return enter


def _entered(
    request: Request, name: str, permission: Permission, asked: dict[str, Any]
) -> tuple[Principal, Orchestrator]:
    principal = principal_of(request)
    narrowing = validated(Narrowing, asked)
    return principal, gate_of(request).enter(principal, name, permission, narrowing)


Reader = Annotated[Orchestrator, Depends(entering(Permission.READ))]
Writer = Annotated[Orchestrator, Depends(entering(Permission.WRITE))]
Auditor = Annotated[Orchestrator, Depends(entering(Permission.AUDIT))]
Admin = Annotated[Orchestrator, Depends(entering(Permission.ADMIN))]
