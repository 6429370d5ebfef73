"""Erasure: texts removed permanently, and the report that proves it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Request, Response

from memgraph.model.erasing import ErasureReport, ErasureRequest
from memgraph.service.orchestrator import Orchestrator
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.entering import undivided, untimed
from memgraph.surfaces.http.envelope import answered
from memgraph.surfaces.http.lengthy import lengthy_of

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["erasure"])

Whole = Annotated[Orchestrator, Depends(undivided("an erasure", field="erase"))]


@router.post(
    "/erase", operation_id="erase", response_model=ErasureReport, dependencies=[Depends(untimed)]
)
def erase(
    request: Request,
    orc: Whole,
    body: Annotated[ErasureRequest, Body(openapi_examples=examples.ERASURE)],
) -> Response:
    """Preview or perform an erasure: for a key from which nothing is hidden.

    Without `"dry_run": false` nothing is written. With it the texts are removed, and the report is
    signed. `unfinished` lists what was in the way: repeat the request to continue.
    """
    with lengthy_of(request).one():
        return answered(orc.erase_target(body.target, reason=body.reason, dry_run=body.dry_run))
