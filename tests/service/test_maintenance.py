"""Backups are verified, and restores refuse invalid backups."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import Process, wait_until
from working import NAME, filled, tampering

from memgraph import MemoryService
from memgraph.clock import FixedClock
from memgraph.config.schema import StorageSettings
from memgraph.errors import (
    Conflict,
    DatabaseCorrupt,
    DatabaseEmpty,
    DatabaseForeign,
    DatabaseMissing,
    DatabaseReplaced,
    InvalidInput,
    JournalBroken,
    MemgraphError,
    SchemaUnknown,
)
from memgraph.operations.maintenance import maintenance
from memgraph.paths import OrchestratorPaths
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import metadata
from memgraph.store.sqlite import engine
from memgraph.store.sqlite.stores import SqliteStore

RESTORES = "FROM audit_log WHERE action = 'restore' AND subject IS NULL"

Filled = tuple[MemoryService, OpenOrchestrator, dict[str, str]]


@pytest.fixture
def alive(tmp_path: Path) -> Iterator[Filled]:
    with filled(tmp_path / "root") as found:
        yield found


@pytest.fixture
def file(alive: Filled, tmp_path: Path) -> Path:
    """A backup."""
    maintenance.backup(alive[1], tmp_path / "orc.db")
    return tmp_path / "orc.db"


def restore(paths: OrchestratorPaths, file: Path, **options: Any) -> maintenance.RestoreReport:
    given = {"clock": FixedClock(), "actor": "operator", "reason": "test"} | options
    return maintenance.restore(paths, file, **given)


def rows(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with engine.inspected(path) as connection:
        return list(connection.driver.execute(statement))


def contents(path: Path) -> list[tuple[Any, ...]]:
    return rows(path, "SELECT memory_id, content, status FROM memories ORDER BY pk")


def files_under(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file() and each.suffix not in (".lock", ".log")
    }


def test_a_backup_is_one_private_file_that_restores_everything_into_a_new_one(
    alive: Filled, tmp_path: Path
) -> None:
    service, opened, _ = alive
    file = tmp_path / "copies" / "orc.db"
    with pytest.raises(FileNotFoundError, match="folder does not exist"):
        maintenance.backup(opened, file)
    file.parent.mkdir()
    report = maintenance.backup(opened, file)
    assert report.model_dump(mode="json") == {
        "orchestrator": NAME,
        "path": str(file),
        "bytes": file.stat().st_size,
        "memories": 7,
        "journal_entries": 14,
        "findings": {},
    }
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in file.parent.iterdir()] == ["orc.db"]
    before = contents(opened.paths.database)
    kept = file.read_bytes()
    service.orchestrator(NAME).remember("after the backup")
    told = restore(opened.paths, file)
    assert told.memories == 7
    assert told.replaced is not None
    assert contents(opened.paths.database) == before
    assert len(contents(Path(told.replaced) / "memory.db")) == 8
    assert file.read_bytes() == kept
    with pytest.raises(DatabaseReplaced), opened.transaction("user"):
        raise AssertionError("a write into a file that nobody will read")
    assert rows(opened.paths.database, "SELECT * FROM memory_metadata WHERE key = 'backup'") == []
    memory_id = service.orchestrator(NAME).remember("welcome")
    with service.opened(NAME) as again:
        path = again.paths.database
        assert path.stat().st_mode & 0o777 == 0o600
        assert maintenance.verify(again).findings == []
        assert contents(path)[-1][0] == memory_id
        ((actor, details),) = rows(path, f"SELECT actor, details {RESTORES}")
    details = json.loads(details)
    assert (actor, details["reason"]) == ("operator", "test")
    assert details["replaced"]["anchor"]["seq"] == 15
    assert details["backup"]["stamp"]["seq"] == 14
    assert len(details["backup"]["sha256"]) == 64


def hold(path: Path, opened: Path, go: Path, told: Path) -> None:
    """Runs in a process: write, and once more into what is another file by then."""
    database = SqliteStore(path, NAME).open(StorageSettings(synchronous="NORMAL"))

    def write(key: str) -> None:
        with database.write() as connection:
            metadata.put(connection, key, "x")

    write("before")
    opened.touch()
    assert wait_until(go.exists)
    try:
        write("after")
    except DatabaseReplaced as error:
        told.write_text(error.code)
    database.close()


def test_another_process_cannot_write_into_the_replaced_file(
    alive: Filled, file: Path, tmp_path: Path
) -> None:
    service, opened, _ = alive
    begun, go, told = (tmp_path / name for name in ("begun", "go", "told"))
    path = opened.paths.database
    with Process(hold, path, begun, go, told) as process:
        assert wait_until(begun.exists)
        report = restore(opened.paths, file)
        service.forget(NAME)
        memory_id = service.orchestrator(NAME).remember("in the restored one")
        go.touch()
        assert process.wait() == 0
    assert told.read_text() == "storage.replaced"
    # Closing the replaced database must not remove the new one's WAL.
    assert path.with_name("memory.db-wal").stat().st_size > 0
    service.forget(NAME)
    assert contents(path)[-1][0] == memory_id
    assert report.replaced is not None
    keys = rows(Path(report.replaced) / "memory.db", "SELECT key FROM memory_metadata")
    assert ("before",) in keys
    assert ("after",) not in keys


def test_a_backup_does_not_overwrite_unless_forced(alive: Filled, tmp_path: Path) -> None:
    _, opened, _ = alive
    file = tmp_path / "orc.db"
    file.write_bytes(b"precious")
    with pytest.raises(Conflict):
        maintenance.backup(opened, file)
    assert file.read_bytes() == b"precious"
    maintenance.backup(opened, file, force=True)
    assert file.read_bytes().startswith(b"SQLite format 3")
    with pytest.raises(InvalidInput):
        maintenance.backup(opened, tmp_path)
    for name in ("memory.db", "memory.db-wal", "journal.anchor", "new.db"):
        with pytest.raises(InvalidInput):
            maintenance.backup(opened, opened.paths.memory / name, force=True)


def test_a_tampered_database_is_backed_up_only_on_request(alive: Filled, tmp_path: Path) -> None:
    _, opened, ids = alive
    with tampering(opened.paths.database) as connection:
        connection.execute(
            "UPDATE memories SET content = 'edited' WHERE memory_id = ?", (ids["berlin"],)
        )
    file = tmp_path / "orc.db"
    with pytest.raises(DatabaseCorrupt) as caught:
        maintenance.backup(opened, file)
    assert caught.value.details["findings"] == {"memory.content_damaged": 1, "table.edited": 1}
    assert list(tmp_path.glob("*orc.db*")) == []
    report = maintenance.backup(opened, file, accept_findings=True)
    assert report.findings == {"memory.content_damaged": 1, "table.edited": 1}
    with pytest.raises(DatabaseCorrupt):
        restore(opened.paths, file)
    assert restore(opened.paths, file, accept_findings=True).findings == report.findings


def test_a_backup_of_a_store_that_erased_needs_the_key_that_sealed_it(tmp_path: Path) -> None:
    root, other, file = tmp_path / "root", tmp_path / "other", tmp_path / "orc.db"
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator(NAME, create=True)
        gone = orc.remember("The safe opens at noon.")
        orc.recall("When does the safe open?")
        orc.erasure.erase(memory_id=gone, reason="asked for", dry_run=False)
        orc.exchange.backup(file)
    with MemoryService(other, environ={}, background=False) as service:
        paths = service.orchestrator(NAME, create=True).paths
    with pytest.raises(JournalBroken, match=r"journal\.redaction_unproven"):
        restore(paths, file)
    shutil.copy(root / "erasure.key", other)
    assert restore(paths, file).findings == {}


def edited(statement: str) -> Callable[[Path], None]:
    def edit(file: Path) -> None:
        with tampering(file) as connection:
            connection.execute(statement)

    return edit


DAMAGES: list[tuple[Callable[[Path], object], type[MemgraphError]]] = [
    (lambda file: file.unlink(), DatabaseMissing),
    (lambda file: file.write_bytes(b""), DatabaseEmpty),
    (lambda file: file.write_bytes(b"no database at all" * 100), DatabaseCorrupt),
    (lambda file: file.write_bytes(file.read_bytes()[:-4096]), DatabaseCorrupt),
    (
        edited("UPDATE memory_metadata SET value = 'orc-2' WHERE key = 'orchestrator_id'"),
        DatabaseForeign,
    ),
    (edited("UPDATE alembic_version SET version_num = '9999'"), SchemaUnknown),
    (edited("DELETE FROM audit_log WHERE seq = 14"), JournalBroken),
    (edited("UPDATE audit_log SET actor = 'x' WHERE seq = 3"), JournalBroken),
    (edited("UPDATE memories SET content = 'x'"), DatabaseCorrupt),
    (edited("DROP TABLE memory_edges"), DatabaseCorrupt),
    (edited("UPDATE memory_metadata SET value = '[' WHERE key = 'backup'"), DatabaseCorrupt),
    (lambda file: file.with_name(f"{file.name}-wal").write_bytes(b"x"), DatabaseForeign),
    (lambda file: (file.unlink(), file.mkdir()), DatabaseForeign),
]


def test_a_backup_that_cannot_be_trusted_is_refused_and_nothing_changes(
    alive: Filled, file: Path, tmp_path: Path
) -> None:
    service, opened, _ = alive
    service.forget(NAME)
    before = files_under(opened.paths.memory)
    for number, (damage, error) in enumerate(DAMAGES):
        damaged = tmp_path / f"{number}.db"
        shutil.copy(file, damaged)
        damage(damaged)
        with pytest.raises(error) as caught:
            restore(opened.paths, damaged)
        assert type(caught.value) is error, number
        assert str(damaged) in caught.value.message
        assert files_under(opened.paths.memory) == before


def test_a_lost_database_is_restored_and_what_was_there_is_kept(alive: Filled, file: Path) -> None:
    service, opened, _ = alive
    path = opened.paths.database
    for content in (None, b"", b"garbage" * 100):
        service.forget(NAME)
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        assert service.health(NAME)["status"] == "disabled"
        path.with_name("memory.db-wal").write_bytes(b"stale frames")
        report = restore(opened.paths, file)
        assert report.replaced is not None
        kept = {each.name: each.read_bytes() for each in Path(report.replaced).iterdir()}
        assert (kept.get("memory.db"), kept["memory.db-wal"]) == (content, b"stale frames")
        assert service.health(NAME)["status"] == "ready"
        with service.opened(NAME) as again:
            assert maintenance.verify(again).ok


def test_another_orchestrators_backup_becomes_a_new_one_and_replaces_none(
    alive: Filled, file: Path
) -> None:
    service, opened, _ = alive
    other = OrchestratorPaths(service.root, "orc-2")
    with pytest.raises(DatabaseForeign):
        restore(other, file)
    assert not other.database.exists()
    restore(other, file, origin=NAME)
    with service.opened("orc-2") as again:
        assert maintenance.verify(again).ok
    assert {row[0] for row in rows(other.database, "SELECT orchestrator_id FROM memories")} == {
        "orc-2"
    }
    assert contents(other.database) == contents(opened.paths.database)
    ((details,),) = rows(other.database, f"SELECT details {RESTORES}")
    assert json.loads(details)["from_orchestrator"] == NAME
    with pytest.raises(Conflict):
        restore(other, file, origin=NAME)
