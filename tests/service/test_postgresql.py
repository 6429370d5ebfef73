"""Orchestrators on a PostgreSQL server: settings, refusals, processes, restarts of the server."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as sqlite
import pytest

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import (
    Conflict,
    DatabaseCorrupt,
    DatabaseMissing,
    DatabaseReplaced,
    DatabaseUnreachable,
    InvalidConfig,
    OrchestratorExists,
    SchemaOutdated,
    StorageError,
)
from memgraph.operations.maintenance import maintenance
from memgraph.operations.maintenance.maintenance import RestoreReport, UpgradeReport
from memgraph.operations.maintenance.move import MoveReport, move
from memgraph.service.readiness import Readiness
from memgraph.store import metadata, migrations
from memgraph.store.engine import store_of
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
        pytest.raises(InvalidConfig, match="stored in a file"),
    ):
        service.orchestrator("orc-1").maintenance.stats()


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


def data_files(url: str, text: str) -> list[str]:
    """Return the files in the server's data folder that contain a text, except its log."""
    execute(url, "CHECKPOINT")
    [(folder,)] = execute(url, "SHOW data_directory")
    root = Path(str(folder))
    return [
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and "pg_wal" not in path.parts and text.encode() in path.read_bytes()
    ]


def test_no_data_file_of_the_server_holds_what_was_erased(
    served: MemoryService, orc: Orchestrator, url: str, tmp_path: Path
) -> None:
    secret = orc.remember("The zwieback tin of Quendolin Xaverskyan is behind the red door.")
    orc.remember("The gate closes at nine.")
    orc.recall("zwieback")
    orc.exchange.backup(tmp_path / "before.db")
    restored(served, tmp_path / "before.db")
    execute(url, 'ANALYZE "memgraph_orc-1".memories')
    assert data_files(url, "zwieback")
    planned = orc.erasure.erase(memory_id=secret, reason="asked for")
    assert [each[:18] for each in planned.files_removed] == ["memgraph~replaced_"]
    report = orc.erasure.erase(memory_id=secret, reason="asked for", dry_run=False)
    assert report.unfinished == ()
    assert report.files_removed == planned.files_removed
    assert report.remains == ()
    assert report.searched.tables > 30
    assert report.server is not None
    assert (report.server.archived, report.server.replicas) == (False, 0)
    until = report.server.wal_expected_until
    assert until is not None
    assert until > report.ended_at - 60_000
    assert data_files(url, "zwieback") == []
    assert data_files(url, "Xaverskyan") == []
    assert orc.verify().findings == []
    assert orc.erasure.reports() == [report]


