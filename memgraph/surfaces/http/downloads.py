"""Responses that send a temporary file."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from typing import BinaryIO, Final

from anyio import CancelScope, create_task_group, fail_after
from anyio.to_thread import run_sync
from fastapi.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

CHUNK: Final = 1 << 18
STALL_S: Final = 60.0
"""Seconds after which a client that reads nothing is disconnected: copies are limited in number."""


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

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        # Kept in a list: when cancelled during ``run_sync``, its return value would be lost.
        entered: list[BinaryIO] = []
        try:
            await run_sync(lambda: entered.append(self._held.__enter__()))
            self.headers["content-length"] = str(os.fstat(entered[0].fileno()).st_size)
            self.body_iterator = _chunks(entered[0])
            await until_gone(receive, lambda: self._streamed(send))
        finally:
            if entered:
                with CancelScope(shield=True):
                    await run_sync(self._held.__exit__, None, None, None)

    async def _streamed(self, send: Send) -> None:
        async def patiently(message: Message) -> None:
            with fail_after(STALL_S):
                await send(message)

        # The connection closes before the announced length: the client sees an incomplete file.
        with suppress(TimeoutError):
            await self.stream_response(patiently)


async def until_gone(receive: Receive, work: Callable[[], Awaitable[None]]) -> None:
    """Run ``work``, but stop when the client disconnects; sending need not fail then."""

    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            continue
        group.cancel_scope.cancel()

    async with create_task_group() as group:
        group.start_soon(leave)
        await work()
        group.cancel_scope.cancel()


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := await run_sync(file.read, CHUNK):
        yield chunk
