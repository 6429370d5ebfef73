"""A database is made whole or not at all; what is not one is named and left as it is."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from database_workers import NAME, NOW, create_at, increment, open_database, read_number
from processes import Process
from working import tampering

from memgraph.errors import (
    DatabaseCorrupt,
    DatabaseEmpty,
    DatabaseForeign,
    DatabaseMissing,
    MemgraphError,
    OrchestratorExists,
    SchemaUnknown,
    SqliteUnsuitable,
    StorageError,
)
from memgraph.store import metadata, sqlite
from memgraph.store.sqlite import engine
from memgraph.store.sqlite.stores import SqliteStore


def create(folder: Path, name: str = NAME, dimensions: int = 8) -> Path:
    path = folder / "memory.db"
    SqliteStore(path, name).create(dimensions=dimensions, now_ms=NOW)
    return path


def test_a_new_database_is_private_and_in_wal_mode(tmp_path: Path) -> None:
    path = create(tmp_path / "new" / "memory")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0
    assert sorted(file.name for file in path.parent.iterdir()) == ["memory.db", "memory.lock"]
    database = open_database(path)
    with database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        rows = connection.exec_driver_sql("SELECT key, value FROM memory_metadata")
        result = {row.key: row.value for row in rows}
    database.close()
    assert result == {
        "orchestrator_id": NAME,
        "created_at": str(NOW),
        "embedding_dimensions": "8",
    }


def _link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def _stale_wal(path: Path) -> None:
    path.with_name("memory.db-wal").write_bytes(b"frames of another")


@pytest.mark.parametrize(
    "occupy",
    [Path.touch, Path.mkdir, _link, _stale_wal, lambda path: path.write_bytes(b"precious")],
)
def test_nothing_that_is_there_is_made_anew(
    tmp_path: Path, occupy: Callable[[Path], object]
) -> None:
    occupy(tmp_path / "memory.db")
    before = _state(tmp_path)
    with pytest.raises(OrchestratorExists):
        create(tmp_path)
    assert _state(tmp_path) == before


def test_what_a_killed_process_left_of_a_database_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".memory.db-abc.draft").write_bytes(b"half of a database")
    create(tmp_path)
    assert not list(tmp_path.glob("*.draft")) + list(tmp_path.glob(".*.draft"))


def _state(folder: Path) -> dict[str, object]:
    """Every name with what it is, byte for byte."""
    result: dict[str, object] = {}
    for item in sorted(folder.iterdir()):
        if item.name == "memory.lock":
            continue
        if item.is_symlink():
            result[item.name] = str(item.readlink())
        else:
            result[item.name] = item.read_bytes() if item.is_file() else "folder"
    return result


def _garble(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:100] + os.urandom(len(content) - 100))


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _dangle(path: Path) -> None:
    path.unlink()
    _link(path)


def _sql(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with tampering(path) as connection:
            connection.execute(statement)

    return change


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (Path.unlink, DatabaseMissing),
        (_dangle, DatabaseMissing),
        (_replace_by_folder, DatabaseForeign),
        (lambda path: path.write_bytes(b""), DatabaseEmpty),
        (lambda path: path.write_bytes(b"SQLite format 3\x00"), DatabaseCorrupt),
        (lambda path: path.write_bytes(b"%PDF-1.7" * 1_000), DatabaseCorrupt),
        (lambda path: path.write_bytes(bytes(8_192)), DatabaseCorrupt),
        (lambda path: path.write_bytes(path.read_bytes()[: 4_096 * 3]), DatabaseCorrupt),
        (_garble, DatabaseCorrupt),
        (_sql("PRAGMA application_id = 1"), DatabaseForeign),
        (_sql("DROP TABLE memory_metadata"), DatabaseCorrupt),
        (_sql("DROP TABLE alembic_version"), DatabaseCorrupt),
        (_sql("DELETE FROM memory_metadata WHERE key = 'orchestrator_id'"), DatabaseForeign),
        (
            _sql("UPDATE memory_metadata SET value = 'orc-2' WHERE key = 'orchestrator_id'"),
            DatabaseForeign,
        ),
        (_sql("DELETE FROM alembic_version"), SchemaUnknown),
        (_sql("UPDATE alembic_version SET version_num = '0013'"), SchemaUnknown),
    ],
)
def test_what_is_wrong_is_told_apart_and_left_untouched(
    tmp_path: Path, damage: Callable[[Path], object], error: type[MemgraphError]
) -> None:
    path = create(tmp_path)
    damage(path)
    before = _state(tmp_path)
    with pytest.raises(error) as caught:
        open_database(path)
    assert type(caught.value) is error
    assert _state(tmp_path) == before


def journal_header(records: int, pages: int) -> bytes:
    """Of a rollback journal that would cut a database to so many pages when it is played back."""
    magic = bytes.fromhex("d9d505f920a163d7")
    fields = (records, 0, pages, 512, 4_096)
    return (magic + b"".join(field.to_bytes(4, "big") for field in fields)).ljust(512, b"\0")


@pytest.mark.parametrize(
    "garbage", [journal_header(0, 1), journal_header(2, 3) + b"x" * 9_000, b"garbage" * 100]
)
def test_a_rollback_journal_of_somebody_else_is_not_played_back(
    tmp_path: Path, garbage: bytes
) -> None:
    path = tmp_path / "memory.db"
    SqliteStore(path, NAME).create(dimensions=8, now_ms=NOW)
    before = path.read_bytes()
    foreign = path.with_name("memory.db-journal")
    foreign.write_bytes(garbage)
    opened = open_database(path)
    increment(opened)
    opened.close()
    assert path.stat().st_size >= len(before)
    assert not foreign.exists()
    assert foreign.with_name("memory.db-journal.foreign").read_bytes() == garbage


def test_an_affected_sqlite_opens_and_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create(tmp_path)

    def affected() -> None:
        raise SqliteUnsuitable("3.40.1")

    monkeypatch.setattr(sqlite, "require_suitable_sqlite", affected)
    with pytest.raises(SqliteUnsuitable):
        open_database(path)
    with pytest.raises(SqliteUnsuitable):
        create(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_of_processes_that_create_at_once_one_does_and_all_can_use_it(tmp_path: Path) -> None:
    Process(time.time).wait()  # what the others are forked from has begun
    path, results = tmp_path / "memory.db", tmp_path / "results"
    at = time.time() + 0.5
    workers = [Process(create_at, path, at, results) for _ in range(6)]
    assert [worker.wait() for worker in workers] == [0] * 6
    outcomes = Counter(results.read_text().splitlines())
    assert outcomes == {"created": 1, "orchestrator.exists": 5}
    database = open_database(path)
    assert read_number(database) == 6
    database.close()


def _alembic(path: Path) -> Config:
    folder = engine.migrations_folder()
    config = Config(stdout=io.StringIO())
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.cmd_opts = None
    config.attributes["path"] = path
    return config


def test_the_head_of_the_migrations_is_the_one_in_the_code() -> None:
    script = ScriptDirectory.from_config(_alembic(Path()))
    assert script.get_current_head() == metadata.SCHEMA_HEAD
    revisions = [step.revision for step in script.walk_revisions()]
    assert revisions == [metadata.SCHEMA_HEAD]


def test_the_revision_ends_with_the_digest_of_its_schema() -> None:
    """After a change of the schema the revision gets the new digest, here and in the migration."""
    lines = sorted(
        f"{name} {sql}" for name, sql in engine.template(metadata.SCHEMA_HEAD).schema.items()
    )
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]
    assert f"0001_{digest}" == metadata.SCHEMA_HEAD


def test_the_migrations_make_what_the_models_say(tmp_path: Path) -> None:
    path = create(tmp_path)
    config = _alembic(path)
    with engine.alone(path) as connection:
        config.attributes["connection"] = connection.connection
        command.check(config)


def test_going_back_beyond_the_first_migration_is_refused_and_drops_nothing(
    tmp_path: Path,
) -> None:
    path = create(tmp_path)
    config = _alembic(path)
    with engine.alone(path) as connection:
        before = engine.schema(connection)
        config.attributes["connection"] = connection.connection
        with pytest.raises(CommandError, match="every memory"):
            command.downgrade(config, "base")
    with engine.inspected(path) as connection:
        assert engine.schema(connection) == before


def test_a_database_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    SqliteStore(path, NAME).create(dimensions=8, now_ms=NOW)

    def refuse(self: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "denied", str(self))

    # The tests may run as root, whom no mode keeps out.
    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(StorageError, match="EACCES"):
        open_database(path)
