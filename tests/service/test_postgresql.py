"""An orchestrator on a server: the setting, what is refused, processes, a server that restarts."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memgraph import MemoryService, Orchestrator
from memgraph.errors import (
    DatabaseMissing,
    DatabaseReplaced,
    DatabaseUnreachable,
    EngineLacking,
    InvalidConfig,
)
from memgraph.operations.maintenance import maintenance
from memgraph.surfaces.cli import main
from tests.postgres_servers import drop_schemas

SECRET = "hunter-two"


@pytest.fixture
def url(postgres_url: str) -> Iterator[str]:
    yield postgres_url
    drop_schemas(postgres_url)


@pytest.fixture
def served(tmp_path: Path, url: str) -> Iterator[MemoryService]:
    with MemoryService(
        tmp_path / "root", config={"memory.storage.url": url}, environ={}, background=False
    ) as made:
        yield made


@pytest.fixture
def orc(served: MemoryService) -> Orchestrator:
    return served.orchestrator("orc-1", create=True)


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    from memgraph.store import postgres

    connection = postgres.connect(postgres.checked_url(url))
    try:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def test_no_file_is_made(served: MemoryService, orc: Orchestrator) -> None:
    orc.remember("The gate closes at nine.")
    assert not served.paths("orc-1").database.exists()
    assert orc.recall("gate").items
    assert served.health("orc-1")["status"] == "ready"
    report = orc.verify()
    assert report.findings == []


@pytest.mark.parametrize(
    "given",
    [
        f"postgresql+psycopg://me:{SECRET}@host/db",
        f"postgresql://me@host/db?password={SECRET}",
        f"mysql://{SECRET}@host/db",
    ],
)
def test_a_url_with_a_password_is_refused_and_not_repeated(tmp_path: Path, given: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        MemoryService(tmp_path, config={"memory.storage.url": given}, environ={}).settings()
    assert SECRET not in str(caught.value.as_dict())
    environ = {"MEMGRAPH_STORAGE_URL": given}
    with pytest.raises(InvalidConfig) as caught:
        MemoryService(tmp_path, environ=environ).settings()
    assert SECRET not in str(caught.value.as_dict())
    assert "MEMGRAPH_STORAGE_URL" in str(caught.value)


def test_the_short_variable_names_the_server(tmp_path: Path, url: str) -> None:
    with MemoryService(tmp_path, environ={"MEMGRAPH_STORAGE_URL": url}) as service:
        assert service.settings().memory.storage.url == url


def test_a_file_is_not_passed_over(tmp_path: Path, url: str) -> None:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        service.create("orc-1")
    environ = {"MEMGRAPH_STORAGE_URL": url}
    with (
        MemoryService(tmp_path, environ=environ, background=False) as service,
        pytest.raises(InvalidConfig, match="lies in a file"),
    ):
        service.orchestrator("orc-1").stats()


def test_one_in_a_file_and_one_on_a_server_under_one_root(tmp_path: Path, url: str) -> None:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        service.create("small")
        folder = service.paths("large").memory
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(f"[memory.storage]\nurl = {json.dumps(url)}\n")
        service.create("large")
        for name in ("small", "large"):
            service.orchestrator(name).remember(f"This is the {name} one.")
        assert service.orchestrators() == ["large", "small"]
        assert service.paths("small").database.exists()
        assert not service.paths("large").database.exists()
    assert execute(url, "SELECT content FROM memgraph_large.memories") == [
        ("This is the large one.",)
    ]


def test_what_is_not_there_yet_is_refused(
    served: MemoryService, orc: Orchestrator, tmp_path: Path
) -> None:
    memory_id = orc.remember("The gate closes at nine.")
    with pytest.raises(EngineLacking, match="pg_dump"):
        orc.backup(tmp_path / "backup.db")
    with pytest.raises(EngineLacking):
        orc.erase(memory_id=memory_id, reason="asked for", dry_run=False)
    assert orc.get(memory_id).content
    (tmp_path / "backup.db").write_bytes(b"something")
    with pytest.raises(EngineLacking):
        maintenance.restore(
            served.paths("orc-1"),
            tmp_path / "backup.db",
            clock=served.clock,
            actor="user",
            reason="lost",
            url=served.settings().memory.storage.url,
        )


def test_it_is_moved_by_an_export(served: MemoryService, orc: Orchestrator, tmp_path: Path) -> None:
    old = orc.remember("The gate closes at nine.")
    orc.correct(old, "The gate closes at ten.", reason="summer")
    lines = b"".join(orc.export_lines())
    with MemoryService(tmp_path / "files", environ={}, background=False) as files:
        files.import_lines("orc-1", io.BytesIO(lines))
        assert files.orchestrator("orc-1").get(old) == orc.get(old).model_copy()
        again = b"".join(files.orchestrator("orc-1").export_lines())
    served.import_lines("orc-2", io.BytesIO(again))
    assert served.orchestrator("orc-2").get(old).content == "The gate closes at nine."
    assert served.orchestrator("orc-2").verify().findings == []


def test_a_schema_that_was_dropped_or_made_anew_is_noticed(
    served: MemoryService, orc: Orchestrator, url: str
) -> None:
    orc.remember("The gate closes at nine.")
    with served.opened("orc-1") as opened:
        execute(url, 'ALTER SCHEMA "memgraph_orc-1" RENAME TO memgraph_aside')
        with pytest.raises(DatabaseMissing), opened.database.read():
            pass
        from memgraph.store.engine import store_of

        store_of(served.paths("orc-1"), url).create(dimensions=256, now_ms=1)
        with pytest.raises(DatabaseReplaced), opened.database.write():
            pass


def test_connections_that_broke_are_replaced(
    served: MemoryService, orc: Orchestrator, url: str
) -> None:
    memory_id = orc.remember("The gate closes at nine.")
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'memgraph' AND pid <> pg_backend_pid()"
    )
    for _ in range(3):
        execute(url, end)
        assert orc.get(memory_id).content
        execute(url, end)
        orc.confirm(memory_id)
    with served.opened("orc-1") as opened:

        def write() -> None:
            with opened.database.write() as transaction:
                execute(url, end)
                transaction.driver.execute("SELECT 1")

        with pytest.raises(DatabaseUnreachable):
            write()
        with opened.database.read() as snapshot:
            assert snapshot.driver.execute("SELECT 1").fetchall() == [(1,)]


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    address = f"postgresql://{SECRET}@/db?host={tmp_path}"
    with MemoryService(tmp_path, config={"memory.storage.url": address}, environ={}) as service:
        with pytest.raises(DatabaseUnreachable) as caught:
            service.create("orc-1")
        assert SECRET not in str(caught.value.as_dict())


WRITES = """
import sys
from memgraph import MemoryService
with MemoryService(sys.argv[1], background=False) as service:
    orc = service.orchestrator("orc-1")
    for number in range(15):
        orc.remember(f"Worker {sys.argv[2]} stores number {number}.")
