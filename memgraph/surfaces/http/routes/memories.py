"""Routes of a memory that are not derived: what is sent is not what the library takes."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Body, Path, Query, Response

from memgraph.model.context import ContextPackage, ContextRequest, Task, Tier
from memgraph.model.conversation import SessionPlace
from memgraph.model.operation import MemoryId
from memgraph.model.remote import Limit, PromotedId, SessionPage
from memgraph.model.values import MAX_NAME_CHARS, Name, Reason, Value
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.access import Reader, Writer
from memgraph.surfaces.http.envelope import answered
from memgraph.surfaces.http.operations import ROOT

MAX_CURSOR_CHARS: Final = MAX_NAME_CHARS + 17

router = APIRouter(prefix=ROOT)


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


class ContextBody(Value):
    """The task (or its id, or none), and the request for its context."""

    task: Task | Name | None = None
    request: ContextRequest | None = None


@router.post(
    "/memories/{memory_id}/promote",
    operation_id="promote",
    response_model=PromotedId,
    tags=["memories"],
)
def promote(
    orc: Writer,
    memory_id: Annotated[MemoryId, Path()],
    body: Annotated[Promotion, Body(openapi_examples=examples.PROMOTION)],
) -> Response:
    """Promote a task's memory to its project, or a project's to global."""
    # The person was asked by the client.
    confirmed = body.confirmed
    promoted = orc.contexts.promote(
        memory_id,
        body.to,
        body.scope_id,
        confirmation_callback=None if confirmed is None else lambda _question: confirmed,
        reason=body.reason,
    )
    return answered(PromotedId(memory_id=promoted))


@router.post(
    "/context", operation_id="build_context", response_model=ContextPackage, tags=["contexts"]
)
def build_context(
    orc: Reader,
    body: Annotated[
        ContextBody, Body(default_factory=ContextBody, openapi_examples=examples.CONTEXT)
    ],
) -> Response:
    """Build the context that a task needs, within a token budget.

    The view needs the task among its sessions and the task's project among its projects.
    """
    return answered(orc.contexts.build(body.task, body.request))


@router.get(
    "/sessions", operation_id="list_sessions", response_model=SessionPage, tags=["conversations"]
)
def sessions(
    orc: Reader,
    pending: Annotated[bool | None, Query(description="Only those that wait, or wait not.")] = None,
    limit: Annotated[Limit, Query()] = 100,
    cursor: Annotated[
        str | None,
        Query(max_length=MAX_CURSOR_CHARS, description="`next_cursor` of the page before."),
    ] = None,
    before: Annotated[
        Name | None,
        Query(description="Where there is no cursor: those after a session, by its id."),
    ] = None,
) -> Response:
    """Return conversations of which the caller may see a turn, latest activity first.

    With a cursor no page repeats what an earlier one returned, whatever is said meanwhile.
    """
    after = before if cursor is None else SessionPlace.at(cursor)
    result = orc.sessions.list(pending=pending, limit=limit, before=after)
    following = result[-1].cursor if len(result) == limit else None
    return answered(SessionPage(items=tuple(result), next_cursor=following))
