"""Routes for files: exports, backups, uploads."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

from anyio import CancelScope
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Path as PathParameter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from memgraph.errors import RequestRefused, RequestTimeout
from memgraph.model.remote import UploadResult
from memgraph.model.values import Name
from memgraph.operations.ingestion.uploads import UploadDraft, draft
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.http.access import Writer, gate_of, slow_request, undivided, untimed
from memgraph.surfaces.http.envelope import answered
from memgraph.surfaces.http.problems import problem

NDJSON = "application/x-ndjson"
SQLITE = "application/vnd.sqlite3"

CHUNK: Final = 1 << 18
"""The size in which files are sent, in bytes."""


class TemporaryFileResponse(StreamingResponse):
    """Sends a temporary file, which is created on demand and always removed.

    Args:
        file: a context manager that yields the file, entered in a thread. Its errors are handled
            like errors of the route.
        name: the file name in the browser.
    """

    def __init__(
        self, file: AbstractContextManager[BinaryIO], *, name: str, media_type: str
    ) -> None:
        self._held = file
        headers = {
            "content-disposition": f'attachment; filename="{name}"',
            "cache-control": "no-store",
        }
        super().__init__((), media_type=media_type, headers=headers)

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        # Kept in a list: when cancelled during ``run_sync``, its return value would be lost.
        entered: list[BinaryIO] = []
        try:
            await run_sync(lambda: entered.append(self._held.__enter__()))
            self.headers["content-length"] = str(os.fstat(entered[0].fileno()).st_size)
            self.body_iterator = _chunks(entered[0])
            # ``RequestLimits`` ends the wait for a client that reads nothing.
            await self.stream_response(send)
        finally:
            if entered:
                with CancelScope(shield=True):
                    await run_sync(self._held.__exit__, None, None, None)


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := await run_sync(file.read, CHUNK):
        yield chunk


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
        with slow_request(request):
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
        uploaded = await _taken(request, upload_draft, settings.memory.server.request_timeout_s)
    except RequestTimeout as error:
        return problem(request, error, HTTPStatus.REQUEST_TIMEOUT)
    if uploaded.known is None:
        service.intake.wake(orc.name)
    return answered(uploaded, status=202)


async def _taken(request: Request, draft: UploadDraft, timeout_s: float) -> UploadResult:
    """Write the whole body of a request to a draft, and store the draft.

    The draft is discarded in any case.

    Raises:
        RequestTimeout: the body took longer than ``timeout_s`` seconds to arrive.
        RequestRefused: the client disconnected.
        MemgraphError: an error of ``UploadDraft.write`` or ``UploadDraft.place``.
    """
    try:
        await _arrived(request, draft, timeout_s)
        return await run_sync(draft.place)
    finally:
        with CancelScope(shield=True):
            await run_sync(draft.discard)


async def _arrived(request: Request, draft: UploadDraft, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                await run_sync(draft.write, chunk)
    except TimeoutError:
        raise RequestTimeout("the file did not arrive in time", limit_s=timeout_s) from None
    except ClientDisconnect:
        raise RequestRefused("the file did not arrive completely") from None
