"""Server-sent events: streams that hold neither a thread nor a snapshot while they wait."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Final

from anyio import CapacityLimiter, sleep
from anyio.to_thread import run_sync
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from memgraph.errors import MemgraphError, RateLimited
from memgraph.service.event_reader import EventReader, ObservedEvent
from memgraph.surfaces.http.file_responses import until_gone

EVENT_STREAM: Final = "text/event-stream"
TICK_S: Final = 0.25
LOOK_S: Final = 0.5
"""The delay of an event that this process knows of, at most, seconds."""
HEARTBEAT_S: Final = 15.0
RETRY_MS: Final = 2_000
"""How long a client waits before it reconnects."""
LOOKERS: Final = 4
"""Threads that poll for all streams, besides those that work on requests."""


class StreamCounter:
    """The number of streams of each key. For one event loop.

    Args:
        most: of one key at a time.
    """

    def __init__(self, most: int) -> None:
        self.limiter = CapacityLimiter(LOOKERS)
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def one(self, actor: str) -> Iterator[None]:
        """Count one more stream for the time of the block. Raises RateLimited."""
        if self._open[actor] >= self._most:
            raise RateLimited(f"a key has {self._most} streams at most", retry_after_s=HEARTBEAT_S)
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
        begin: returns the lookout; called in a thread. Its errors are answered as problems.
        check: raises when the principal may listen no more.
        ending: returns True when the server ends.
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
            lookout = await run_sync(self._begin, limiter=self._streams.limiter)
            self.body_iterator = self._events(lookout)
            await until_gone(receive, lambda: self.stream_response(send))

    async def _events(self, lookout: EventReader) -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n{_beat(lookout)}"
        beaten = monotonic()
        looked = beaten - LOOK_S
        while not self._ending():
            await sleep(TICK_S)
            now = monotonic()
            if now - looked < LOOK_S:
                continue
            looked, due = now, now - beaten >= HEARTBEAT_S
            try:
                results = await run_sync(self._look, lookout, due, limiter=self._streams.limiter)
            except MemgraphError:
                # A client that reconnects gets the error.
                return
            for item in results:
                yield _message(item)
            if due:
                beaten = now
                yield _beat(lookout)

    def _look(self, lookout: EventReader, thoroughly: bool) -> Sequence[ObservedEvent]:
        self._check()
        return lookout.look(thoroughly=thoroughly)


def _message(happening: ObservedEvent) -> str:
    data = json.dumps(happening.data, ensure_ascii=False, separators=(",", ":"))
    return f"id: {happening.position}\nevent: {happening.topic}\ndata: {data}\n\n"


def _beat(lookout: EventReader) -> str:
    """Send a comment that keeps the connection, with the position."""
    return f"id: {lookout.position}\n: \n\n"
