"""Orchestrators: list, create, state."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request, Response

from memgraph.model.remote import Health, OrchestratorList, OrchestratorName, OrchestratorStatus
from memgraph.model.values import Name, Value
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service.sanitizer import below
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.access import Admin, Asking, Reader, gate_of
from memgraph.surfaces.http.envelope import answered

router = APIRouter(prefix="/v1/orchestrators", tags=["orchestrators"])


class NewOrchestrator(Value):
    """The name of the orchestrator to create."""

    name: Name


@router.get("", operation_id="list_orchestrators", response_model=OrchestratorList)
def listed(request: Request, asking: Asking) -> Response:
    """Return the orchestrators that the key was granted."""
    names = gate_of(request).orchestrators(asking)
    return answered(OrchestratorList(items=tuple(OrchestratorName(name=name) for name in names)))


@router.post(
    "", operation_id="create_orchestrator", status_code=201, response_model=OrchestratorName
)
def create(
    request: Request,
    asking: Asking,
    body: Annotated[NewOrchestrator, Body(openapi_examples=examples.NEW_ORCHESTRATOR)],
) -> Response:
    """Create an orchestrator; the key belongs to an admin who was granted its name."""
    gate_of(request).create(asking, body.name)
    return answered(OrchestratorName(name=body.name), status=201)


@router.get("/{orchestrator}", operation_id="get_orchestrator", response_model=Health)
def health(request: Request, orc: Reader) -> Response:
    """Return whether its memory works, and which of its work is not getting done."""
    return answered(_health(request, orc))


@router.get("/{orchestrator}/status", operation_id="get_status", response_model=OrchestratorStatus)
def status(request: Request, orc: Admin) -> Response:
    """Return counts and sizes of all that is stored, whoever may see it."""
    health = _health(request, orc)
    return answered(
        OrchestratorStatus(
            health=health, stats=orc.maintenance.stats() if health.status == "ready" else None
        )
    )


def _health(request: Request, orc: Orchestrator) -> Health:
    service = gate_of(request).service
    return Health.model_validate(below(service.health(orc.name), service.root))
