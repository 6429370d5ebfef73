"""Copies as answers: they hold no thread while the asker is slow, and leave nothing behind."""

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
"""Who takes nothing for so long is left: only so many copies are sent at a time."""


class SentFile(StreamingResponse):
    """A file as the answer: made when it is sent, and given back however that ends.

    Args:
        held: gives the file when it is entered, in a thread, and takes it back when it is left.
            What it raises is answered as if the route had.
        name: under which a browser saves it.
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

        # The connection is closed before the promised length: nobody takes this for the whole.
        with suppress(TimeoutError):
            await self.stream_response(patiently)


async def until_gone(receive: Receive, work: Callable[[], Awaitable[None]]) -> None:
    """Do it until it is done, or the asker is gone: a server need not say so when it is sent to."""

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
