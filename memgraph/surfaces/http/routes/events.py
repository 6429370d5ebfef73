"""Events, as server-sent events."""

from __future__ import annotations

import threading
from typing import Annotated, Final

from fastapi import APIRouter, Header, Request

from memgraph.model.access import Permission
from memgraph.service.event_delivery import EventReader
from memgraph.surfaces.http.access import Asking, Reader, gate_of, principal_of
from memgraph.surfaces.http.event_streams import EVENT_STREAM, EventStreamResponse, StreamCounter

_MAKING: Final = threading.Lock()

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["events"])


@router.get(
    "/events",
    operation_id="watch",
    status_code=200,
    response_class=EventStreamResponse,
    responses={
        200: {
            "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
            "description": "`memory.contradiction_found` where both sides are seen; `job.ended` "
            "for an admin. Beats of the connection carry an id alone.",
        }
    },
)
def watch(
    request: Request,
    orc: Reader,
    asking: Asking,
    last_event_id: Annotated[
        str | None, Header(description="The id of the last event that was had.")
    ] = None,
) -> EventStreamResponse:
    """Stream new contradictions, from now on or from an earlier event.

    Finished jobs (`job.ended`) are only sent to a key with the permission `admin`.
    """
    jobs = Permission.ADMIN in asking.permissions
    ending = getattr(request.app.state, "ending", None)
    return EventStreamResponse(
        _streams(request),
        asking.actor,
        lambda: EventReader(orc, jobs=jobs, position=last_event_id),
        lambda: principal_of(request),
        lambda: ending is not None and ending.is_set(),
    )


def _streams(request: Request) -> StreamCounter:
    """Return the server's streams; made at the first one."""
    state = request.app.state
    with _MAKING:
        if not hasattr(state, "streams"):
            settings = gate_of(request).service.settings()
            state.streams = StreamCounter(settings.memory.server.streams_per_key)
    streams: StreamCounter = state.streams
    return streams
