"""Copies as answers: they hold no thread for a slow client, and leave no files behind."""

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
    """A file as the answer: made when it is sent, and always removed.

    Args:
        held: a context manager that yields the file, entered in a thread. Its errors are answered
            like those of the route.
        name: the file name in the browser.
    """

    def __init__(
        self, held: AbstractContextManager[BinaryIO], *, name: str, media_type: str
    ) -> None:
        self._held = held
        headers = {
            "content-disposition": f'attachment; filename="{name}"',
            "cache-control": "no-store",
        }
        super().__init__((), media_type=media_type, headers=headers)

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        # Entered in a list: who is cancelled while the thread works on it gets no result.
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

        # The connection is closed before the announced length, so that it is not taken as complete.
        with suppress(TimeoutError):
            await self.stream_response(patiently)


async def until_gone(receive: Receive, work: Callable[[], Awaitable[None]]) -> None:
    """Run until it is done, or the client is gone: a server need not report that when sending."""

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