"""


def test_several_processes_write_one_chain(
    served: MemoryService, orc: Orchestrator, tmp_path: Path, url: str
) -> None:
    environ = {**os.environ, "MEMGRAPH_STORAGE_URL": url}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITES, str(tmp_path / "root"), str(number)], env=environ
        )
        for number in range(3)
    ]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    assert orc.stats()["memories"]["kind"] == {"fact": 45}
    report = orc.verify()
    assert report.findings == []
    assert report.checked["journal_entries"] >= 45


def test_the_command_line_works_on_a_server(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMGRAPH_ROOT", str(tmp_path))
    monkeypatch.setenv("MEMGRAPH_STORAGE_URL", url)

    def run(*arguments: str) -> str:
        capsys.readouterr()
        code = main(list(arguments))
        found = capsys.readouterr()
        assert code == 0, found.err
        return found.out

    run("init", "orc-1")
    run("remember", "orc-1", "The gate closes at nine.")
    assert "nine" in run("recall", "orc-1", "gate")
    assert "orc-1" in run("health", "--json")
    run("verify", "orc-1")
    run("db", "upgrade", "orc-1")
    assert "nine" in run("bulletin", "orc-1")
    assert main(["backup", "orc-1", str(tmp_path / "backup.db")]) == 1
    assert "storage.engine_lacking" in capsys.readouterr().err
