"""Bounds on what a request may take: its size, its time, how often, how many at once.

A body is read whole before the application sees the request: nobody who sends slowly holds a
thread. What is refused here costs neither a thread nor a look at a database.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from anyio.to_thread import current_default_thread_limiter

from memgraph.config.server import ServerSettings
from memgraph.errors import (
    MemgraphError,
    RateLimited,
    RequestTimeout,
    RequestTooLarge,
    ServerBusy,
)
from memgraph.surfaces.guarding import ASGIApp, Message, Receive, Scope, Send, header, refuse
from memgraph.surfaces.http.rates import MOST_KNOWN, Rates
from memgraph.surfaces.scopes import AUTHENTICATED, UNTIMED

ALIVE: Final = "/healthz"
"""Answered however busy the server is."""
BUSY_RETRY_S: Final = 1
_EVENTS: Final = b"text/event-stream"


class Limits:
    """The bounds of ``memory.server`` around an application.

    Args:
        max_file_bytes: of a file that is uploaded (PUT); the application reads it piece by piece.
        monotonic: seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        *,
        max_file_bytes: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._settings = settings
        self._max_file_bytes = max_file_bytes
        self._monotonic = monotonic
        self._rates = Rates(settings.requests_per_second)
        self._sources = _Sources()
        self._most = settings.threads + settings.max_waiting
        self._reading = 0
        self._working = 0
        self._threads_set = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == ALIVE:
            await self._app(scope, receive, send)
            return
        if not self._threads_set:
            current_default_thread_limiter().total_tokens = self._settings.threads
            self._threads_set = True
        source, digest = self._sources.of(scope)
        wait_s = self._rates.take(source, self._monotonic())
        if wait_s > 0:
            await _refuse(send, RateLimited("too many requests; wait", retry_after_s=wait_s), 429)
            return
        try:
            body = await self._arrived(scope, receive)
        except MemgraphError as error:
            await _refuse(send, error, _STATUS[type(error)])
            return
        if body is None:
            return
        if self._working >= self._most:
            await _refuse(send, _busy(), 503)
            return
        await self._answered(scope, body, self._sources.learning(scope, digest, send))

    async def _arrived(self, scope: Scope, receive: Receive) -> Receive | None:
        """What gives the body to the application; None: the client is gone."""
        if scope["method"] == "PUT":
            _require_size(scope, self._max_file_bytes)
            return _counted(receive, self._max_file_bytes)
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return receive
        limit = self._settings.max_body_bytes
        _require_size(scope, limit)
        if self._reading >= self._most:
            raise _busy()
        self._reading += 1
        try:
            async with asyncio.timeout(self._settings.request_timeout_s):
                body = await _read(receive, limit)
        except TimeoutError:
            raise RequestTimeout("the request did not arrive in time") from None
        finally:
            self._reading -= 1
        return None if body is None else _given(body, receive)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = _Reply(send, self._settings.request_timeout_s, self._leave)
        self._working += 1
        scope[UNTIMED] = reply.untimed
        try:
            await self._app(scope, receive, reply.send)
        finally:
            reply.end()

    def _leave(self) -> None:
        self._working -= 1


class _Reply:
    """Passes an answer on; where none has begun in time, tells so, and drops the one that comes.

    The work itself is not broken off: a thread cannot be, and a write that was begun is finished.
    """

    def __init__(self, send: Send, timeout_s: float, leave: Callable[[], None]) -> None:
        self._send = send
        self._leave: Callable[[], None] | None = leave
        self._begun = self._expired = False
        self._telling: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(timeout_s, self._expire)

    async def send(self, message: Message) -> None:
        if self._expired:
            return
        if not self._begun:
            self._begun = True
            self._timer.cancel()
            if _is_stream(message):
                # It lasts, and mostly waits.
                self._leave_once()
        await self._send(message)

    def untimed(self) -> None:
        """It may take as long as it takes; to be called in the event loop."""
        self._timer.cancel()

    def end(self) -> None:
        """The application has come to its end."""
        self._timer.cancel()
        self._leave_once()

    def _leave_once(self) -> None:
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _expire(self) -> None:
        self._expired = True
        error = RequestTimeout("it took too long to answer; a write may be done all the same")
        self._telling = asyncio.get_running_loop().create_task(_refuse(self._send, error, 504))


class _Sources:
    """Whom a request counts for: its key once that was found to be one, else its address.

    Keys are known by the digest of their secret: no file is read for a request that is refused.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()

    def of(self, scope: Scope) -> tuple[str, str | None]:
        """The source, and the digest of what was shown as a key."""
        shown = header(scope, b"authorization")
        digest = None
        if shown is not None:
            digest = hashlib.sha256(shown.encode("latin-1")).hexdigest()
            if digest in self._known:
                return digest, digest
        client = scope.get("client")
        return "" if client is None else str(client[0]), digest

    def learning(self, scope: Scope, digest: str | None, send: Send) -> Send:
        """Passes an answer on, and notes whether the key was one."""
        if digest is None:
            return send

        async def learnt(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(digest, known=bool(scope.get(AUTHENTICATED)))
            await send(message)

        return learnt

    def _note(self, digest: str, *, known: bool) -> None:
        if not known:
            self._known.pop(digest, None)
            return
        self._known[digest] = None
        self._known.move_to_end(digest)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)


_STATUS: Final[dict[type[MemgraphError], int]] = {
    RequestTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    RequestTimeout: HTTPStatus.REQUEST_TIMEOUT,
    ServerBusy: HTTPStatus.SERVICE_UNAVAILABLE,
}


def _busy() -> ServerBusy:
    return ServerBusy("too many requests wait already; try again", retry_after_s=BUSY_RETRY_S)


def _too_large(limit: int) -> RequestTooLarge:
    return RequestTooLarge(f"a request is {limit:,} bytes at most", limit=limit)


def _require_size(scope: Scope, limit: int) -> None:
    told = header(scope, b"content-length")
    if told is not None and told.isdigit() and int(told) > limit:
        raise _too_large(limit)


async def _read(receive: Receive, limit: int) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _given(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read, and then whatever comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Message:
        return waiting.pop() if waiting else await receive()

    return given


def _counted(receive: Receive, limit: int) -> Receive:
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise _too_large(limit)
        return message

    return counted


def _is_stream(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(_EVENTS)
        for name, value in message.get("headers", ())
    )


async def _refuse(send: Send, error: MemgraphError, status: int) -> None:
    wait_s = error.details.get("retry_after_s")
    headers = [] if wait_s is None else [(b"retry-after", str(math.ceil(wait_s)).encode())]
    await refuse(send, error, status, headers)
