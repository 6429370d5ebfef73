"""Limit the rate, the size, the duration and the number of requests."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from anyio import CapacityLimiter, Lock, move_on_after
from anyio.to_thread import current_default_thread_limiter, run_sync

from memgraph.config.server import ServerSettings
from memgraph.errors import (
    DatabaseUnreachable,
    InvalidInput,
    MemgraphError,
    RateLimited,
    RequestTimeout,
    RequestTooLarge,
    ServerBusy,
    Unauthenticated,
)
from memgraph.service.access.rates import RateLimit, SharedRates
from memgraph.surfaces.asgi import (
    AUTHENTICATED,
    UNTIMED,
    WANTED,
    ASGIApp,
    Message,
    Pages,
    Receive,
    Scope,
    Send,
    header,
    refuse,
    shown_key,
)
from memgraph.surfaces.http.problems import status_of

# The sources that requests are counted by.


@dataclass(frozen=True, slots=True)
class RequestSender:
    """The sender of a request.

    Attributes:
        name: the source that is limited: the digest of a key, a console session, or an IP address.
        secret: the key in the request, if any.
        known: True if the key was accepted before, or the visitor is signed in.
    """

    name: str
    secret: str | None
    known: bool


class RequestSources:
    """Determines the source of a request: its key if it was accepted before, else its IP address.

    Accepted keys are remembered by digest, so that a refused request costs no file access.

    Args:
        visitor: returns the source of a request without a key, from its console session; None: it
            is counted by its IP address.
    """

    def __init__(self, visitor: Callable[[Scope], str | None] = lambda _scope: None) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()
        self._visitor = visitor

    def of(self, scope: Scope) -> RequestSender:
        """Return the sender of a request, judged by its headers alone."""
        secret = shown_key(scope)
        if secret is not None:
            digest = _digest(secret)
            if digest in self._known:
                return RequestSender(digest, secret, known=True)
        elif (visitor := self._visitor(scope)) is not None:
            return RequestSender(visitor, None, known=True)
        client = scope.get("client")
        return RequestSender("" if client is None else str(client[0]), secret, known=False)

    def learning(self, scope: Scope, source: RequestSender, send: Send) -> Send:
        """Return a send function that also records whether the key was valid."""
        secret = source.secret
        if secret is None:
            return send

        async def learnt(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(_digest(secret), scope, message["status"])
            await send(message)

        return learnt

    def _note(self, digest: str, scope: Scope, status: int) -> None:
        if scope.get(AUTHENTICATED):
            self._known[digest] = None
            self._known.move_to_end(digest)
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
        elif status == HTTPStatus.UNAUTHORIZED:
            # Only a 401 shows that the key is invalid: other errors may precede its check.
            self._known.pop(digest, None)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("latin-1")).hexdigest()


ALIVE: Final = "/healthz"
"""The path that is exempt from all limits."""
BUSY_RETRY_S: Final = 1
STRANGERS_BYTES: Final = 65_536
"""The largest body that is read before its sender is authenticated, in bytes."""
_EVENTS: Final = b"text/event-stream"

Refusing = Callable[[MemgraphError, int], Coroutine[Any, Any, None]]
"""Sends an error with a status."""


class RequestLimits:
    """ASGI middleware that enforces the limits of ``memory.server``.

    Args:
        max_file_bytes: the largest file that may be uploaded by PUT, in bytes; the application
            reads it in chunks.
        authenticate: raises Unauthenticated or InvalidConfig for an invalid key; called in a
            thread.
        pages: the web console inside the application, whose visitors get errors as pages.
        shared: counts requests together with other servers; None: this server counts alone.
        monotonic: returns the time of a monotonic clock, in seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        *,
        max_file_bytes: int,
        authenticate: Callable[[str | None], object],
        pages: Pages | None = None,
        shared: SharedRates | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._settings = settings
        self._max_file_bytes = max_file_bytes
        self._monotonic = monotonic
        self._rates = TokenBuckets(settings.requests_per_second)
        self._shared = None
        if shared is not None:
            self._shared = SharedBuckets(shared, settings.requests_per_second, monotonic)
        self._authenticate = authenticate
        self._pages = pages
        self._sources = RequestSources(self._visitor)
        self._most = settings.threads + settings.max_waiting
        # The number of bodies being read, by whether their sender is known.
        self._reading: Counter[bool] = Counter()
        self._working = 0
        self._threads_set = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == ALIVE:
            await self._app(scope, receive, send)
            return
        if not self._threads_set:
            current_default_thread_limiter().total_tokens = self._settings.threads
            self._threads_set = True
        source = self._sources.of(scope)
        wait_s = self._rates.take(source.name, self._monotonic())
        if wait_s <= 0 and self._shared is not None:
            wait_s = await self._shared.take(source)
        if wait_s > 0:
            error = RateLimited("too many requests; wait", retry_after_s=wait_s)
            await self._refuse(scope, send, error, 429)
            return
        try:
            body = await self._arrived(scope, receive, source)
        except MemgraphError as refused:
            await self._refuse(scope, send, refused, _status(refused))
            return
        if body is None:
            return
        if self._working >= self._most:
            await self._refuse(scope, send, _busy(), 503)
            return
        await self._answered(scope, body, self._sources.learning(scope, source, send))

    async def _arrived(
        self, scope: Scope, receive: Receive, source: RequestSender
    ) -> Receive | None:
        """Return a receive function with the body; None if the client has disconnected."""
        if scope["method"] == "PUT":
            _require_size(scope, self._max_file_bytes)
            return _size_limited(receive, self._max_file_bytes)
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return receive
        limit = self._settings.max_body_bytes
        _require_size(scope, limit)
        try:
            async with asyncio.timeout(self._settings.request_timeout_s):
                is_known = await self._is_known(scope, source)
                body = await self._read(receive, limit, known=is_known)
        except TimeoutError:
            raise RequestTimeout("the request did not arrive in time") from None
        if body is None:
            return None
        if "json" in (header(scope, b"content-type") or "").lower():
            _require_plain_json(body)
        return _body_receiver(body, receive)

    async def _is_known(self, scope: Scope, source: RequestSender) -> bool:
        """Return True if the sender is known.

        An unknown sender is authenticated first if its body is large, or if half of the places for
        unknown senders are taken.
        """
        if source.known:
            return True
        small = _size(scope) <= STRANGERS_BYTES
        if small and self._reading[False] < self._most // 2:
            return False
        try:
            await run_sync(self._authenticate, source.secret)
        except Unauthenticated:
            if small and self._pages_of(scope) is not None:
                # It may be the sign-in form, whose sender has no key yet.
                raise _busy() from None
            raise
        scope[AUTHENTICATED] = True
        return True

    async def _read(self, receive: Receive, limit: int, *, known: bool) -> bytes | None:
        if self._reading[known] >= self._most:
            raise _busy()
        self._reading[known] += 1
        try:
            return await _read(receive, limit)
        finally:
            self._reading[known] -= 1

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = partial(self._refuse, scope, send)
        reply = _Reply(send, self._settings.request_timeout_s, self._leave, refused)
        self._working += 1
        scope[UNTIMED], scope[WANTED] = reply.untimed, reply.is_wanted
        try:
            await self._app(scope, receive, reply.send)
        finally:
            await reply.end()

    def _leave(self) -> None:
        self._working -= 1

    def _pages_of(self, scope: Scope) -> Pages | None:
        """Return the console if a request is for one of its pages."""
        return self._pages if self._pages is not None and self._pages.has(scope) else None

    def _visitor(self, scope: Scope) -> str | None:
        pages = self._pages_of(scope)
        return None if pages is None else pages.visitor(scope)

    async def _refuse(self, scope: Scope, send: Send, error: MemgraphError, status: int) -> None:
        pages = self._pages_of(scope)
        if pages is None:
            await _refuse(send, error, status)
        else:
            await pages.refusal(scope, error, status)(scope, _gone, send)


