"""Idempotency-Key: process a request that arrives twice only once, with the same response.

One request with a key proceeds. The others with this key wait in the event loop, without a thread.
Between processes, and after a crash, the record in the database decides.
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

# Another process stores its response within this time. Later it has crashed, and never will.
_PATIENCE_MS: Final = round((BackgroundWork.LATER_S + 1) * 1_000)
_LOOK_EVERY_S: Final = 0.05


class AlreadyAnswered(Exception):  # control flow, not an error
    """The request was processed before; carries the stored response."""

    def __init__(self, answer: CachedAnswer) -> None:
        super().__init__("answered before")
        self.kept = answer


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The orchestrator that a request writes to, and the view of its sender."""

    service: MemoryService
    name: str
    view: View


class KeyedRequest:
    """A request with a key, from its arrival to its response."""

    def __init__(self, going: MutableMapping[str, anyio.Event], key: str) -> None:
        self.key = key
        self.claim: RequestClaim | None = None
        self._going = going
        self._place = ""
        self._asker: RequestTarget | None = None
        self._done = anyio.Event()

    async def take(self, asker: RequestTarget, claim: RequestClaim) -> None:
        """Wait until no other request with the key is running, then claim the key.

        Raises:
            AlreadyAnswered: the request was processed before.
            KeyReused, AnswerLost: see ``find``.
        """
        claim.at = asker.service.clock.now_ms()
        self._asker, self.claim = asker, claim
        place = f"{asker.name}/{claim.key_sha256}"
        while (running := self._going.get(place)) is not None:
            await running.wait()
        self._going[place], self._place = self._done, place
        result = await self.find()
        if result is not None:
            raise AlreadyAnswered(result)
        claim_for_this_request(claim)

    async def find(self) -> CachedAnswer | None:
        """Return the stored response to the request; None if it was not processed before.

        Raises:
            KeyReused: the key was used for another request.
            AnswerLost: the request was processed, but its response was not stored.
        """
        if self._asker is None or self.claim is None:
            return None
        waited_ms = 0.0
        while True:
            result = await run_sync(_stored_answer, self._asker, self.claim)
            if result is None or isinstance(result, CachedAnswer):
                return result
            age_ms = max(self._asker.service.clock.now_ms() - result.created_at, waited_ms)
            if age_ms >= _PATIENCE_MS:
                raise AnswerLost(
                    "the request was processed before, but its response was lost; check what it"
                    " wrote",
                    memory_ids=list(result.memory_ids),
                )
            await anyio.sleep(_LOOK_EVERY_S)
            waited_ms += _LOOK_EVERY_S * 1_000

    async def keep(self, status: int, body: bytes) -> None:
        """Store the response, unless it is a server error or a refusal that wrote nothing.

        A request that was refused and wrote nothing may be repeated.

        Raises:
            MemgraphError: the response cannot be stored.
        """
        if self._asker is None or self.claim is None or status >= 500:
            return
        if self.claim.made or status < 400:
            await run_sync(_store_answer, self._asker, self.claim, status, body.decode())

    def end(self) -> None:
        """Let the requests that wait for this one proceed."""
        if self._place and self._going.get(self._place) is self._done:
            del self._going[self._place]
        self._done.set()


class IdempotentRequests:
    """ASGI middleware that serialises POST requests with the same key, and stores responses."""

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
        messages: list[Message] = []

        async def hold(message: Message) -> None:
            messages.append(message)

        try:
            await self._app(scope, receive, hold)
            status = messages[0]["status"] if messages else 500
            await turn.keep(status, b"".join(item.get("body", b"") for item in messages[1:]))
        except MemgraphError as error:
            # The write is done, so its response is sent. A retry will get AnswerLost.
            _log_lost(scope, error)
        finally:
            turn.end()
        for message in messages:
            await send(message)


async def take_turn(request: Request, service: MemoryService, handle: Orchestrator) -> None:
    """Wait for the turn of a write with a key, see ``KeyedRequest.take``; return without a key."""
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
    """Answer a request that was processed before with its stored response."""
    if not isinstance(error, AlreadyAnswered):
        raise error
    return _replay_response(error.kept)


async def on_taken(request: Request, error: Exception) -> Response:
    """Answer a request that another process ran at the same time, with its response if stored."""
    if not isinstance(error, ClaimTaken):
        raise error
    turn: KeyedRequest = request.scope[TURN]
    try:
        stored = await turn.find()
    except RequestRefused as refused:
        return problem(refused)
    if stored is None:
        return problem(AnswerLost("another request with this key came first", memory_ids=[]))
    return _replay_response(stored)


def _replay_response(stored: CachedAnswer) -> Response:
    media_type = PROBLEM if stored.status >= 400 else "application/json"
    answer = Response(stored.text, stored.status, media_type=media_type if stored.text else None)
    answer.headers[REPLAYED] = "true"
    return answer


def _log_lost(scope: Scope, error: MemgraphError) -> None:
    log: EventLog | None = getattr(scope["app"].state, "log", None)
    if log is not None:
        log.failure("answer.lost", error, request_id=scope.get(REQUEST_ID))


def _stored_answer(
    asker: RequestTarget, claim: RequestClaim
) -> CachedAnswer | CompletedRequest | None:
    with asker.service.opened(asker.name) as opened:
        return opened.answers.find(claim, asker.view)


def _store_answer(asker: RequestTarget, claim: RequestClaim, status: int, text: str) -> None:
    with asker.service.opened(asker.name) as opened:
        many = opened.answers.keep(claim, status, text)
        if not asker.service.embeds_in_background:
            try:
                opened.answers.flush()
            except MemgraphError as error:
                # The response stays queued for the next flush, and the write is done.
                opened.log.failure("answers.flush", error)
        elif many:
            opened.background.wake()
        else:
            opened.background.wake_later()
