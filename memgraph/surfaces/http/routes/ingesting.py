"""Files that are turned into memories: uploads and their records."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Query, Request, Response

from memgraph.errors import RequestTimeout
from memgraph.model.remote import IngestedFile, IngestPage, Limit, Uploaded
from memgraph.model.values import Name
from memgraph.service.intake import draft
from memgraph.surfaces.arriving import taken
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.entering import Asking, Reader, Writer, gate_of, sees_whole, untimed
from memgraph.surfaces.http.envelope import answered
from memgraph.surfaces.http.problems import problem

_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": "The file as it is: UTF-8 text, Markdown or JSON.",
        "content": {
            "application/octet-stream": {"schema": {"type": "string"}, "examples": examples.FILE}
        },
    }
}

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}/ingest/files", tags=["ingest"])


@router.put(
    "/{name}",
    operation_id="upload_file",
    status_code=202,
    response_model=Uploaded,
    openapi_extra=_BODY,
)
async def upload(
    request: Request,
    orc: Writer,
    name: Annotated[Name, Path(description="A file name: .txt, .md or .json.")],
) -> Response:
    """Take a file; it is processed in the background, within the bounds of the sender's key.

    The same content is taken only once: `known` is true then.
    """
    service = gate_of(request).service
    settings = await run_sync(service.settings)
    arriving = await run_sync(draft, orc, name)
    # It has the time of a request to arrive; then it is taken, however late that is.
    await untimed(request)
    try:
        uploaded = await taken(request, arriving, settings.memory.server.request_timeout_s)
    except RequestTimeout as error:
        return problem(error, HTTPStatus.REQUEST_TIMEOUT)
    if uploaded.known is None:
        service.intake.wake(orc.name)
    return answered(uploaded, status=202)


@router.get("", operation_id="list_files", response_model=IngestPage)
def listed(
    orc: Reader,
    asking: Asking,
    limit: Annotated[Limit, Query()] = 50,
    cursor: Annotated[Name | None, Query(description="`next_cursor` of the page before.")] = None,
) -> Response:
    """Return processed files, latest first, that the caller may see."""
    everything = sees_whole(orc, asking)
    return answered(orc.ingest_files(limit=limit, after=cursor, everything=everything))


@router.get("/{sha256}", operation_id="get_file", response_model=IngestedFile)
def get(
    orc: Reader,
    asking: Asking,
    sha256: Annotated[Name, Path(description="Of its content, 64 hexadecimal digits.")],
) -> Response:
    """Return the record of a file, for its sender and for keys that see all its memories."""
    return answered(orc.ingest_file(sha256, everything=sees_whole(orc, asking)))
