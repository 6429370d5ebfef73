"""Contradictions as cases, and memories with retracted evidence."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from memgraph.model.access import Permission
from memgraph.model.graph import Case, StalePage
from memgraph.model.values import Name
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.entering import Asking, Auditor, Reader, Writer
from memgraph.surfaces.http.envelope import answered, done
from memgraph.surfaces.http.routes.graph import EdgeIdPath
from memgraph.surfaces.http.routes.memories import AsOf, Because

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["cases"])


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


@router.post(
    "/contradictions/{edge_id}/dismiss", operation_id="dismiss_contradiction", status_code=204
)
def dismiss(
    orc: Writer,
    edge_id: EdgeIdPath,
    body: Annotated[Because, Body(openapi_examples=examples.REASON)],
) -> Response:
    """Dismiss an open contradiction; it is not raised again."""
    orc.dismiss(edge_id, reason=body.reason)
    return done()


@router.get("/stale", operation_id="stale", response_model=StalePage)
def stale(
    orc: Auditor,
    limit: Annotated[int, Query(ge=1, le=500, description="Of a page.")] = 50,
    cursor: Annotated[Name | None, Query(description="`next_after` of the page before.")] = None,
    as_of: AsOf = None,
) -> Response:
    """Return active memories that depend on superseded or retracted evidence, with the path."""
    return answered(orc.stale(limit=limit, after=cursor, as_of=as_of))
