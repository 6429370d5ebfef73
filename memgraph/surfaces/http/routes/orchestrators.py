"""Routes by hand: the orchestrators of a key, health, readiness and figures."""

from __future__ import annotations

from typing import Annotated, Literal, cast

from fastapi import APIRouter, Body, Request, Response
from fastapi.responses import PlainTextResponse

from memgraph.errors import AccessDenied, InvalidConfig, NotFound, Unauthenticated
from memgraph.model.access import ANY, Permission
from memgraph.model.jobs import ServiceReadiness
from memgraph.model.remote import Health, OrchestratorList, OrchestratorName
from memgraph.model.values import Name, Value
from memgraph.rules.access import refusal
from memgraph.service.readiness import Readiness
from memgraph.service.sanitizer import without_root
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.access import Asking, Reader, gate_of, principal_of
from memgraph.surfaces.http.document import PROBLEMS
from memgraph.surfaces.http.envelope import JSON, answered

router = APIRouter(prefix="/v1/orchestrators", tags=["orchestrators"])


class NewOrchestrator(Value):
    """The name of the orchestrator to create."""

    name: Name


@router.get("", operation_id="list_orchestrators", response_model=OrchestratorList)
def listed(request: Request, asking: Asking) -> Response:
    """Return the orchestrators to which the key has access."""
    names = gate_of(request).orchestrators(asking)
    return answered(OrchestratorList(items=tuple(OrchestratorName(name=name) for name in names)))


@router.post(
    "", operation_id="create_orchestrator", status_code=201, response_model=OrchestratorName
)
def create(
    request: Request,
    asking: Asking,
    body: Annotated[NewOrchestrator, Body(openapi_examples=examples.of("create_orchestrator"))],
) -> Response:
    """Create an orchestrator; requires the admin permission for its name."""
    gate_of(request).create(asking, body.name)
    return answered(OrchestratorName(name=body.name), status=201)


@router.get("/{orchestrator}", operation_id="get_orchestrator", response_model=Health)
def health(request: Request, orc: Reader) -> Response:
    """Return whether the orchestrator works, and its current problems."""
    service = gate_of(request).service
    health = without_root(service.health(orc.name), service.root)
    return answered(Health.model_validate(health))


process_router = APIRouter(tags=["running"])


class Liveness(Value):
    """The answer of a running process."""

    status: Literal["alive"] = "alive"


@process_router.get("/healthz", operation_id="get_liveness", response_model=Liveness)
async def alive() -> Response:
    """Report that the process is alive, and nothing else. Requires no key."""
    return answered(Liveness())


@process_router.get(
    "/readyz",
    operation_id="get_readiness",
    response_model=ServiceReadiness,
    response_model_exclude_none=True,
    responses={
        503: {
            "model": ServiceReadiness,
            "description": "The root or its keys cannot be read; nothing works.",
        }
    },
)
def ready(request: Request) -> Response:
    """Return whether the service can be used.

    A key with the admin permission for all orchestrators gets the state of each; others get only
    the status. A damaged orchestrator does not make the service unusable.
    """
    readiness = _readiness(request)
    if not _lets_in(request):
        result = ServiceReadiness(status="unusable")
    elif _runs_all(request):
        result = readiness.look()
    else:
        result = ServiceReadiness(status="ready" if readiness.usable() else "unusable")
    body = result.model_dump_json(exclude_none=True)
    return Response(body, 200 if result.status == "ready" else 503, media_type=JSON)


@process_router.get(
    "/metrics",
    operation_id="get_metrics",
    response_class=PlainTextResponse,
    responses=PROBLEMS,
)
def metrics(request: Request, principal: Asking) -> Response:
    """Return metrics for Prometheus; requires the admin permission for all orchestrators."""
    if refusal(principal, ANY, Permission.ADMIN, now_ms=gate_of(request).service.clock.now_ms()):
        raise AccessDenied("this requires the permission admin for all orchestrators")
    text = gate_of(request).service.meters.exposition(_readiness(request).look())
    if text is None:
        raise NotFound("this process does not collect metrics")
    body, media_type = text
    return Response(body, media_type=media_type)


def _readiness(request: Request) -> Readiness:
    return cast(Readiness, request.app.state.readiness)


def _lets_in(request: Request) -> bool:
    """Return True when requests can be authenticated, that is, when the keys can be read."""
    gate = gate_of(request)
    try:
        # Only the read matters; callers must not learn whether keys exist.
        _ = gate.keys.has_any
    except InvalidConfig:
        return gate.keyless
    return True


def _runs_all(request: Request) -> bool:
    try:
        principal = principal_of(request)
    except (Unauthenticated, InvalidConfig):
        return False
    now = gate_of(request).service.clock.now_ms()
    return refusal(principal, ANY, Permission.ADMIN, now_ms=now) is None
