"""Limits that the servers of one database count together."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from console_browsing import Browser
from processes import wait_until
from server_processes import ServerProcess, server_process
from serving_worlds import Served

from memgraph import MemoryService
from memgraph.clock import SystemClock
from memgraph.service.access.keys import KeyStore
from memgraph.surfaces.http.limits import BURST_S, LOT_S
from tests.postgres_servers import drop_schemas, own_server

NAMES = "/v1/orchestrators"
MEMORIES = "/v1/orchestrators/orc-1/memories"


@pytest.fixture
def url(postgres_url: str) -> Iterator[str]:
    yield postgres_url
    drop_schemas(postgres_url)


@contextmanager
def two_servers(
    folder: Path, url: str, *, keyless: bool = False, **limits: int
) -> Iterator[tuple[list[ServerProcess], MemoryService, KeyStore]]:
    """Two processes of other machines, and a service and the keys of a third."""
    environ = {"MEMGRAPH_STORAGE_URL": url}
    variables = {f"MEMGRAPH_MEMORY__SERVER__{name.upper()}": str(n) for name, n in limits.items()}
    with (
        MemoryService(folder / "here", environ=environ, background=False) as service,
        ExitStack() as stack,
    ):
        service.create("orc-1")
        servers = [
            stack.enter_context(
                server_process(folder / name, keyless=keyless, **environ, **variables)
            )
            for name in "ab"
        ]
        yield servers, service, KeyStore(folder / "here", SystemClock(), url=url)


def new_key(keys: KeyStore) -> dict[str, str]:
    """The header that shows a new key."""
    fields = {"name": "app", "orchestrators": ["orc-1"], "permissions": ["read"]}
    return {"authorization": f"Bearer {keys.create(fields).secret}"}


class Asker(threading.Thread):
    """Asks one server as often as it can, until stopped."""

    def __init__(self, server: ServerProcess, headers: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self.server, self.headers = server, headers
        self.admitted: list[float] = []
        self.refused: list[float] = []
        self.statuses: set[int] = set()
        self.stopping = threading.Event()

    def run(self) -> None:
        with self.server.client() as client:
            while not self.stopping.is_set():
                status = client.get(NAMES, headers=self.headers).status_code
                self.statuses.add(status)
                (self.refused if status == 429 else self.admitted).append(time.monotonic())


def test_two_servers_admit_one_rate(tmp_path: Path, url: str) -> None:
    rate, lot = 16, 16 * LOT_S
    with two_servers(tmp_path, url, requests_per_second=rate) as (servers, _, keys):
        headers = new_key(keys)
        for server in servers:
            # A key counts for itself once it is known.
            with server.client() as client:
                assert client.get(NAMES, headers=headers).status_code == 200
        began = time.monotonic()
        askers = [Asker(server, headers) for server in servers for _ in range(2)]
        for asker in askers:
            asker.start()
        time.sleep(3)
        for asker in askers:
            asker.stopping.set()
        for asker in askers:
            asker.join(30)
        lasted = time.monotonic() - began
    assert {status for asker in askers for status in asker.statuses} == {200, 429}
    by_server = [sum(len(asker.admitted) for asker in askers[at : at + 2]) for at in (0, 2)]
    admitted = sum(by_server)
    # Alone each would have admitted as many as both together.
    assert admitted <= rate * (lasted + BURST_S) + len(servers) * lot
    assert admitted >= rate * (3 + BURST_S) * 0.7
    assert min(by_server) > 0


def test_an_address_signs_in_no_more_often_with_two_servers(tmp_path: Path, url: str) -> None:
    with two_servers(tmp_path, url, console__sign_ins_per_minute=2) as (servers, service, keys):
        statuses = []
        for server in (*servers, *servers):
            with Browser(Served(server.url, service, keys)) as browser:
                statuses.append(browser.sign_in("mgk_wrong").status_code)
    assert statuses == [401, 401, 429, 429]


def test_without_the_database_each_server_counts_alone(tmp_path: Path) -> None:
    rate = 2
    with (
        own_server(tmp_path / "postgres") as (url, pg_ctl),
        two_servers(tmp_path, url, keyless=True, requests_per_second=rate) as (servers, *_),
        ExitStack() as stack,
    ):
        owner = Path(str(sa.make_url(url).query["host"])).stat().st_uid
        clients = [stack.enter_context(server.client()) for server in servers]

        def statuses(number: int, times: int) -> list[int]:
            return [clients[number].get("/").status_code for _ in range(times)]

        # One uses up what both have.
        assert statuses(0, 6)[-1] == 429
        assert statuses(1, 1) == [429]
        run: dict[str, Any] = {"user": owner, "cwd": "/", "check": True}
        subprocess.run([*pg_ctl, "stop"], **run, stdout=subprocess.DEVNULL)
        time.sleep(BURST_S)
        for number in range(2):
            alone = statuses(number, 12)
            assert alone[:3] == [307] * 3
            assert 429 in alone
        for server in servers:
            assert wait_until(lambda log=server.log: bool(counted(log())))  # type: ignore[misc] # of a lambda with a default
            assert counted(server.log()) == [(False, "storage.unreachable")]
        subprocess.run([*pg_ctl, "restart"], **run, stdout=subprocess.DEVNULL)
        for number, server in enumerate(servers):
            assert wait_until(lambda n=number, s=server: _is_back(clients[n], s))  # type: ignore[misc] # as above


def counted(lines: list[dict[str, Any]]) -> list[tuple[bool, str | None]]:
    """What a log says of how rates are counted."""
    return [(line["shared"], line.get("code")) for line in lines if line["event"] == "rates"]


def _is_back(client: Any, server: ServerProcess) -> bool:
    client.get("/")
    return counted(server.log())[-1] == (True, None)
