"""Routes for files: exports, backups, uploads."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi import Path as PathParameter

from memgraph.errors import RequestTimeout
from memgraph.model.remote import UploadResult
from memgraph.model.values import Name
from memgraph.operations.ingestion.uploads import draft
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.http.access import (
    Writer,
    gate_of,
    lengthy_of,
    undivided,
    untimed,
)
from memgraph.surfaces.http.downloads import TemporaryFileResponse
from memgraph.surfaces.http.envelope import answered
from memgraph.surfaces.http.problems import problem
from memgraph.surfaces.uploads import taken

NDJSON = "application/x-ndjson"
SQLITE = "application/vnd.sqlite3"

router = APIRouter(
    prefix="/v1/orchestrators/{orchestrator}", tags=["copies"], dependencies=[Depends(untimed)]
)

Whole = Annotated[Orchestrator, Depends(undivided("a copy", field="copy"))]


@router.get(
    "/export",
    operation_id="export",
    status_code=200,
    response_class=TemporaryFileResponse,
    responses={
        200: {"content": {NDJSON: {}}, "description": "JSON Lines, like `memgraph export`."}
    },
)
def export(
    request: Request,
    orc: Whole,
    with_vectors: Annotated[bool, Query(description="Include embeddings.")] = False,
) -> TemporaryFileResponse:
    """Return all data of the orchestrator. Requires a key that may see everything."""
    return _download(
        request,
        lambda target: orc.exchange.export(target, with_vectors=with_vectors),
        name=f"{orc.name}.jsonl",
        media_type=NDJSON,
    )


@router.get(
    "/backup",
    operation_id="backup",
    status_code=200,
    response_class=TemporaryFileResponse,
    responses={200: {"content": {SQLITE: {}}, "description": "The database, as one file."}},
)
def backup(request: Request, orc: Whole) -> TemporaryFileResponse:
    """Return a verified copy of the database. Requires a key that may see everything."""
    return _download(request, orc.exchange.backup, name=f"{orc.name}.db", media_type=SQLITE)


def _download(
    request: Request, write: Callable[[Path], object], *, name: str, media_type: str
) -> TemporaryFileResponse:
    def made(target: Path) -> None:
        with lengthy_of(request).one():
            write(target)

    copy = gate_of(request).service.copies.copied(made)
    return TemporaryFileResponse(copy, name=name, media_type=media_type)


_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": "The unchanged content of the file: UTF-8 text, Markdown or JSON.",
        "content": {
            "application/octet-stream": {
                "schema": {"type": "string"},
                "examples": {"example": {"value": "# Hours\n\nWe close at 18:00.\n"}},
            }
        },
    }
}

upload_router = APIRouter(prefix="/v1/orchestrators/{orchestrator}/ingest/files", tags=["ingest"])


@upload_router.put(
    "/{name}",
    operation_id="upload_file",
    status_code=202,
    response_model=UploadResult,
    openapi_extra=_BODY,
)
async def upload(
    request: Request,
    orc: Writer,
    name: Annotated[Name, PathParameter(description="A file name: .txt, .md or .json.")],
) -> Response:
    """Upload a file; it is processed in the background, with the permissions of the sender's key.

    The same content is stored only once: `known` is set if it was uploaded before.
    """
    service = gate_of(request).service
    settings = await run_sync(service.settings)
    upload_draft = await run_sync(draft, orc, name)
    # Only the arrival of the body has a time limit. Storing the file afterwards has none.
    await untimed(request)
    try:
        uploaded = await taken(request, upload_draft, settings.memory.server.request_timeout_s)
    except RequestTimeout as error:
        return problem(error, HTTPStatus.REQUEST_TIMEOUT)
    if uploaded.known is None:
        service.intake.wake(orc.name)
    return answered(uploaded, status=202)
