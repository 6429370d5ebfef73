"""Store uploads: write a request's body to a draft in chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from anyio import CancelScope
from anyio.to_thread import run_sync
from starlette.requests import ClientDisconnect, Request

from memgraph.errors import RequestRefused, RequestTimeout
from memgraph.model.remote import UploadResult
from memgraph.operations.ingestion.uploads import UploadDraft

PIECE: Final = 1 << 18
"""The size of a chunk in bytes."""


async def taken(request: Request, draft: UploadDraft, timeout_s: float) -> UploadResult:
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
            async for piece in _pieces(request):
                await run_sync(draft.write, piece)
    except TimeoutError:
        raise RequestTimeout("the file did not arrive in time", limit_s=timeout_s) from None
    except ClientDisconnect:
        raise RequestRefused("the file did not arrive completely") from None


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    """Yield the body in chunks that are large enough to justify a call to a thread."""
    buffer = bytearray()
    async for chunk in request.stream():
        buffer += chunk
        if len(buffer) >= PIECE:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)