def test_an_older_snapshot_keeps_an_erasure_from_being_finished(tmp_path: Path, url: str) -> None:
    config = {"memory.storage.url": url, "memory.storage.busy_timeout_ms": 200}
    with MemoryService(tmp_path, config=config, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        secret = orc.remember("The zwieback tin is behind the red door.")
        with service.opened("orc-1") as opened, opened.database.read() as older:
            older.driver.execute("SELECT count(*) FROM memories")
            report = orc.erasure.erase(memory_id=secret, reason="asked for", dry_run=False)
            assert report.unfinished == ("database.in_use",)
        again = orc.erasure.erase(memory_id=secret, reason="asked for", dry_run=False)
        assert again.unfinished == ()
        assert again.erasure_id == report.erasure_id
        assert data_files(url, "zwieback") == []


def restored(
    service: MemoryService, file: Path, name: str = "orc-1", origin: str | None = None
) -> RestoreReport:
    done = maintenance.restore(
        service.paths(name),
        file,
        clock=service.clock,
        actor="user",
        reason="lost",
        origin=origin,
        url=service.settings().memory.storage.url,
    )
    service.forget(name)
    return done


def test_a_backup_is_restored_on_either_engine(
    served: MemoryService, orc: Orchestrator, tmp_path: Path
) -> None:
    old = orc.remember("The gate closes at nine.")
    new = orc.correct(old, "The gate closes at ten.", reason="summer")
    receipt = orc.recall("gate").receipt_id
    lines = b"".join(orc.exchange.export_lines())
    file = tmp_path / "backup.db"
    report = orc.exchange.backup(file)
    assert (report.memories, report.bytes) == (2, file.stat().st_size)
    with pytest.raises(Conflict):
        orc.exchange.backup(file)
    orc.remember("This is lost again.")
    assert restored(served, file).replaced is not None
    restored(served, file, "orc-2", origin="orc-1")
    with MemoryService(tmp_path / "files", environ={}, background=False) as files:
        restored(files, file)
        same = b"".join(files.orchestrator("orc-1").exchange.export_lines())
        assert memories_in(same) == memories_in(lines)
        places = [(served, "orc-1"), (served, "orc-2"), (files, "orc-1")]
        for service, name in places:
            handle = service.orchestrator(name)
            assert handle.verify().findings == []
            assert [each.memory.memory_id for each in handle.recall("gate closes").items] == [new]
            kept = handle.receipts.get(receipt)
            assert [item.memory_id for item in kept.items] == [new]
            assert handle.maintenance.stats()["memories"]["kind"] == {"fact": 2}
        files.orchestrator("orc-1").exchange.backup(tmp_path / "back.db")
    restored(served, tmp_path / "back.db")
    assert served.orchestrator("orc-1").remember("A new one.") not in (old, new)
    assert served.orchestrator("orc-1").verify().findings == []


def memories_in(lines: bytes) -> list[bytes]:
    return [line for line in lines.splitlines() if b'"record":"memory"' in line]


def test_a_damaged_backup_is_refused_and_nothing_changes(
    served: MemoryService, orc: Orchestrator, tmp_path: Path, url: str
) -> None:
    memory_id = orc.remember("The gate closes at nine.")
    file = tmp_path / "backup.db"
    orc.exchange.backup(file)
    with sqlite.connect(file) as connection:
        connection.execute("UPDATE memories SET content = 'The gate closes at ten.'")
    connection.close()
    with pytest.raises(DatabaseCorrupt, match="refused as a backup"):
        restored(served, file)
    assert orc.get(memory_id).content == "The gate closes at nine."
    assert schemas(url) == ["memgraph_orc-1"]


def schemas(url: str) -> list[object]:
    found = execute(url, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'memgraph%'")
    return [name for (name,) in found]


KILLED = """
import os, signal, sys
from pathlib import Path
from memgraph import MemoryService
from memgraph.operations.maintenance import maintenance
from memgraph.store.postgres import copies, stores
place, root, file = sys.argv[1:]
module, name = {
    "copying": (copies, "indexes"),
    "copied": (stores.PostgresStore, "inspect"),
    "publishing": (stores.PostgresStore, "publish"),
}[place]
class Killing:
    def __getattr__(self, name): os.kill(os.getpid(), signal.SIGKILL)
    def __call__(self, *args, **more): os.kill(os.getpid(), signal.SIGKILL)
setattr(module, name, Killing())
with MemoryService(root, background=False) as service:
    url = service.settings().memory.storage.url
    maintenance.restore(
        service.paths("orc-1"), Path(file), clock=service.clock, actor="user", reason="x", url=url
    )
"""


def test_a_restore_that_loses_its_lock_changes_nothing(
    served: MemoryService,
    orc: Orchestrator,
    tmp_path: Path,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "backup.db"
    orc.remember("The gate closes at nine.")
    orc.exchange.backup(file)
    later = orc.remember("The gate opens at six.")
    free_name = maintenance.free_name

    def losing(*args: Any) -> Path:
        assert execute(url, ending_writers())
        return free_name(*args)

    monkeypatch.setattr(maintenance, "free_name", losing)
    with pytest.raises(DatabaseUnreachable):
        restored(served, file)
    assert orc.get(later).content == "The gate opens at six."
    assert schemas(url) == ["memgraph_orc-1"]


@pytest.mark.parametrize("place", ["copying", "copied", "publishing"])
def test_a_restore_that_is_killed_leaves_what_was_there(
    served: MemoryService, orc: Orchestrator, tmp_path: Path, url: str, place: str
) -> None:
    memory_id = orc.remember("The gate closes at nine.")
    file = tmp_path / "backup.db"
    orc.exchange.backup(file)
    environ = {**os.environ, "MEMGRAPH_STORAGE_URL": url}
    command = [sys.executable, "-c", KILLED, place, str(tmp_path / "root"), str(file)]
    assert subprocess.run(command, env=environ, timeout=120).returncode == -signal.SIGKILL
    assert orc.get(memory_id).content
    assert orc.verify().findings == []
    assert restored(served, file).memories == 1
    assert sorted(str(each)[:18] for each in schemas(url)) == [
        "memgraph_orc-1",
        "memgraph~replaced_",
    ]


def test_it_is_moved_by_an_export(served: MemoryService, orc: Orchestrator, tmp_path: Path) -> None:
    old = orc.remember("The gate closes at nine.")
    orc.correct(old, "The gate closes at ten.", reason="summer")
    lines = b"".join(orc.exchange.export_lines())
    with MemoryService(tmp_path / "files", environ={}, background=False) as files:
        files.import_lines("orc-1", io.BytesIO(lines))
        assert files.orchestrator("orc-1").get(old) == orc.get(old).model_copy()
        again = b"".join(files.orchestrator("orc-1").exchange.export_lines())
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
    assert orc.maintenance.stats()["memories"]["kind"] == {"fact": 45}
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
    run("backup", "orc-1", str(tmp_path / "backup.db"))
    run("remember", "orc-1", "The gate closes at ten.")
    assert "memgraph~replaced_" in run("restore", "orc-1", str(tmp_path / "backup.db"))
    assert "ten" not in run("recall", "orc-1", "gate")
    run("restore", "orc-1", str(tmp_path / "backup.db"), "--as", "orc-2")
    assert "nine" in run("recall", "orc-2", "gate")
    [item] = json.loads(run("recall", "orc-2", "gate", "--json"))["data"]["items"]
    memory_id = item["memory"]["memory_id"]
    erased = run("erase", "orc-2", memory_id, "--reason", "asked for", "--yes")
    assert "not proven: what the server stores outside of its tables" in erased
    assert "archive_mode is off" in erased


def moved(service: MemoryService, target: str) -> MoveReport:
    return move(
        service.paths("orc-1"),
        target,
        source=service.settings("orc-1").memory.storage.url,
        clock=service.clock,
    )


def test_it_moves_to_a_server_and_back_while_it_is_open(tmp_path: Path, url: str) -> None:
    with MemoryService(tmp_path / "root", environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        old = orc.remember("The gate closes at nine.")
        service.paths("orc-1").config_file.write_text(
            "# mine\n[memory.storage]\nbusy_timeout_ms = 9000\n\n[memory.log]\nlevel = 'error'\n"
        )
        there = moved(service, url)
        assert (there.source, there.target, there.memories) == ("", url, 1)
        assert "before-move" in str(there.left)
        assert not service.paths("orc-1").database.exists()
        text = service.paths("orc-1").config_file.read_text()
        assert "# mine" in text
        assert "level = 'error'" in text
        # The open orchestrator notices that its file is no longer the store.
        new = orc.correct(old, "The gate closes at ten.", reason="summer")
        assert execute(url, 'SELECT count(*) FROM "memgraph_orc-1".memories') == [(2,)]
        with pytest.raises(Conflict):
            moved(service, url)
        back = moved(service, "")
        assert str(back.left).startswith("memgraph~replaced_")
        with pytest.raises(DatabaseMissing):
            orc.get(new)
        assert orc.get(new).content == "The gate closes at ten."
        assert orc.verify().findings == []
        assert service.settings("orc-1").memory.storage.busy_timeout_ms == 9000
        assert service.paths("orc-1").database.exists()
        assert not service.paths("orc-1").moving.exists()
        with pytest.raises(InvalidConfig):
            moved(service, "postgresql://me:pass@host/db")
        assert not service.paths("orc-1").moving.exists()


def test_an_erasure_names_what_a_move_has_left_on_a_server(tmp_path: Path, url: str) -> None:
    with MemoryService(tmp_path / "root", environ={"MEMGRAPH_STORAGE_URL": url}) as service:
        orc = service.orchestrator("orc-1", create=True)
        secret = orc.remember("The safe opens with 7391.")
        left = moved(service, "").left
        with pytest.raises(DatabaseMissing):
            orc.get(secret)
        report = orc.erasure.erase(memory_id=secret, reason="asked for", dry_run=False)
    assert left is not None
    assert report.outside == (f"{left} on {url}",)


def test_readiness_follows_a_move(tmp_path: Path, url: str) -> None:
    clock = FixedClock(1_800_000_000_000)
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False, clock=clock) as service:
        service.orchestrator("orc-1", create=True).remember("The gate closes at nine.")
        for target in (url, ""):
            assert [each.status for each in Readiness(service).look().orchestrators] == ["ready"]
            with MemoryService(root, environ={}, background=False, clock=clock) as other:
                moved(other, target)
                other.orchestrator("orc-1").remember(f"It lies in {target or 'a file'}.")
                expected = Readiness(other).look().orchestrators
            looked = Readiness(service).look().orchestrators
            assert [(each.status, each.pending) for each in looked] == [
                ("ready", each.pending) for each in expected
            ]
            with contextlib.suppress(DatabaseMissing):
                service.orchestrator("orc-1").memories.counts()


def test_a_move_keeps_its_lock_while_it_waits_for_the_copy(tmp_path: Path, url: str) -> None:
    execute(url, "ALTER ROLE CURRENT_USER SET idle_in_transaction_session_timeout = '50ms'")
    try:
        with MemoryService(tmp_path / "root", environ={}, background=False) as service:
            orc = service.orchestrator("orc-1", create=True)
            memory_id = orc.remember("The gate closes at nine.")
            moved(service, url)
            moved(service, "")
            service.forget("orc-1")
            assert orc.get(memory_id).content == "The gate closes at nine."
    finally:
        execute(url, "ALTER ROLE CURRENT_USER RESET idle_in_transaction_session_timeout")


def ending_writers() -> str:
    """Return a statement that terminates the session with the write lock of orc-1."""
    from memgraph.store.postgres import lock_key

    key = lock_key("memgraph_orc-1") % 2**64
    return (
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        f" AND classid = {key >> 32} AND objid = {key % 2**32}"
    )


def test_a_move_that_loses_its_lock_changes_nothing(tmp_path: Path, url: str) -> None:
    ending = ending_writers()
    with MemoryService(tmp_path / "root", environ={}, background=False) as service:
        memory_id = service.orchestrator("orc-1", create=True).remember("The gate closes at nine.")
        moved(service, url)
        with ThreadPoolExecutor() as pool:
            move_back = pool.submit(moved, service, "")
            while not execute(url, ending):
                assert not move_back.done()
            with pytest.raises(DatabaseUnreachable):
                move_back.result()
        assert service.settings("orc-1").memory.storage.url == url
        assert not service.paths("orc-1").database.exists()
        assert service.orchestrator("orc-1").get(memory_id).content == "The gate closes at nine."


def test_a_store_that_no_move_has_made_is_not_put_aside(tmp_path: Path, url: str) -> None:
    on_server = MemoryService(tmp_path / "other", environ={"MEMGRAPH_STORAGE_URL": url})
    with on_server, MemoryService(tmp_path / "root", environ={}, background=False) as service:
        theirs = on_server.orchestrator("orc-1", create=True).remember("The press is blue.")
        service.orchestrator("orc-1", create=True).remember("The gate closes at nine.")
        # The state after a move was killed while another one created this store.
        service.paths("orc-1").moving.write_text(json.dumps(["", url]))
        with pytest.raises(OrchestratorExists):
            moved(service, url)
        assert on_server.orchestrator("orc-1").get(theirs).content == "The press is blue."
        assert schemas(url) == ["memgraph_orc-1"]
        assert not service.paths("orc-1").moving.exists()


MOVING = """
import os, signal, sys
from memgraph import MemoryService
from memgraph.operations.maintenance import move
from memgraph.store.postgres import copies
place, root, target = sys.argv[1:]
module = copies if place == "_require_same" else move
original = getattr(module, place)
def kill(*args, **more):
    if place == "draft_beside" and args[0].name != "config.toml":
        return original(*args, **more)
    if place == "_require_same" and args[0] != "memory_edges":
        return original(*args, **more)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(module, place, kill)
with MemoryService(root, background=False) as service:
    source = service.settings("orc-1").memory.storage.url
    move.move(service.paths("orc-1"), target, source=source, clock=service.clock)
"""


@pytest.mark.parametrize(
    "place",
    [
        # Before the copy, in the middle of it, before it is published, before the setting changes,
        # and before the old store is put aside.
        "_copy",
        "_require_same",
        "row_count",
        "draft_beside",
        "_put_aside",
    ],
)
@pytest.mark.parametrize("to_server", [True, False])
def test_a_move_that_is_killed_leaves_one_whole_store_and_is_repeated(
    tmp_path: Path, url: str, place: str, to_server: bool
) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        memory_id = service.orchestrator("orc-1", create=True).remember("The gate closes at nine.")
        if not to_server:
            moved(service, url)
    target = url if to_server else ""
    command = [sys.executable, "-c", MOVING, place, str(root), target]
    assert subprocess.run(command, timeout=120).returncode == -signal.SIGKILL
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        assert orc.get(memory_id).content == "The gate closes at nine."
        later = orc.remember("This was said between the two.")
        report = moved(service, target)
        assert report.target == target
        service.forget("orc-1")
        assert service.settings("orc-1").memory.storage.url == target
        assert orc.get(later).content == "This was said between the two."
        assert orc.verify().findings == []
        assert not service.paths("orc-1").moving.exists()


def test_a_move_to_another_place_finishes_the_earlier_one_first(tmp_path: Path, url: str) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        memory_id = service.orchestrator("orc-1", create=True).remember("The gate closes at nine.")
        moved(service, url)
    command = [sys.executable, "-c", MOVING, "_put_aside", str(root), ""]
    assert subprocess.run(command, timeout=120).returncode == -signal.SIGKILL
    with MemoryService(root, environ={}, background=False) as service:
        # It is in the file by now, and the old schema is still there.
        assert service.settings("orc-1").memory.storage.url == ""
        assert moved(service, url).memories == 1
        service.forget("orc-1")
        assert service.settings("orc-1").memory.storage.url == url
        assert service.orchestrator("orc-1").get(memory_id).content == "The gate closes at nine."
        assert not service.paths("orc-1").moving.exists()


def test_a_damaged_record_of_a_move_is_an_error_that_says_what_to_do(
    tmp_path: Path, url: str
) -> None:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        service.orchestrator("orc-1", create=True).remember("The gate closes at nine.")
        service.paths("orc-1").moving.write_text("[")
        with pytest.raises(InvalidConfig, match="damaged; remove it"):
            moved(service, url)


def test_placement_decides_by_name(tmp_path: Path, url: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    entries = json.dumps(["local-*=", f"team-*={url}"])
    (root / "memgraph.toml").write_text(f"[memory.storage]\nplacement = {entries}\n")
    with MemoryService(root, environ={}, background=False) as service:
        for name in ("local-1", "team-1", "other"):
            service.create(name)
            service.orchestrator(name).remember(f"This is {name}.")
        assert service.orchestrators() == ["local-1", "other", "team-1"]
        assert not service.paths("team-1").database.exists()
        assert schemas(url) == ["memgraph_team-1"]
    environ = {"MEMGRAPH_STORAGE_URL": url}
    with MemoryService(root, environ=environ, background=False) as service:
        assert service.orchestrator("local-1").recall("This").items
    with pytest.raises(InvalidConfig, match="pattern=url"):
        MemoryService(root, config={"memory.storage.placement": ["team"]}, environ={}).settings()


BEFORE = metadata.SCHEMA_HEAD
AFTER = f"{int(BEFORE) + 1:04}"
NEXT = """
from alembic import op
revision, down_revision, branch_labels, depends_on = "{after}", "{before}", None, None
def upgrade():
    op.execute("INSERT INTO memory_metadata (key, value) VALUES ('step', '{after}')")
    {more}
def downgrade():
    raise NotImplementedError
"""


@pytest.mark.parametrize("fails", [False, True])
def test_a_schema_is_upgraded_by_the_next_migration(
    served: MemoryService,
    orc: Orchestrator,
    tmp_path: Path,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    fails: bool,
) -> None:
    orc.remember("The gate closes at nine.")
    folder = tmp_path / "migrations"
    shutil.copytree(migrations.migrations_folder(), folder)
    more = 'op.execute("SELECT nothing FROM nowhere")' if fails else ""
    (folder / "versions" / f"{AFTER}_next.py").write_text(
        NEXT.format(before=BEFORE, after=AFTER, more=more)
    )
    monkeypatch.setattr(migrations, "migrations_folder", lambda: folder)
    monkeypatch.setattr(metadata, "SCHEMA_HEAD", AFTER)
    paths = served.paths("orc-1")
    with pytest.raises(SchemaOutdated):
        store_of(paths, url).open(served.settings().memory.storage)

    def upgraded() -> UpgradeReport:
        return maintenance.upgrade(paths, served.clock, url=url)

    steps = "SELECT value FROM \"memgraph_orc-1\".memory_metadata WHERE key = 'step'"
    if fails:
        with pytest.raises(StorageError):
            upgraded()
        assert execute(url, steps) == []
        return
    report = upgraded()
    assert (report.before, report.after) == (BEFORE, AFTER)
    assert execute(url, steps) == [(AFTER,)]
    assert report.backup is not None
    with sqlite.connect(report.backup) as copy:
        assert copy.execute("SELECT version_num FROM alembic_version").fetchall() == [(BEFORE,)]
        assert copy.execute("SELECT count(*) FROM memories").fetchall() == [(1,)]
    copy.close()
    assert upgraded().backup is None
    served.forget("orc-1")
    assert orc.verify().findings == []
