"""The bounds of requests where they meet, one step of the event loop at a time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from memgraph.config.server import ServerSettings
from memgraph.errors import MemgraphError
from memgraph.surfaces.asgi import AUTHENTICATED, ASGIApp, Message, Pages, Receive, Scope, Send
from memgraph.surfaces.http.limits import RequestLimits, RequestSources

TIMEOUT_S = 0.01


def scope(**more: Any) -> Scope:
    return {"type": "http", "method": "GET", "path": "/v1", "headers": [], **more}


def shown(key: str) -> Scope:
    return scope(headers=[(b"authorization", f"Bearer {key}".encode())], client=("10.0.0.1", 1))


async def nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def test_an_answer_that_comes_with_the_deadline_is_one_answer() -> None:
    async def late(_scope: Scope, _receive: Receive, send: Send) -> None:
        # The deadline passes while nothing else can run; then both are due at once.
        time.sleep(2 * TIMEOUT_S)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"late"})

    async def ask() -> list[Message]:
        settings = ServerSettings(request_timeout_s=TIMEOUT_S)
        limits = RequestLimits(late, settings, max_file_bytes=1, authenticate=lambda _secret: None)
        told: list[Message] = []

        async def send(message: Message) -> None:
            told.append(message)

        await limits(scope(), nothing, send)
        return list(told)

    told = asyncio.run(ask())
    assert [each["type"] for each in told] == ["http.response.start", "http.response.body"]
    assert told[0]["status"] == 504


def test_a_page_that_takes_too_long_is_answered_with_a_page() -> None:
    async def late(_scope: Scope, _receive: Receive, send: Send) -> None:
        await over.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    def refusal(_scope: Scope, error: MemgraphError, status: int) -> ASGIApp:
        async def page(_scope: Scope, _receive: Receive, send: Send) -> None:
            await send({"type": "page", "code": error.code, "status": status})
            over.set()

        return page

    async def ask(path: str) -> list[Message]:
        told: list[Message] = []

        async def send(message: Message) -> None:
            told.append(message)
            over.set()

        pages = Pages("/console", late, lambda _scope: None, refusal)
        settings = ServerSettings(request_timeout_s=TIMEOUT_S)
        limits = RequestLimits(
            late, settings, max_file_bytes=1, authenticate=lambda _secret: None, pages=pages
        )
        await limits(scope(path=path), nothing, send)
        return told

    for path in ("/console", "/console/orc-1/"):
        over = asyncio.Event()
        assert asyncio.run(ask(path)) == [
            {"type": "page", "code": "request.timeout", "status": 504}
        ]
    over = asyncio.Event()
    assert asyncio.run(ask("/consoles"))[0]["status"] == 504


def answer(sources: RequestSources, asked: Scope, status: int) -> None:
    async def send(_message: Message) -> None:
        return

    learning = sources.learning(asked, sources.of(asked), send)
    asyncio.run(learning({"type": "http.response.start", "status": status}))  # type: ignore[arg-type] # every Send of ours is a coroutine function


def test_a_key_is_known_until_it_is_refused() -> None:
    sources = RequestSources()
    assert sources.of(shown("k")).name == "10.0.0.1"
    answer(sources, shown("k") | {AUTHENTICATED: True}, 404)
    known = sources.of(shown("  k "))
    assert known.known
    assert known.name not in ("10.0.0.1", "k")
    answer(sources, shown("k"), 504)
    assert sources.of(shown("k")) == known.__class__(known.name, "k", known=True)
    answer(sources, shown("k"), 401)
    assert not sources.of(shown("k")).known


def test_an_address_is_no_digest_of_a_key() -> None:
    sources = RequestSources()
    answer(sources, shown("k"), 200)
    assert sources.of(shown("k")).name == "10.0.0.1", "nobody found it to be a key"
    assert sources.of(scope(client=None)).name == ""
