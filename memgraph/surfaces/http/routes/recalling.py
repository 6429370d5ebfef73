"""Asking the memory: recall, memories relevant to a message, the bulletin, expiring facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Body, Request, Response
from pydantic import Field, TypeAdapter

from memgraph.model.context import Issued
from memgraph.model.jobs import Relevant
from memgraph.model.operation import operation_of
from memgraph.model.recall import MAX_QUERY_CHARS, MAX_TOP_N, Bundle, RecallRequest
from memgraph.model.remote import LatestReflection
from memgraph.model.values import Name, Text, Value
from memgraph.service.handle_reading import ExpiringHandle
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.document import NOT_MODIFIED
from memgraph.surfaces.http.entering import Reader
from memgraph.surfaces.http.envelope import answered, answered_as, tagged
from memgraph.surfaces.http.operations import add_route
from memgraph.surfaces.http.routes.memories import AsOf

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["recall"])

_ISSUED = TypeAdapter(Issued)


class Message(Value):
    """The message to be answered; ``exclude_session_id``: its conversation."""

    prompt: Annotated[Text, Field(max_length=MAX_QUERY_CHARS)]
    limit: Annotated[int, Field(ge=1, le=MAX_TOP_N)] = 5
    exclude_session_id: Name | None = None


@router.post("/recall", operation_id="recall", response_model=Bundle)
def recall(
    orc: Reader, body: Annotated[RecallRequest, Body(openapi_examples=examples.RECALL)]
) -> Response:
    """Return the memories that answer a question, best first, with reasons and sources."""
    return answered(orc.recall(body))


@router.post("/relevant", operation_id="relevant", response_model=Relevant)
def relevant(
    orc: Reader, body: Annotated[Message, Body(openapi_examples=examples.RELEVANT)]
) -> Response:
    """Return what belongs before the answer to a message: relevant facts and the last
    reflection.
    """
    found = orc.relevant(body.prompt, limit=body.limit, exclude_session_id=body.exclude_session_id)
    return answered(found)


@router.get("/bulletin", operation_id="get_bulletin", response_model=Issued, responses=NOT_MODIFIED)
def bulletin(
    request: Request,
    orc: Reader,
    as_of: AsOf = None,
) -> Response:
    """Return the bulletin for the next message, with an ETag; `warning`: it is not current."""
    # Each hand-out has a receipt of its own: the same bulletin is to have the same tag.
    return tagged(
        answered_as(_ISSUED, replace(orc.bulletin(as_of=as_of), receipt_id=None)), request
    )


@router.get("/reflection", operation_id="get_reflection", response_model=LatestReflection)
def reflection(orc: Reader) -> Response:
    """Return the latest weekly reflection."""
    return answered(LatestReflection.model_construct(memory=orc.latest_reflection()))


add_route(router, operation_of(ExpiringHandle.expiring))
