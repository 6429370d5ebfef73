"""The health of what is stored."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Request, Response
from pydantic import Field

from memgraph.model.access import StoreHealth
from memgraph.model.values import Name, Value
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.entering import Auditor, untimed
from memgraph.surfaces.http.envelope import answered
from memgraph.surfaces.http.lengthy import lengthy_of

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["auditing"])


class AuditWanted(Value):
    """The limits of an audit, and the number of examples.

    Attributes:
        fail_on: limits, such as ``stale=0.05``, ``echo`` (none at all) or ``all``.
        examples: of each measure, 0..100.
    """

    fail_on: Annotated[tuple[Name, ...], Field(max_length=20)] = ()
    examples: Annotated[int, Field(ge=0, le=100)] = 5


@router.post(
    "/audit",
    operation_id="audit",
    response_model=StoreHealth,
    dependencies=[Depends(untimed)],
)
def audit(
    request: Request,
    orc: Auditor,
    body: Annotated[
        AuditWanted, Body(default_factory=AuditWanted, openapi_examples=examples.AUDIT)
    ],
) -> Response:
    """Return rates of what the caller sees: duplicate, contradicted, stale, unsourced …; with
    examples.
    """
    with lengthy_of(request).one():
        return answered(orc.audit(fail_on=body.fail_on, examples=body.examples))
