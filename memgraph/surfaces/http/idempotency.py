"""Idempotency-Key: a request that arrives twice is processed once, with the same answer.

One of those with the same key proceeds; the others wait in the event loop, and hold no thread.
Between processes, and after a crash, the database has the record.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Final

import anyio
from anyio.to_thread import run_sync
from fastapi import Request, Response

from memgraph.errors import AnswerLost, MemgraphError, RequestRefused
from memgraph.log import EventLog
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service.background import BackgroundWork
from memgraph.service.idempotency import (
    CachedAnswer,
    ClaimTaken,
    RequestClaim,
    claim_for_this_request,
)
from memgraph.service.memory_service import MemoryService
from memgraph.store.idempotency import CompletedRequest
from memgraph.store.visibility import View
from memgraph.surfaces.asgi import (
    PROBLEM,
    REQUEST_ID,
    TURN,
    ASGIApp,
    Message,
    Receive,
    Scope,
    Send,
    header,
)
from memgraph.surfaces.http.problems import problem

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"

# Another process writes what it answered within this time; after a crash nobody will.
_PATIENCE_MS: Final = round((BackgroundWork.LATER_S + 1) * 1_000)
_LOOK_EVERY_S: Final = 0.05


class AlreadyAnswered(Exception):  # an answer, no error
    """The request was processed before; this is its answer."""

    def __init__(self, answer: CachedAnswer) -> None:
        super().__init__("answered before")
        self.kept = answer


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The orchestrator that a request writes to, and its sender's view."""

    service: MemoryService
    name: str
    view: View


class KeyedRequest:
    """One request with a key, from its arrival to its answer."""

    def __init__(self, going: MutableMapping[str, anyio.Event], key: str) -> None:
        self.key = key
        self.claim: RequestClaim | None = None
        self._going = going
        self._place = ""
        self._asker: RequestTarget | None = None
        self._done = anyio.Event()

    async def take(self, asker: RequestTarget, claim: RequestClaim) -> None:
        """Let the request proceed under its claim, once no other one with the key is running.

        Raises:
            Replay: it was processed before. KeyReused, AnswerLost: see there.
        """
        claim.at = asker.service.clock.now_ms()
        self._asker, self.claim = asker, claim
        place = f"{asker.name}/{claim.key_sha256}"
        while (other := self._going.get(place)) is not None:
            await other.wait()
        self._going[place], self._place = self._done, place
        result = await self.find()
        if result is not None:
            raise AlreadyAnswered(result)
        claim_for_this_request(claim)

    async def find(self) -> CachedAnswer | None:
        """Return the earlier answer to the request. Raises KeyReused, AnswerLost."""
        if self._asker is None or self.claim is None:
            return None
        waited_ms = 0.0
        while True:
            result = await run_sync(_find, self._asker, self.claim)
            if result is None or isinstance(result, CachedAnswer):
                return result
            age_ms = max(self._asker.service.clock.now_ms() - result.created_at, waited_ms)
            if age_ms >= _PATIENCE_MS:
                raise AnswerLost(
                    "this was processed before, but its answer was lost; check what it wrote",
                    memory_ids=list(result.memory_ids),
                )
            await anyio.sleep(_LOOK_EVERY_S)
            waited_ms += _LOOK_EVERY_S * 1_000

    async def keep(self, status: int, body: bytes) -> None:
        """Keep the answer. A request that was refused and wrote nothing may be repeated.

        Raises:
            MemgraphError: it cannot be kept.
        """
        if self._asker is None or self.claim is None or status >= 500:
            return
        if self.claim.made or status < 400:
            await run_sync(_keep, self._asker, self.claim, status, body.decode())

    def end(self) -> None:
        """Let the waiting requests proceed."""
        if self._place and self._going.get(self._place) is self._done:
            del self._going[self._place]
        self._done.set()


class IdempotentRequests:
    """Orders POST requests with a key, and keeps their answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._going: dict[str, anyio.Event] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = None
        if scope["type"] == "http" and scope["method"] == "POST":
            key = header(scope, b"idempotency-key")
        if key is None:
            await self._app(scope, receive, send)
            return
        turn = scope[TURN] = KeyedRequest(self._going, key)
        lines: list[Message] = []

        async def hold(message: Message) -> None:
            lines.append(message)

        try:
            await self._app(scope, receive, hold)
            status = lines[0]["status"] if lines else 500
            await turn.keep(status, b"".join(item.get("body", b"") for item in lines[1:]))
        except MemgraphError as error:
            # The write is done, and answered: a retry gets AnswerLost.
            _log_lost(scope, error)
        finally:
            turn.end()
        for message in lines:
            await send(message)


async def take_turn(request: Request, service: MemoryService, handle: Orchestrator) -> None:
    """Let a write with a key proceed, or raise what ends it; one without a key always proceeds."""
    turn: KeyedRequest | None = request.scope.get(TURN)
    if turn is None:
        return
    claim = RequestClaim.of(
        handle.actor,
        turn.key,
        request.method.encode(),
        request.url.path.encode(),
        "&".join(sorted(request.url.query.split("&"))).encode(),
        await request.body(),
    )
    await turn.take(RequestTarget(service, handle.name, View(handle.viewer)), claim)


async def on_replay(_request: Request, error: Exception) -> Response:
    """Handle requests that were processed before."""
    if not isinstance(error, AlreadyAnswered):
        raise error
    return _replayed(error.kept)


async def on_taken(request: Request, error: Exception) -> Response:
    """Handle requests that another process ran at the same time."""
    if not isinstance(error, ClaimTaken):
        raise error
    turn: KeyedRequest = request.scope[TURN]
    try:
        stored = await turn.find()
    except RequestRefused as refused:
        return problem(refused)
    if stored is None:
        return problem(AnswerLost("another request with this key was first", memory_ids=[]))
    return _replayed(stored)


def _replayed(stored: CachedAnswer) -> Response:
    media_type = PROBLEM if stored.status >= 400 else "application/json"
    answer = Response(stored.text, stored.status, media_type=media_type if stored.text else None)
    answer.headers[REPLAYED] = "true"
    return answer


def _log_lost(scope: Scope, error: MemgraphError) -> None:
    log: EventLog | None = getattr(scope["app"].state, "log", None)
    if log is not None:
        log.failure("answer.lost", error, request_id=scope.get(REQUEST_ID))


def _find(asker: RequestTarget, claim: RequestClaim) -> CachedAnswer | CompletedRequest | None:
    with asker.service.opened(asker.name) as opened:
        return opened.answers.find(claim, asker.view)


def _keep(asker: RequestTarget, claim: RequestClaim, status: int, text: str) -> None:
    with asker.service.opened(asker.name) as opened:
        many = opened.answers.keep(claim, status, text)
        if not asker.service.embeds_in_background:
            try:
                opened.answers.flush()
            except MemgraphError as error:
                # It is kept for the next try, and the write is done.
                opened.log.failure("answers.flush", error)
        elif many:
            opened.background.wake()
        else:
            opened.background.wake_later()
