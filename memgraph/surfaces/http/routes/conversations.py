"""Conversations: turns stored, sessions listed and ended."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Query, Response
from pydantic import Field

from memgraph.model.conversation import SessionPlace
from memgraph.model.remote import (
    MAX_BATCH,
    Limit,
    MemoryId,
    Outcomes,
    SessionEnded,
    SessionPage,
)
from memgraph.model.values import MAX_NAME_CHARS, EpisodeInput, Name, Value
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.entering import Reader, Writer
from memgraph.surfaces.http.envelope import ItemOf, answered

MAX_CURSOR_CHARS: Final = MAX_NAME_CHARS + 17

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["conversations"])


class EpisodeBatch(Value):
    """Turns; an invalid one is rejected by itself."""

    items: Annotated[
        tuple[Annotated[dict[str, Any], ItemOf(EpisodeInput)], ...], Field(max_length=MAX_BATCH)
    ]


class Ending(Value):
    """The session to end."""

    session_id: Name


@router.post("/episodes", operation_id="save_episode", status_code=201, response_model=MemoryId)
def save_episode(
    orc: Writer, body: Annotated[EpisodeInput, Body(openapi_examples=examples.EPISODE)]
) -> Response:
    """Store one turn of a conversation."""
    memory_id = orc.save_episode(**body.model_dump(exclude_unset=True))
    return answered(MemoryId(memory_id=memory_id), status=201)


@router.post("/episodes/batch", operation_id="save_episodes", response_model=Outcomes)
def save_episodes(
    orc: Writer, body: Annotated[EpisodeBatch, Body(openapi_examples=examples.EPISODES)]
) -> Response:
    """Store many turns, with an outcome for each, in order."""
    return answered(Outcomes(outcomes=tuple(orc.save_episodes(body.items))))


@router.get("/sessions", operation_id="list_sessions", response_model=SessionPage)
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
    found = orc.sessions(pending=pending, limit=limit, before=after)
    following = found[-1].cursor if len(found) == limit else None
    return answered(SessionPage(items=tuple(found), next_cursor=following))


@router.post("/sessions/end", operation_id="end_session", response_model=SessionEnded)
def end_session(
    orc: Writer, body: Annotated[Ending, Body(openapi_examples=examples.ENDING)]
) -> Response:
    """End a conversation; a later turn opens it again."""
    return answered(SessionEnded(ended=orc.end_session(body.session_id)))
