"""Memories: stored, read, listed and changed."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from memgraph.model.values import Memory, MemoryInput, Value
from memgraph.surfaces.http.answering import answered, tagged
from memgraph.surfaces.http.entering import Reader, Writer

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}/memories", tags=["memories"])


class Stored(Value):
    """The id of what was stored, or of what was there already."""

    memory_id: str


@router.post("", operation_id="remember", status_code=201, response_model=Stored)
def remember(orc: Writer, body: MemoryInput) -> Response:
    """Store one memory; one that is there already gives its own id."""
    fields = body.model_dump(exclude={"content"}, exclude_unset=True)
    return answered(Stored(memory_id=orc.remember(body.content, **fields)), status=201)


@router.get("/{memory_id}", operation_id="get_memory", response_model=Memory)
def get(request: Request, orc: Reader, memory_id: str) -> Response:
    """One memory, with an ETag."""
    return tagged(orc.get(memory_id), request)
