"""Contradictions as cases, and memories with retracted evidence."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from memgraph.model.access import Permission
from memgraph.model.graph import Case
from memgraph.model.operation import operation_of
from memgraph.service.handle_auditing import CasesHandle
from memgraph.surfaces.http.entering import Asking, Reader
from memgraph.surfaces.http.envelope import answered
from memgraph.surfaces.http.operations import ROOT, add_route
from memgraph.surfaces.http.routes.graph import EdgeIdPath
from memgraph.surfaces.http.routes.memories import AsOf

router = APIRouter(prefix=ROOT, tags=["cases"])


@router.get("/contradictions/{edge_id}", operation_id="case", response_model=Case)
def case(
    orc: Reader,
    principal: Asking,
    edge_id: EdgeIdPath,
    as_of: AsOf = None,
    names: Annotated[bool, Query(description="Name what each side reached.")] = True,
) -> Response:
    """Return a contradiction with both sides, the evidence for each, and possible decisions.

    Which receipts, runs and conversations a side reached is named to a key that may audit; others
    get their number.
    """
    told = names and Permission.AUDIT in principal.permissions
    return answered(orc.case(edge_id, as_of=as_of, names=told))


add_route(router, operation_of(CasesHandle.dismiss))
add_route(router, operation_of(CasesHandle.stale))
