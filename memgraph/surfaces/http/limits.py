"""Limits of requests."""

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

# Whom a request counts for.


@dataclass(frozen=True, slots=True)
class RequestSender:
    """The sender of a request.

    Attributes:
        name: the unit that is limited: the digest of a key, the visitor of a page, or an address.
        secret: the key that was shown.
        known: True when the key was accepted before, or the visitor is signed in.
    """

    name: str
    secret: str | None
    known: bool


class RequestSources:
    """Finds the unit that a request counts for: its key once that was accepted, else its address.

    Keys are known by the digest of their secret: no file is read for a request that is refused.

    Args:
        visitor: returns the unit of a session for a request without a key; None: its address.
    """

    def __init__(self, visitor: Callable[[Scope], str | None] = lambda _scope: None) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()
        self._visitor = visitor

    def of(self, scope: Scope) -> RequestSender:
        """Return the sender of a request, as far as its head shows."""
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
        """Pass an answer on, and record whether the key was valid."""
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
            # Other answers may be given before the key is looked at.
            self._known.pop(digest, None)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("latin-1")).hexdigest()


ALIVE: Final = "/healthz"
"""The path that is answered however busy the server is."""
BUSY_RETRY_S: Final = 1
STRANGERS_BYTES: Final = 65_536
"""The largest body that is read before its sender has shown a key."""
_EVENTS: Final = b"text/event-stream"

Refusing = Callable[[MemgraphError, int], Coroutine[Any, Any, None]]
"""Answers with an error and a status."""


class RequestLimits:
    """Enforces the bounds of ``memory.server`` around an application.

    Args:
        max_file_bytes: of an uploaded file (PUT); the application reads it piece by piece.
        authenticate: raises Unauthenticated, InvalidConfig for an invalid key; called in a thread.
        pages: for people, within the application: they sign in, and are refused with a page.
        shared: counts requests with other servers; None: this one counts alone.
        monotonic: seconds.
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
        # Of those whose key is known, and of the others.
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
        """Return a function that yields the body to the application; None: the client is gone."""
        if scope["method"] == "PUT":
            _require_size(scope, self._max_file_bytes)
            return _counted(receive, self._max_file_bytes)
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
        return _given(body, receive)

    async def _is_known(self, scope: Scope, source: RequestSender) -> bool:
        """Return True when the sender is known, after authenticating it if much depends on it."""
        if source.known:
            return True
        small = _size(scope) <= STRANGERS_BYTES
        if small and self._reading[False] < self._most // 2:
            return False
        try:
            await run_sync(self._authenticate, source.secret)
        except Unauthenticated:
            if small and self._pages_of(scope) is not None:
                # Such as the form for signing in: its sender has no key yet.
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
        """Return the pages, if a request is for one of them."""
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
    """Passes an answer on; when none has begun in time, answers with an error and drops the late
    one.

    The work itself is not cancelled: a thread cannot be, and a begun write is finished. Work that
    has not begun is skipped.
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
                # It lasts, and mostly waits.
                self._leave_once()
        await self._send(message)

    def untimed(self) -> None:
        """Remove the time limit; to be called in the event loop."""
        self._timer.cancel()

    def is_wanted(self) -> bool:
        """Return True while somebody waits for the answer."""
        return not self._expired

    async def end(self) -> None:
        """End the answer: the application, or the error in its place, has completed."""
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
        error = RequestTimeout("it took too long to answer; a write may be done all the same")
        self._telling = asyncio.get_running_loop().create_task(self._refuse(error, 504))


def _status(error: MemgraphError) -> int:
    # Here it is the request that is late, elsewhere the answer.
    late = isinstance(error, RequestTimeout)
    return HTTPStatus.REQUEST_TIMEOUT if late else status_of(error)


def _busy() -> ServerBusy:
    return ServerBusy("too many requests wait already; try again", retry_after_s=BUSY_RETRY_S)


def _too_large(limit: int) -> RequestTooLarge:
    return RequestTooLarge(f"a request is {limit:,} bytes at most", limit=limit)


def _require_size(scope: Scope, limit: int) -> None:
    length = header(scope, b"content-length")
    if length is not None and length.isdigit() and int(length) > limit:
        raise _too_large(limit)


