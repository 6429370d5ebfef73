"""Clients that ask a server at the same time, without pauses or at a pace of their own."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx

from benchmarks.load.server import Server, Taken

LOOK_S = 0.25
TIMEOUT_S = 60.0


class Asked(NamedTuple):
    """One request: its kind as the table tells it, and how it is sent."""

    kind: str
    method: str
    path: str
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked.

    Attributes:
        rate: requests a second of all clients together; None: each asks anew as soon as it is
            answered.
    """

    clients: int
    seconds: float
    rate: float | None


@dataclass(slots=True)
class Outcome:
    """What came of it.

    Attributes:
        taken: seconds of each answered request by kind; at a pace, from when it was due.
        errors: how often each problem came, by its code or the name of what broke.
        acknowledged: (path of the request, memory id) of every write that was answered with one.
    """

    taken: dict[str, list[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    acknowledged: list[tuple[str, str]] = field(default_factory=list)
    machine: Taken = field(default_factory=Taken)
    seconds: float = 0.0
    cpu_s: float = 0.0


def run(server: Server, key: str, load: Load, ask: Callable[[], Asked]) -> Outcome:
    """Put a load on a server; ``ask`` gives the next request of whichever client is free."""
    return asyncio.run(_run(server, key, load, ask))


def run_each(
    servers: Sequence[Server], key: str, load: Load, ask: Callable[[], Asked]
) -> list[Outcome]:
    """Put the load on each of some servers at the same time."""

    async def every() -> list[Outcome]:
        return await asyncio.gather(*(_run(server, key, load, ask) for server in servers))

    return asyncio.run(every())


def run_until_killed(server: Server, key: str, load: Load, ask: Callable[[], Asked]) -> Outcome:
    """As ``run``, and the server is killed while all are at work; what breaks then is no error."""

    async def both() -> Outcome:
        running = asyncio.create_task(_run(server, key, load, ask))
        await asyncio.sleep(load.seconds / 2)
        await asyncio.to_thread(server.kill)
        return await running

    return asyncio.run(both())


async def _run(server: Server, key: str, load: Load, ask: Callable[[], Asked]) -> Outcome:
    outcome = Outcome()
    outcome.machine.see(server.pid)
    cpu, start = outcome.machine.cpu_s, time.perf_counter()
    limits = httpx.Limits(max_connections=load.clients, max_keepalive_connections=load.clients)
    async with httpx.AsyncClient(
        base_url=server.url,
        headers={"Authorization": f"Bearer {key}"},
        timeout=TIMEOUT_S,
        limits=limits,
        trust_env=False,
    ) as http:
        looking = asyncio.create_task(_look(server, outcome.machine))
        await asyncio.gather(
            *(_client(http, load, number, start, ask, outcome) for number in range(load.clients))
        )
        looking.cancel()
    outcome.machine.see(server.pid)
    outcome.seconds = time.perf_counter() - start
    outcome.cpu_s = outcome.machine.cpu_s - cpu
    return outcome


async def _client(
    http: httpx.AsyncClient,
    load: Load,
    number: int,
    start: float,
    ask: Callable[[], Asked],
    outcome: Outcome,
) -> None:
    end = start + load.seconds
    step = 0.0 if load.rate is None else load.clients / load.rate
    due = start + step * number / load.clients
    while due < end:
        now = time.perf_counter()
        if due > now:
            await asyncio.sleep(due - now)
        if not await _one(http, ask(), due, outcome):
            # A server that is gone is not asked a thousand times a second.
            await asyncio.sleep(LOOK_S)
        due = time.perf_counter() if load.rate is None else due + step


async def _one(http: httpx.AsyncClient, asked: Asked, due: float, outcome: Outcome) -> bool:
    try:
        answer = await http.request(asked.method, asked.path, json=asked.body)
    except httpx.TransportError as error:
        outcome.errors[type(error).__name__] += 1
        return False
    took = time.perf_counter() - due
    if answer.is_error:
        outcome.errors[_code(answer)] += 1
        return True
    outcome.taken.setdefault(asked.kind, []).append(took)
    if answer.status_code == httpx.codes.CREATED:
        outcome.acknowledged.append((asked.path, answer.json()["memory_id"]))
    return True


def _code(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["code"])
    except (ValueError, KeyError):
        return str(answer.status_code)


async def _look(server: Server, machine: Taken) -> None:
    while True:
        machine.see(server.pid)
        await asyncio.sleep(LOOK_S)
