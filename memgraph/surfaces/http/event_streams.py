"""Server-sent events. A waiting stream holds neither a thread nor a snapshot."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from time import monotonic
from typing import BinaryIO, Final

from anyio import CancelScope, CapacityLimiter, create_task_group, fail_after, sleep
from anyio.to_thread import run_sync
from fastapi.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from memgraph.errors import MemgraphError, RateLimited
from memgraph.service.event_delivery import EventReader, ObservedEvent

EVENT_STREAM: Final = "text/event-stream"
TICK_S: Final = 0.25
LOOK_S: Final = 0.5
"""The maximum delay, in seconds, of an event that this process knows of."""
HEARTBEAT_S: Final = 15.0
RETRY_MS: Final = 2_000
"""How long a client waits before it reconnects."""
LOOKERS: Final = 4
"""Threads that poll for all streams, besides those that work on requests."""


class StreamCounter:
    """Counts and limits the open streams of each key. For one event loop.

    Args:
        limit: the maximum number of open streams per key.
    """

    def __init__(self, limit: int) -> None:
        self.limiter = CapacityLimiter(LOOKERS)
        self._most = limit
        self._open: Counter[str] = Counter()

    @contextmanager
    def one(self, actor: str) -> Iterator[None]:
        """Count one more stream for the duration of the block. Raises RateLimited."""
        if self._open[actor] >= self._most:
            raise RateLimited(f"a key may open {self._most} streams", retry_after_s=HEARTBEAT_S)
        self._open[actor] += 1
        try:
            yield
        finally:
            self._open[actor] -= 1
            if not self._open[actor]:
                del self._open[actor]


class EventStreamResponse(StreamingResponse):
    """Events as they occur, until the client leaves, the key expires or the server ends.

    Args:
        begin: returns the event reader; called in a thread. Its errors become problem responses.
        check: raises when the principal may no longer read events.
        ending: returns True when the server is shutting down.
    """

    media_type = EVENT_STREAM

    def __init__(
        self,
        streams: StreamCounter,
        actor: str,
        begin: Callable[[], EventReader],
        check: Callable[[], object],
        ending: Callable[[], bool],
    ) -> None:
        self._streams, self._actor = streams, actor
        self._begin, self._check, self._ending = begin, check, ending
        super().__init__((), headers={"cache-control": "no-store", "x-accel-buffering": "no"})

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.one(self._actor):
            reader = await run_sync(self._begin, limiter=self._streams.limiter)
            self.body_iterator = self._events(reader)
            await until_gone(receive, lambda: self.stream_response(send))

    async def _events(self, reader: EventReader) -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n{_beat(reader)}"
        last_beat = monotonic()
        last_poll = last_beat - LOOK_S
        while not self._ending():
            await sleep(TICK_S)
            now = monotonic()
            if now - last_poll < LOOK_S:
                continue
            last_poll, due = now, now - last_beat >= HEARTBEAT_S
            try:
                results = await run_sync(self._look, reader, due, limiter=self._streams.limiter)
            except MemgraphError:
                # A client that reconnects gets the error.
                return
            for item in results:
                yield _message(item)
            if due:
                last_beat = now
                yield _beat(reader)

    def _look(self, lookout: EventReader, thoroughly: bool) -> Sequence[ObservedEvent]:
        self._check()
        return lookout.look(thoroughly=thoroughly)


def _message(event: ObservedEvent) -> str:
    data = json.dumps(event.data, ensure_ascii=False, separators=(",", ":"))
    return f"id: {event.position}\nevent: {event.topic}\ndata: {data}\n\n"


def _beat(reader: EventReader) -> str:
    """Return a heartbeat: a comment that keeps the connection open, with the position."""
    return f"id: {reader.position}\n: \n\n"


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
