"""Limit the size, the duration and the number of requests."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from anyio.to_thread import current_default_thread_limiter, run_sync
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memgraph.config.server import ServerSettings
from memgraph.errors import InvalidInput, MemgraphError, RequestTimeout, RequestTooLarge, ServerBusy
from memgraph.surfaces.asgi import UNTIMED, WANTED, Pages, header, refuse, shown_key

ALIVE: Final = "/healthz"
"""The path that is exempt from all limits."""
BUSY_RETRY_S: Final = 1
STRANGERS_BYTES: Final = 65_536
"""The largest body that is read before its sender is authenticated, in bytes."""
THREADS: Final = 16
"""The maximum number of requests processed concurrently."""
MAX_WAITING: Final = 256
"""Requests that may wait for a thread; more are refused immediately."""

Refusing = Callable[[MemgraphError, int], Coroutine[Any, Any, None]]
"""Sends an error with a status."""


class RequestLimits:
    """ASGI middleware that enforces the limits of ``memory.server``.

    Args:
        max_file_bytes: the largest body with files, in bytes: one file by PUT, or those of a form
            of the console. The application reads it in chunks.
        authenticate: raises Unauthenticated or InvalidConfig for an invalid key; called in a
            thread.
        pages: the web console inside the application, whose visitors get errors as pages.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        *,
        max_file_bytes: int,
        authenticate: Callable[[str | None], object],
        pages: Pages | None = None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._max_file_bytes = max_file_bytes
        self._authenticate = authenticate
        self._pages = pages
        self._most = THREADS + MAX_WAITING
        self._reading = 0
        self._working = 0
        self._threads_set = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == ALIVE:
            await self._app(scope, receive, send)
            return
        if not self._threads_set:
            current_default_thread_limiter().total_tokens = THREADS
            self._threads_set = True
        try:
            body = await self._arrived(scope, receive)
        except MemgraphError as refused:
            await self._refuse(scope, send, refused, _status(refused))
            return
        if body is None:
            return
        if self._working >= self._most:
            await self._refuse(scope, send, _busy(), 503)
            return
        await self._answered(scope, body, send)

    async def _arrived(self, scope: Scope, receive: Receive) -> Receive | None:
        """Return a receive function with the body; None if the client has disconnected."""
        if scope["method"] == "PUT" or self._is_form_with_files(scope):
            _require_size(scope, self._max_file_bytes)
            return _size_limited(receive, self._max_file_bytes)
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return receive
        limit = self._settings.max_body_bytes
        _require_size(scope, limit)
        try:
            async with asyncio.timeout(self._settings.request_timeout_s):
                if _size(scope) <= STRANGERS_BYTES:
                    body = await _read(receive, limit)
                else:
                    body = await self._read_large(scope, receive, limit)
        except TimeoutError:
            raise RequestTimeout("the request did not arrive in time") from None
        if body is None:
            return None
        if "json" in (header(scope, b"content-type") or "").lower():
            _require_plain_json(body)
        return _body_receiver(body, receive)

    def _is_form_with_files(self, scope: Scope) -> bool:
        """Return True for a form with files, of a visitor with a session."""
        pages = self._pages_of(scope)
        return pages is not None and pages.takes_files(scope) and pages.knows(scope)

    async def _read_large(self, scope: Scope, receive: Receive, limit: int) -> bytes | None:
        """Read a body that takes memory: only an authenticated sender's, and only so many."""
        pages = self._pages_of(scope)
        if pages is None or not pages.knows(scope):
            await run_sync(self._authenticate, shown_key(scope))
        if self._reading >= self._most:
            raise _busy()
        self._reading += 1
        try:
            return await _read(receive, limit)
        finally:
            self._reading -= 1

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = partial(self._refuse, scope, send)
        reply = _Reply(send, self._settings.request_timeout_s, refused)
        self._working += 1
        scope[UNTIMED], scope[WANTED] = reply.untimed, reply.is_wanted
        try:
            await self._app(scope, receive, reply.send)
        finally:
            self._working -= 1
            await reply.end()

    def _pages_of(self, scope: Scope) -> Pages | None:
        """Return the console if a request is for one of its pages."""
        return self._pages if self._pages is not None and self._pages.has(scope) else None

    async def _refuse(self, scope: Scope, send: Send, error: MemgraphError, status: int) -> None:
        pages = self._pages_of(scope)
        if pages is None:
            await refuse(scope, send, error, status)
        else:
            await pages.refusal(scope, error, status)(scope, _gone, send)


