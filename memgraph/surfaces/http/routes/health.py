"""Monitoring of the process: liveness, readiness, metrics."""

from __future__ import annotations

import threading
from typing import Final, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from memgraph.errors import AccessDenied, InvalidConfig, NotFound, Unauthenticated
from memgraph.model.access import ANY, Permission
from memgraph.model.jobs import ServiceReadiness
from memgraph.model.values import Value
from memgraph.rules.access import refusal
from memgraph.service.meters import ReadableMeters
from memgraph.service.readiness import Readiness
from memgraph.surfaces.http.access import Asking, gate_of, principal_of
from memgraph.surfaces.http.document import problem_answers
from memgraph.surfaces.http.envelope import JSON, answered

_MAKING: Final = threading.Lock()

router = APIRouter(tags=["running"])


class Liveness(Value):
    """The process answers."""

    status: Literal["alive"] = "alive"


@router.get("/healthz", operation_id="get_liveness", response_model=Liveness)
async def alive() -> Response:
    """Return that the process answers, without information on what it serves. Requires no key."""
    return answered(Liveness())


@router.get(
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

    A key that may run all orchestrators gets the state of each; others get only the status. A
    damaged orchestrator does not make the service unusable.
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


@router.get(
    "/metrics",
    operation_id="get_metrics",
    response_class=PlainTextResponse,
    responses={
        int(code): problem_answer for code, problem_answer in problem_answers(401, 403, 404).items()
    },
)
def metrics(request: Request, principal: Asking) -> Response:
    """Return figures for Prometheus; for a key that may run all orchestrators."""
    if refusal(principal, ANY, Permission.ADMIN, now_ms=gate_of(request).service.clock.now_ms()):
        raise AccessDenied("this needs the permission admin for all orchestrators")
    meters = gate_of(request).service.meters
    if not isinstance(meters, ReadableMeters):
        raise NotFound("this process keeps no metrics")
    body, media_type = meters.exposition(_readiness(request).look())
    return Response(body, media_type=media_type)


def _readiness(request: Request) -> Readiness:
    """Return the server's readiness check; made at first use."""
    state = request.app.state
    with _MAKING:
        if not hasattr(state, "readiness"):
            state.readiness = Readiness(gate_of(request).service)
    readiness: Readiness = state.readiness
    return readiness


def _lets_in(request: Request) -> bool:
    """Return True when requests can be authenticated: unreadable keys let nobody in."""
    gate = gate_of(request)
    try:
        # Only the operator may know whether there are any.
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