class _Reply:
    """Passes a response on; if it does not begin in time, sends an error and drops the response.

    The work itself is not cancelled: a thread cannot be cancelled, and a write that has begun is
    finished. Work that has not begun is skipped.
    """

    def __init__(
        self, send: Send, timeout_s: float, leave: Callable[[], None], refuse: Refusing
    ) -> None:
        self._send = send
        self._refuse = refuse
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
                # An event stream is long-lived and mostly idle, so it does not count.
                self._leave_once()
        await self._send(message)

    def untimed(self) -> None:
        """Remove the time limit. Call it in the event loop."""
        self._timer.cancel()

    def is_wanted(self) -> bool:
        """Return True as long as the request has not timed out."""
        return not self._expired

    async def end(self) -> None:
        """Clean up after the application, and wait until a timeout error has been sent."""
        self._timer.cancel()
        self._leave_once()
        if self._telling is not None:
            await self._telling

    def _leave_once(self) -> None:
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _expire(self) -> None:
        self._expired = True
        error = RequestTimeout("the request took too long; a write may still have been completed")
        self._telling = asyncio.get_running_loop().create_task(self._refuse(error, 504))


def _status(error: MemgraphError) -> int:
    # In this module the request arrived too late (408); elsewhere the response is late (504).
    late = isinstance(error, RequestTimeout)
    return HTTPStatus.REQUEST_TIMEOUT if late else status_of(error)


def _busy() -> ServerBusy:
    return ServerBusy("too many requests are waiting; try again", retry_after_s=BUSY_RETRY_S)


def _too_large(limit: int) -> RequestTooLarge:
    return RequestTooLarge(f"a request may have at most {limit:,} bytes", limit=limit)


def _require_size(scope: Scope, limit: int) -> None:
    length = header(scope, b"content-length")
    if length is not None and length.isdigit() and int(length) > limit:
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


def _is_stream(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(_EVENTS)
        for name, value in message.get("headers", ())
    )


async def _refuse(send: Send, error: MemgraphError, status: int) -> None:
    wait_s = error.details.get("retry_after_s")
    headers = [] if wait_s is None else [(b"retry-after", str(math.ceil(wait_s)).encode())]
    if isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", b"Bearer"))
    await refuse(send, error, status, headers)


