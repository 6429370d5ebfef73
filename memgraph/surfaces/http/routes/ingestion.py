"""Files that are turned into memories: uploads."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Request, Response

from memgraph.errors import RequestTimeout
from memgraph.model.remote import UploadResult
from memgraph.model.values import Name
from memgraph.operations.ingestion.uploads import draft
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.access import Writer, gate_of, untimed
from memgraph.surfaces.http.envelope import answered
from memgraph.surfaces.http.problems import problem
from memgraph.surfaces.uploads import taken

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
    response_model=UploadResult,
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