def _require_plain_json(body: bytes) -> None:
    """Refuse JSON that two parsers would read differently; what is no JSON passes.

    Raises:
        InvalidInput: it is not UTF-8 (RFC 8259, 8.1), or an object has a field twice.
    """
    if json.detect_encoding(body) not in ("utf-8", "utf-8-sig"):
        raise InvalidInput("JSON must be sent as UTF-8")
    with suppress(json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        json.loads(body, object_pairs_hook=_unique_fields, parse_int=len)


def _unique_fields(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        raise InvalidInput("an object of the JSON names the same field twice")


def _size(scope: Scope) -> float:
    """Return the declared size of the body, bytes; infinite for chunks."""
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


def _given(body: bytes, receive: Receive) -> Receive:
    """Return a receive function for a body that was read, and then for what follows."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Message:
        return waiting.pop() if waiting else await receive()

    return given


async def _gone() -> Message:
    """Return the disconnect message for a request that is refused."""
    return {"type": "http.disconnect"}


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
    if isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", b"Bearer"))
    await refuse(send, error, status, headers)


MOST_KNOWN: Final = 10_000
BURST_S: Final = 2.0
"""The burst, in seconds of the rate."""


class TokenBuckets:
    """A token bucket for each source, with a capacity of ``BURST_S`` times the rate.

    The generic cell rate algorithm (ITU-T I.371): for each source only the time is kept at which
    its bucket will be full again. For use in one thread.

    Args:
        per_second: requests of one source.
    """

    def __init__(self, per_second: float) -> None:
        self._interval_s = 1 / per_second
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def take(self, source: str, now: float) -> float:
        """Take one request; return the seconds to wait when there is none, else 0."""
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
"""The largest lot in seconds of the rate; the pause before an empty bucket is asked again."""
PATIENCE_S: Final = 0.5
"""The longest time that a request waits for a lot, seconds."""
LOOKUPS: Final = 4
"""Lookups at the same time for known sources, and as many for others."""


class Lot:
    """The tokens of one source that this process has taken from a shared bucket.

    The next lot is twice as large if this one lasted less than ``LOT_S``, else half as large. So
    frequent requests need few lookups, and rare requests to many servers take few tokens. Unused
    tokens are kept: if they lapsed, a client below the rate would be refused.

    Args:
        largest: the largest lot.
    """

    def __init__(self, largest: int) -> None:
        self.lock = Lock()
        self._largest = largest
        self._size = 1
        self._tokens = 0
        self._filled_at = self._retry_at = -math.inf

    def take(self, now: float) -> float | None:
        """Take a token; return 0, the seconds to wait for one, or None: a lookup is due."""
        if self._tokens:
            self._tokens -= 1
            return 0.0
        return self._retry_at - now if now < self._retry_at else None

    def next_size(self, now: float) -> int:
        """Return how many tokens to take from the bucket; 0: no lookup is due."""
        if self._tokens or now < self._retry_at:
            return 0
        is_quick = now - self._filled_at < LOT_S
        self._size = min(2 * self._size, self._largest) if is_quick else max(self._size // 2, 1)
        return self._size

    def fill(self, tokens: int, wait_s: float, now: float) -> None:
        """Add tokens from the bucket, which has another one after ``wait_s`` seconds."""
        self._tokens, self._filled_at = tokens, now
        if tokens < self._size:
            self._retry_at = now + max(wait_s, LOT_S)


class SharedBuckets:
    """Counts requests together with the other servers of a database. For one event loop.

    Args:
        per_second: requests of one source.
        monotonic: seconds.
    """

    def __init__(
        self, shared: SharedRates, per_second: float, monotonic: Callable[[], float]
    ) -> None:
        self._shared = shared
        self._limit = RateLimit("requests", per_second, BURST_S)
        self._monotonic = monotonic
        self._lots: OrderedDict[str, Lot] = OrderedDict()
        # Strangers of many addresses are not to hold up known keys.
        self._turns = {known: CapacityLimiter(LOOKUPS) for known in (True, False)}
        self._threads = CapacityLimiter(math.inf)

    async def take(self, source: RequestSender) -> float:
        """Take one request; return the seconds to wait when there is none, else 0.

        Returns 0 while the database is away: the bucket of this process has admitted the request.
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
        # Others may have filled it, or found the database away, while this one waited.
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
