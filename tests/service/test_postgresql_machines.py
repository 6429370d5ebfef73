"""Servers of several machines on one database: each has a folder of its own."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

import httpx
import psycopg
import pytest
import sqlalchemy as sa
from processes import wait_until
from server_processes import ServerProcess, server_process

from memgraph import MemoryService
from memgraph.audit import anchor
from memgraph.clock import FixedClock, SystemClock
from memgraph.errors import OrchestratorMissing, StorageError, Unauthenticated
from memgraph.service import worker as worker_module
from memgraph.service.access.keys import KeyStore
from memgraph.service.worker import Worker
from tests.postgres_servers import own_server

PROMPT_S = 30.0
"""Half of the time after which a worker looks by itself here."""
MEMORIES = "/v1/orchestrators/orc-1/memories"


def machine(folder: Path, url: str) -> MemoryService:
    return MemoryService(folder, environ={"MEMGRAPH_MEMORY__STORAGE__URL": url}, background=False)


def test_another_machine_adopts_what_is_on_the_server(tmp_path: Path, url: str) -> None:
    long_name = "o" * 64
    with machine(tmp_path / "a", url) as first, machine(tmp_path / "b", url) as second:
        memory_id = first.orchestrator("orc-1", create=True).remember("The gate closes at nine.")
        first.create(long_name)
        assert second.orchestrators() == first.orchestrators() == [long_name, "orc-1"]
        assert second.orchestrator("orc-1").get(memory_id).content == "The gate closes at nine."
        assert second.health("orc-1") == {**first.health("orc-1")}
        # Its anchor holds what it saw first, and goes on with what it writes itself.
        file = second.paths("orc-1").database.with_name("journal.anchor")
        adopted = anchor.read(file)
        assert isinstance(adopted, anchor.JournalHead)
        assert adopted.seq > 0
        second.orchestrator("orc-1").remember("The gate opens at six.")
        written = anchor.read(file)
        assert isinstance(written, anchor.JournalHead)
        assert written.seq > adopted.seq
        assert first.orchestrator("orc-1").verify().findings == []
        with pytest.raises(OrchestratorMissing):
            second.orchestrator("orc-2")
        assert not second.paths("orc-2").memory.exists()
    with machine(tmp_path / "c", url) as third:
        assert third.orchestrator("orc-1", create=True).recall("gate").items
        assert third.health("orc-1")["degraded"] == []


def test_schemas_of_others_are_no_orchestrators(tmp_path: Path, url: str) -> None:
    with machine(tmp_path / "a", url) as first:
        first.create("orc-1")
    names = ("memgraph_../up", "memgraph_x~y", "memgraph_x~made")
    server = sa.make_url(url)
    connection = psycopg.connect(host=server.query["host"], user="postgres", dbname=server.database)
    with connection:
        for name in names:
            connection.execute(f'CREATE SCHEMA "{name}"')
            connection.execute(f'CREATE TABLE "{name}".events (seq bigint)')
        connection.execute('CREATE TABLE "memgraph_x~made".memory_metadata (key text, value text)')
    connection.close()
    placed = {"memory.storage.placement": [f"orc-*={url}"]}
    for config, environ in (({}, {"MEMGRAPH_MEMORY__STORAGE__URL": url}), (placed, {})):
        with MemoryService(tmp_path / "b", config=config, environ=environ) as second:
            assert second.orchestrators() == ["orc-1"]
            second.stores.watch(url)
            assert second.orchestrators() == ["orc-1"]


def test_a_server_that_cannot_be_watched_is_given_back(tmp_path: Path) -> None:
    from memgraph.store.postgres import checked_url
    from memgraph.store.postgres.database import give_back, take_server

    away = "postgresql+psycopg://me@127.0.0.1:1/away"
    with machine(tmp_path / "a", away) as service:
        for _ in range(2):
            with pytest.raises(StorageError):
                service.stores.watch(away)
    server = take_server(checked_url(away))
    users = server.users
    give_back(server)
    assert users == 1


def test_a_server_that_is_away_stops_no_work_elsewhere(tmp_path: Path) -> None:
    away = "team-*=postgresql+psycopg://me@127.0.0.1:1/away"
    with MemoryService(
        tmp_path / "root",
        config={"memory.storage.placement": [away], "memory.embedding.provider": "fake"},
        environ={},
        background=False,
    ) as service:
        orc = service.orchestrator("local-1", create=True)
        orc.remember("The gate closes at nine.")
        assert orc.maintenance.pending_embeddings() == 1
        worker = service.worker()
        worker.once()
        assert orc.maintenance.pending_embeddings() == 0


def test_a_server_that_is_away_is_asked_once_for_all_its_orchestrators(tmp_path: Path) -> None:
    failed: list[str] = []
    asked: list[None] = []

    class Closing(BaseRequestHandler):
        def handle(self) -> None:
            asked.append(None)

    clock = FixedClock()
    with ThreadingTCPServer(("127.0.0.1", 0), Closing) as away:
        threading.Thread(target=away.serve_forever, daemon=True).start()
        url = f"postgresql+psycopg://me@127.0.0.1:{away.server_address[1]}/away"
        url += "?sslmode=disable&gssencmode=disable"
        with MemoryService(tmp_path, config={"memory.storage.url": url}, clock=clock) as service:
            for number in range(5):
                service.paths(f"orc-{number}").make_folders()
            worker = Worker(
                service, failed=lambda name, error: failed.append(f"{name} {error.code}")
            )
            for _ in range(3):
                worker.once()
            # For their names.
            assert len(asked) == 1
            assert failed == [f"orc-{number} storage.unreachable" for number in range(5)]
            clock.advance(ms=31_000)
            worker.once()
            assert len(asked) == 2
        away.shutdown()


def test_a_worker_notices_what_another_machine_writes(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "POLL_S", 60.0)
    ended: list[float] = []
    with machine(tmp_path / "a", url) as service, machine(tmp_path / "b", url) as other:
        orc = service.orchestrator("orc-1", create=True)
        worker = Worker(other, ran=lambda _name, _run: ended.append(time.monotonic()))
        with worker:
            for number in range(2):
                session = f"s-{number}"
                orc.save_episode("The gate closes at nine.", session_id=session, source_role="user")
                orc.sessions.end(session)
                at, before = time.monotonic(), len(ended)
                assert wait_until(lambda before=before: len(ended) > before)
                assert ended[before] - at < PROMPT_S


class Writer(threading.Thread):
    """Stores numbered memories through servers in turn, until stopped.

    What has no answer is sent to the next server.
    """

    def __init__(self, servers: list[ServerProcess], name: str) -> None:
        super().__init__(daemon=True)
        self.servers, self.tag = servers, name
        self.stored: dict[str, str] = {}
        self.errors: set[str] = set()
        self.stopping = threading.Event()

    def run(self) -> None:
        with ExitStack() as stack:
            clients = [stack.enter_context(server.client()) for server in self.servers]
            number = 0
            while not self.stopping.is_set():
                number += 1
                self._store(clients, f"{self.tag} stores the number {number}.")

    def _store(self, clients: list[httpx.Client], content: str) -> None:
        for attempt in range(1_000):
            client = clients[attempt % len(clients)]
            try:
                answer = client.post(MEMORIES, json={"content": content})
            except httpx.TransportError:
                # Killed: whether it was stored nobody knows.
                continue
            if answer.status_code == 201:
                self.stored[content] = answer.json()["memory_id"]
                return
            self.errors.add(answer.json()["code"])
            time.sleep(0.05)


def test_nothing_acknowledged_is_lost_and_nothing_is_done_twice(tmp_path: Path) -> None:
    with own_server(tmp_path / "postgres") as (url, pg_ctl):
        with machine(tmp_path / "a", url) as service:
            service.create("orc-1")
        owner = Path(str(sa.make_url(url).query["host"])).stat().st_uid
        with ExitStack() as stack:
            servers = [
                stack.enter_context(
                    server_process(tmp_path / name, MEMGRAPH_MEMORY__STORAGE__URL=url)
                )
                for name in "ab"
            ]
            writers = [
                Writer(order, f"Writer {n}") for n, order in enumerate((servers, servers[::-1]))
            ]
            for writer in writers:
                writer.start()
            assert wait_until(lambda: all(len(writer.stored) >= 5 for writer in writers))
            servers[0].process.kill()
            assert wait_until(lambda: all(len(writer.stored) >= 10 for writer in writers))
            subprocess.run(
                [*pg_ctl, "restart"], user=owner, cwd="/", check=True, stdout=subprocess.DEVNULL
            )
            before = [len(writer.stored) for writer in writers]
            assert wait_until(
                lambda: all(
                    len(writer.stored) >= count + 5
                    for writer, count in zip(writers, before, strict=True)
                )
            )
            for writer in writers:
                writer.stopping.set()
            for writer in writers:
                writer.join(60)
                assert not writer.is_alive()
        stored = {text: memory for writer in writers for text, memory in writer.stored.items()}
        # What a server cannot answer is one of these, and may be tried again.
        errors = set().union(*(writer.errors for writer in writers))
        assert errors <= {"storage.unreachable", "storage.busy"}
        with machine(tmp_path / "c", url) as service:
            orc = service.orchestrator("orc-1")
            lines = [json.loads(line) for line in orc.exchange.export_lines()]
            kept = [line for line in lines if "stores the number" in str(line.get("content"))]
            assert {line["content"]: line["memory_id"] for line in kept} == stored
            assert len(kept) == len(stored)
            assert orc.verify().findings == []


ROLE = """
    CREATE ROLE "{role}" LOGIN;
    GRANT CREATE ON DATABASE "{database}" TO "{role}"
