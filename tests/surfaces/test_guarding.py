"""Which names in the Host header are answered."""

from __future__ import annotations

import anyio
from starlette.types import Message, Receive, Scope, Send

from memgraph.surfaces.asgi import HostCheck


def status_of(host: str, allowed: str) -> int:
    told: list[Message] = []

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Message:
        raise AssertionError("nothing of the body is read")

    async def send(message: Message) -> None:
        told.append(message)

    scope = {"type": "http", "method": "GET", "headers": [(b"host", host.encode())]}
    anyio.run(HostCheck(app, hosts=[allowed], origins=()), scope, receive, send)
    return told[0]["status"]


def test_a_host_is_known_by_its_name_however_it_is_written() -> None:
    for allowed, host in (
        ("memory.example", "Memory.Example:8420"),
        ("Memory.Example", "memory.example"),
        ("memory.example:443", "memory.example"),
        ("memory.example.", "memory.example"),
        ("[2001:db8::1]", "[2001:db8::1]:8420"),
        ("2001:db8::1", "[2001:db8::1]"),
        ("other.example", "[::1]:8420"),
        ("other.example", "LOCALHOST"),
    ):
        assert status_of(host, allowed) == 200, host


def test_no_other_host_is_answered() -> None:
    for host in (
        *("", "evil.example", "memory.example.evil.example", "127.0.0.1.evil.example"),
        *("[", "[::2]", "[::1].evil.example", "[::1]evil.example", "[::1]:80.evil.example"),
        *("127.0.0.1:1x", "127.0.0.1:evil.example", "localhost:80:80", "localhost:123456"),
        *("evil.example@localhost", "localhost@evil.example", "localhost/", "localhost evil"),
        *("localhost..", "localhost:80.", "localhost,evil.example", "::1", "[::1"),
    ):
        assert status_of(host, "memory.example") == 421, host
