"""The bounds of requests where they meet, one step of the event loop at a time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memgraph.config.server import ServerSettings
from memgraph.errors import MemgraphError
from memgraph.surfaces.asgi import Pages
from memgraph.surfaces.http.limits import RequestLimits

TIMEOUT_S = 0.01


def scope(**more: Any) -> Scope:
    return {"type": "http", "method": "GET", "path": "/v1", "headers": [], **more}


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

        pages = Pages("/console", late, lambda _scope: False, refusal)
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