class _Reply:
    """Passes a response on; if it does not begin in time, sends an error and drops the response.

    The work itself is not cancelled: a thread cannot be cancelled, and a write that has begun is
    finished. Work that has not begun is skipped.
    """

    def __init__(self, send: Send, timeout_s: float, refuse: Refusing) -> None:
        self._send = send
        self._refuse = refuse
        self._timeout_s = timeout_s
        self._begun = self._expired = False
        self._telling: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(timeout_s, self._expire)

    async def send(self, message: Message) -> None:
        if self._expired:
            return
        if not self._begun:
            self._begun = True
            self._timer.cancel()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._send(message)
        except TimeoutError:
            # The client reads nothing: drop the rest, and let the server close the connection.
            self._expired = True

    def untimed(self) -> None:
        """Remove the time limit. Call it in the event loop."""
        self._timer.cancel()

    def is_wanted(self) -> bool:
        """Return True as long as the request has not timed out."""
        return not self._expired

    async def end(self) -> None:
        """Clean up after the application, and wait until a timeout error has been sent."""
        self._timer.cancel()
        if self._telling is not None:
            await self._telling

    def _expire(self) -> None:
        self._expired = True
        error = RequestTimeout("the request took too long; a write may still have been completed")
        self._telling = asyncio.get_running_loop().create_task(self._refuse(error, 504))


def _status(error: MemgraphError) -> int:
    # In this module the request arrived too late (408); elsewhere the response is late (504).
    late = isinstance(error, RequestTimeout)
    return HTTPStatus.REQUEST_TIMEOUT if late else error.status


def _busy() -> ServerBusy:
    return ServerBusy("too many requests are waiting; try again", retry_after_s=BUSY_RETRY_S)


def _too_large(limit: int) -> RequestTooLarge:
    return RequestTooLarge(f"a request may have at most {limit:,} bytes", limit=limit)


def _require_size(scope: Scope, limit: int) -> None:
    if limit < _size(scope) < math.inf:
        raise _too_large(limit)


def _require_plain_json(body: bytes) -> None:
    """Refuse JSON that two parsers might read differently; let a body that is not JSON pass.

    Raises:
        InvalidInput: the JSON is not UTF-8 (RFC 8259, 8.1), or an object has a field twice.
    """
    if json.detect_encoding(body) not in ("utf-8", "utf-8-sig"):
        raise InvalidInput("JSON must be sent as UTF-8")
    with suppress(json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        json.loads(body, object_pairs_hook=_unique_fields, parse_int=len)


def _unique_fields(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        raise InvalidInput("an object in the JSON has the same field twice")


def _size(scope: Scope) -> float:
    """Return the declared size of the body in bytes; infinite for a chunked body."""
    length = header(scope, b"content-length")
    if length is not None and length.isdigit():
        return int(length)
    return 0 if header(scope, b"transfer-encoding") is None else math.inf


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


def _body_receiver(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that first returns a body that was read already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Message:
        return messages.pop() if messages else await receive()

    return given


async def _gone() -> Message:
    """Return a disconnect message, as the receive function of a refused request."""
    return {"type": "http.disconnect"}


def _size_limited(receive: Receive, limit: int) -> Receive:
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise _too_large(limit)
        return message

    return counted
