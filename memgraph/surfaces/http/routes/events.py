"""Events, as server-sent events."""

from __future__ import annotations

import threading
from typing import Annotated, Final

from fastapi import APIRouter, Header, Request

from memgraph.model.access import Permission
from memgraph.service.observation import Lookout
from memgraph.surfaces.http.access import Asking, Reader, gate_of, principal_of
from memgraph.surfaces.http.event_streams import EVENT_STREAM, EventStream, Streams

_MAKING: Final = threading.Lock()

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["events"])


@router.get(
    "/events",
    operation_id="watch",
    status_code=200,
    response_class=EventStream,
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
) -> EventStream:
    """Stream new contradictions, from now on or from an earlier event.

    Finished jobs (`job.ended`) are only sent to a key with the permission `admin`.
    """
    jobs = Permission.ADMIN in asking.permissions
    ending = getattr(request.app.state, "ending", None)
    return EventStream(
        _streams(request),
        asking.actor,
        lambda: Lookout(orc, jobs=jobs, position=last_event_id),
        lambda: principal_of(request),
        lambda: ending is not None and ending.is_set(),
    )


def _streams(request: Request) -> Streams:
    """Return the server's streams; made at the first one."""
    state = request.app.state
    with _MAKING:
        if not hasattr(state, "streams"):
            settings = gate_of(request).service.settings()
            state.streams = Streams(settings.memory.server.streams_per_key)
    streams: Streams = state.streams
    return streams
