"""The driver's errors become ours, whatever it says; a missing file is never made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as driver
import pytest
from sqlalchemy.exc import OperationalError

from memgraph.errors import (
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseFull,
    DatabaseMissing,
    SqliteUnsuitable,
    StorageError,
)
from memgraph.store import sqlite


@pytest.mark.parametrize("version", [(3, 7, 0), (3, 40, 1), (3, 51, 2)])
def test_an_affected_sqlite_is_refused(version: tuple[int, ...]) -> None:
    with pytest.raises(SqliteUnsuitable) as caught:
        sqlite.require_suitable_sqlite(version)
    assert caught.value.details["version"] == ".".join(map(str, version))


def failure(code: int, name: str, kind: type[Exception] = driver.OperationalError) -> Exception:
    error = kind("disk I/O: a text that may hold data")
    error.sqlite_errorcode = code  # type: ignore[attr-defined]  # as the driver sets it
    error.sqlite_errorname = name  # type: ignore[attr-defined]  # same
    return error


@pytest.mark.parametrize(
    ("code", "name", "expected"),
    [
        (5, "SQLITE_BUSY", DatabaseBusy),
        (5 | 2 << 8, "SQLITE_BUSY_SNAPSHOT", DatabaseBusy),
        (13, "SQLITE_FULL", DatabaseFull),
        (11, "SQLITE_CORRUPT", DatabaseCorrupt),
        (26, "SQLITE_NOTADB", DatabaseCorrupt),
        (14, "SQLITE_CANTOPEN", DatabaseMissing),
        (8, "SQLITE_READONLY", StorageError),
        (99, "SQLITE_NEW", StorageError),
    ],
)
def test_each_code_has_its_error(code: int, name: str, expected: type[StorageError]) -> None:
    for error in (
        failure(code, name),
        OperationalError("SELECT secret", {}, failure(code, name)),
    ):
        translated = sqlite.translate(error)
        assert type(translated) is expected
        assert isinstance(translated, StorageError)
        assert translated.details["sqlite"] == name
        assert "data" not in str(translated).replace("database", "")
        assert "secret" not in str(translated)


def test_an_error_without_a_code_is_named_by_its_class() -> None:
    translated = sqlite.translate(driver.InterfaceError("odd"))
    assert type(translated) is StorageError
    assert translated.details == {"sqlite": "InterfaceError"}


@pytest.fixture
def connection(tmp_path: Path) -> Any:
    created = sqlite.connect(tmp_path / "some.db", busy_timeout_ms=1_000, create=True)
    yield created
    created.close()


def test_errors_that_are_not_the_drivers_pass(connection: Any) -> None:
    with pytest.raises(KeyError), sqlite.translated_errors():
        raise KeyError("mine")


def test_a_missing_file_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    with pytest.raises(DatabaseMissing), sqlite.translated_errors():
        sqlite.connect(path, busy_timeout_ms=100)
    assert not path.exists()


@pytest.mark.parametrize("name", ["a?mode=memory.db", "a#b.db", "a%20b.db"])
def test_any_name_of_a_file_is_that_file(tmp_path: Path, name: str) -> None:
    connection = sqlite.connect(tmp_path / name, busy_timeout_ms=100, create=True)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_every_connection_is_set_up_alike(connection: Any) -> None:
    def pragma(name: str) -> Any:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    assert [pragma(name) for name in ("foreign_keys", "trusted_schema", "synchronous")] == [1, 0, 2]
    assert connection.execute("SELECT vec_version()").fetchone()[0].startswith("v")
    with pytest.raises(driver.OperationalError):
        connection.execute("SELECT load_extension('x')")
