"""Memories: stored, read, listed and changed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request, Response
from pydantic import Field, model_validator

from memgraph.model.context import Tier
from memgraph.model.enums import MemoryKind, MemoryType, ShownStatus
from memgraph.model.graph import Trace
from memgraph.model.operation import Because
from memgraph.model.remote import (
    MAX_BATCH,
    Limit,
    MemoryId,
    MemoryPage,
    Outcomes,
    PromotedId,
    Remembered,
)
from memgraph.model.values import Memory, MemoryInput, Millis, Name, Reason, Value
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.document import NOT_MODIFIED
from memgraph.surfaces.http.entering import Reader, Writer
from memgraph.surfaces.http.envelope import ItemOf, answered, done, tagged

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}/memories", tags=["memories"])

MemoryIdPath = Annotated[str, Path(max_length=512, examples=[examples.MEMORY_ID])]
AsOf = Annotated[Millis | None, Query(description="As it was at that time.")]


class MemoryBatch(Value):
    """Memories; an invalid one is rejected by itself."""

    items: Annotated[
        tuple[Annotated[dict[str, Any], ItemOf(MemoryInput)], ...], Field(max_length=MAX_BATCH)
    ]


class Correction(MemoryInput):
    """A new text, and why; other fields default to the old memory's."""

    reason: Reason

    @model_validator(mode="after")
    def _consistent(self) -> Correction:
        # The library judges the memory that comes of it.
        return self


class Promotion(Value):
    """The target of a promotion.

    Attributes:
        to: ``project`` (of a task's memory) or ``global`` (of a project's).
        scope_id: the project; None for global.
        confirmed: the answer of the person who was asked; None: nobody was.
    """

    to: Tier
    scope_id: Name | None = None
    confirmed: bool | None = None
    reason: Reason = ""


@router.post("", operation_id="remember", status_code=201, response_model=Remembered)
def remember(
    orc: Writer, body: Annotated[MemoryInput, Body(openapi_examples=examples.MEMORY)]
) -> Response:
    """Store one memory, and report what it repeats, updates or contradicts.

    An existing one returns its own id.
    """
    return answered(Remembered.of(orc.store(**_given(body))), status=201)


@router.post("/batch", operation_id="remember_many", response_model=Outcomes)
def remember_many(
    orc: Writer, body: Annotated[MemoryBatch, Body(openapi_examples=examples.BATCH)]
) -> Response:
    """Store many memories, with an outcome for each, in order."""
    return answered(Outcomes(outcomes=tuple(orc.remember_many(body.items))))


@router.get("", operation_id="list_memories", response_model=MemoryPage)
def listed(
    orc: Reader,
    type_: Annotated[
        list[MemoryType], Query(alias="type", default_factory=list, description="Of these types.")
    ],
    kind: Annotated[list[MemoryKind], Query(default_factory=list, description="Of these kinds.")],
    status: Annotated[
        list[ShownStatus],
        Query(default_factory=lambda: [ShownStatus.ACTIVE], description="Of these statuses."),
    ],
    tag: Annotated[list[Name], Query(default_factory=list, description="With all these tags.")],
    session_id: Annotated[Name | None, Query(description="Said in this session.")] = None,
    limit: Annotated[Limit, Query(description="Of a page.")] = 50,
    cursor: Annotated[Name | None, Query(description="`next_cursor` of the page before.")] = None,
    as_of: AsOf = None,
) -> Response:
    """Return memories, newest first, by page; concurrent writes shift no page."""
    found = orc.list_memories(
        types=type_,
        kinds=kind,
        statuses=status,
        tags=tag,
        session_id=session_id,
        before=cursor,
        limit=limit,
        as_of=as_of,
    )
    following = found[-1].memory_id if len(found) == limit else None
    return answered(MemoryPage.model_construct(items=tuple(found), next_cursor=following))


@router.get(
    "/{memory_id}", operation_id="get_memory", response_model=Memory, responses=NOT_MODIFIED
)
def get(request: Request, orc: Reader, memory_id: MemoryIdPath, as_of: AsOf = None) -> Response:
    """Return one memory, with an ETag."""
    return tagged(answered(orc.get(memory_id, as_of=as_of)), request)


@router.post("/{memory_id}/correct", operation_id="correct", response_model=MemoryId)
def correct(
    orc: Writer,
    memory_id: MemoryIdPath,
    body: Annotated[Correction, Body(openapi_examples=examples.CORRECTION)],
) -> Response:
    """Replace a memory's text: return the id of the new one, which supersedes it."""
    return answered(MemoryId(memory_id=orc.correct(memory_id, **_given(body))))


@router.post("/{memory_id}/confirm", operation_id="confirm", status_code=204)
def confirm(orc: Writer, memory_id: MemoryIdPath) -> Response:
    """Protect a memory: confidence 1, no decay."""
    orc.confirm(memory_id)
    return done()


@router.post("/{memory_id}/retract", operation_id="retract", status_code=204)
def retract(
    orc: Writer,
    memory_id: MemoryIdPath,
    body: Annotated[Because, Body(openapi_examples=examples.REASON)],
) -> Response:
    """Retract a memory; it stays in the history."""
    orc.retract(memory_id, reason=body.reason)
    return done()


@router.post("/{memory_id}/restore", operation_id="restore", status_code=204)
def restore(
    orc: Writer,
    memory_id: MemoryIdPath,
    body: Annotated[Because, Body(openapi_examples=examples.REASON)],
) -> Response:
    """Restore a retracted memory."""
    orc.restore(memory_id, reason=body.reason)
    return done()


@router.post("/{memory_id}/promote", operation_id="promote", response_model=PromotedId)
def promote(
    orc: Writer,
    memory_id: MemoryIdPath,
    body: Annotated[Promotion, Body(openapi_examples=examples.PROMOTION)],
) -> Response:
    """Promote a task's memory to its project, or a project's to global."""
    said = body.confirmed
    promoted = orc.promote(
        memory_id,
        body.to,
        body.scope_id,
        confirmation_callback=None if said is None else lambda _question: said,
        reason=body.reason,
    )
    return answered(PromotedId(memory_id=promoted))


@router.get("/{memory_id}/trace", operation_id="trace", response_model=Trace)
def trace(orc: Reader, memory_id: MemoryIdPath, as_of: AsOf = None) -> Response:
    """Return a memory's sources, what became of it, and what depends on it."""
    return answered(orc.trace(memory_id, as_of=as_of))


def _given(body: Value) -> dict[str, Any]:
    """Return the fields of the request, as the library takes them."""
    return {name: getattr(body, name) for name in body.model_fields_set}
