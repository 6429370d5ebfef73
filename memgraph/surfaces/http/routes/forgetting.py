"""Retracting many memories at once."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Response
from pydantic import Field

from memgraph.model.remote import MAX_BATCH, ForgottenList
from memgraph.model.values import Name, Reason, Value
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.entering import Writer
from memgraph.surfaces.http.envelope import answered

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["memories"])


class Forgetting(Value):
    """The memories to retract, and why."""

    memory_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_BATCH)]
    reason: Reason


@router.post("/forget", operation_id="forget", response_model=ForgottenList)
def forget(
    orc: Writer, body: Annotated[Forgetting, Body(openapi_examples=examples.FORGETTING)]
) -> Response:
    """Retract memories, with an outcome for each; they stay in the history."""
    return answered(ForgottenList(outcomes=tuple(orc.forget(body.memory_ids, reason=body.reason))))