"""


@pytest.fixture
def roles(postgres_url: str) -> Iterator[dict[str, str]]:
    """URLs of two users of one database, of whom each makes schemas of its own."""
    from memgraph.store import postgres

    made = sa.make_url(postgres_url)
    connection = postgres.connect(postgres.checked_url(postgres_url))
    names = ("memgraph_test_a", "memgraph_test_b")
    try:
        for name in names:
            connection.execute(ROLE.format(role=name, database=made.database))
        yield {name[-1]: made.set(username=name).render_as_string() for name in names}
    finally:
        for name in names:
            connection.execute(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}")
        connection.close()


def test_a_role_of_one_orchestrator_reads_no_other(tmp_path: Path, roles: dict[str, str]) -> None:
    from memgraph.store import postgres

    for name, url in roles.items():
        with machine(tmp_path / name, url) as service:
            service.orchestrator(f"orc-{name}", create=True).remember("The gate closes at nine.")
            assert service.orchestrator(f"orc-{name}").recall("gate").items
    with machine(tmp_path / "stolen", roles["b"]) as service:
        assert service.orchestrators() == ["orc-b"]
        with pytest.raises(StorageError):
            service.orchestrator("orc-a")
    connection = postgres.connect(postgres.checked_url(roles["b"]))
    try:
        for statement in (
            'SELECT content FROM "memgraph_orc-a".memories',
            'CREATE TABLE "memgraph_orc-a".of_b (pk int)',
            'DROP SCHEMA "memgraph_orc-a" CASCADE',
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    finally:
        connection.close()


def test_keys_are_those_of_the_database_and_written_without_the_right_to_make_tables(
    tmp_path: Path, roles: dict[str, str], url: str
) -> None:
    from memgraph.store import postgres

    fields = {"name": "app", "orchestrators": ["orc-1"], "permissions": ["read"]}
    owners = KeyStore(tmp_path / "a", SystemClock(), url=url)
    assert not owners.has_any
    made = owners.create(fields)
    connection = postgres.connect(postgres.checked_url(url))
    database, role = sa.make_url(url).database, sa.make_url(roles["a"]).username
    connection.execute(f'REVOKE CREATE ON DATABASE "{database}" FROM "{role}"')
    connection.execute(f'GRANT USAGE ON SCHEMA memgraph TO "{role}"')
    connection.execute(f'GRANT SELECT, INSERT, UPDATE ON memgraph.keys TO "{role}"')
    connection.close()
    store = KeyStore(tmp_path / "b", SystemClock(), url=roles["a"])
    assert store.find(made.secret).name == "app"
    store.revoke(made.key.key_id)
    for each in (store, owners):
        with pytest.raises(Unauthenticated):
            each.find(made.secret)
    assert not (tmp_path / "a").exists()
    with machine(tmp_path / "a", url) as service:
        assert service.orchestrators() == []