MOST_KNOWN: Final = 10_000
BURST_S: Final = 2.0
"""The size of a burst, in seconds at the full rate."""


class TokenBuckets:
    """A token bucket for each source, with a capacity of ``BURST_S`` times the rate.

    Implements the generic cell rate algorithm (ITU-T I.371): for each source, only the time is
    stored at which its bucket will be full again. Not thread-safe.

    Args:
        per_second: the rate of requests for each source.
    """

    def __init__(self, per_second: float) -> None:
        self._interval_s = 1 / per_second
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def take(self, source: str, now: float) -> float:
        """Take a token for one request; return 0, or the seconds to wait if there is none."""
        full_at = max(self._full_at.get(source, now), now) + self._interval_s
        wait = full_at - now - BURST_S
        if wait > 0:
            return wait
        self._full_at[source] = full_at
        self._full_at.move_to_end(source)
        if len(self._full_at) > MOST_KNOWN:
            self._full_at.popitem(last=False)
        return 0.0


LOT_S: Final = 0.125
"""The largest lot, in seconds at the full rate; also the pause between lookups of an empty bucket.
"""
PATIENCE_S: Final = 0.5
"""The longest time that a request waits for a lot, in seconds."""
LOOKUPS: Final = 4
"""The maximum of concurrent lookups for known sources, and also for unknown ones."""


class Lot:
    """The tokens of one source that this process has taken from a shared bucket.

    The next lot is twice as large if this one lasted less than ``LOT_S``, else half as large. So
    frequent requests need few lookups, and rare requests to many servers take few tokens. Unused
    tokens do not expire: otherwise a client below the rate would be refused.

    Args:
        largest: the maximum size of a lot, in tokens.
    """

    def __init__(self, largest: int) -> None:
        self.lock = Lock()
        self._largest = largest
        self._size = 1
        self._tokens = 0
        self._filled_at = self._retry_at = -math.inf

    def take(self, now: float) -> float | None:
        """Take a token; return 0, the seconds to wait for one, or None if a lookup is due."""
        if self._tokens:
            self._tokens -= 1
            return 0.0
        return self._retry_at - now if now < self._retry_at else None

    def next_size(self, now: float) -> int:
        """Return the number of tokens to take from the bucket; 0 if no lookup is due."""
        if self._tokens or now < self._retry_at:
            return 0
        is_quick = now - self._filled_at < LOT_S
        self._size = min(2 * self._size, self._largest) if is_quick else max(self._size // 2, 1)
        return self._size

    def fill(self, tokens: int, wait_s: float, now: float) -> None:
        """Add tokens from the bucket.

        Args:
            wait_s: the time until the bucket has another token, in seconds.
            now: the time of the monotonic clock, in seconds.
        """
        self._tokens, self._filled_at = tokens, now
        if tokens < self._size:
            self._retry_at = now + max(wait_s, LOT_S)


class SharedBuckets:
    """Counts requests together with the other servers of a database. For use in one event loop.

    Args:
        per_second: the rate of requests for each source.
        monotonic: returns the time of a monotonic clock, in seconds.
    """

    def __init__(
        self, shared: SharedRates, per_second: float, monotonic: Callable[[], float]
    ) -> None:
        self._shared = shared
        self._limit = RateLimit("requests", per_second, BURST_S)
        self._monotonic = monotonic
        self._lots: OrderedDict[str, Lot] = OrderedDict()
        # Separate limits, so that requests from many unknown addresses do not delay known keys.
        self._turns = {known: CapacityLimiter(LOOKUPS) for known in (True, False)}
        self._threads = CapacityLimiter(math.inf)

    async def take(self, source: RequestSender) -> float:
        """Take a token for one request; return 0, or the seconds to wait if there is none.

        Return 0 while the database is unreachable: this process's own bucket admitted the request.
        """
        lot = self._lots.get(source.name)
        if lot is None:
            lot = self._lots[source.name] = Lot(max(int(self._limit.per_second * LOT_S), 1))
        self._lots.move_to_end(source.name)
        if len(self._lots) > MOST_KNOWN:
            self._lots.popitem(last=False)
        while (wait_s := lot.take(self._monotonic())) is None:
            if self._shared.is_away:
                return 0.0
            async with lot.lock, self._turns[source.known]:
                await self._fill(lot, source.name)
        return wait_s

    async def _fill(self, lot: Lot, source: str) -> None:
        # While this request waited, another may have filled the lot or lost the database.
        tokens = 0 if self._shared.is_away else lot.next_size(self._monotonic())
        if not tokens:
            return
        lookup = partial(self._shared.take, self._limit, source, tokens)
        with move_on_after(PATIENCE_S) as patience:
            grant = await run_sync(lookup, abandon_on_cancel=True, limiter=self._threads)
            if grant is not None:
                lot.fill(grant.tokens, grant.wait_s, self._monotonic())
        if patience.cancelled_caught:
            self._shared.fail(DatabaseUnreachable("the database did not answer in time"))
