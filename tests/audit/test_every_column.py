"""One value of every column of every table is edited in turn: ``verify`` sees each."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from working import NAME, copy_folder, database_at, fill_the_rest, filled, tampering

from memgraph.audit.anchor import anchor_path
from memgraph.audit.verify import verify
from memgraph.store import sqlite, whole_tables

DOCS = Path(__file__).parents[2] / "docs" / "guides" / "audit.md"
DERIVED = ("memory_fts", "memory_vectors", "text_", "sqlite_")
"""Beginnings of the names of indexes, which have checks of their own."""
UNSEEN = [
    "memories.orchestrator_id",
    "memories.access_count",
    "memories.last_accessed_at",
    "memory_status.status_id",
]
"""The owner, which opening checks; uses; and numbers that SQLite gives out, of which only the order
matters."""
REST = ("INSERT INTO ingest_parts VALUES ('cc', 1, 'plan', 2, '[]', 3)",)


def fill_everything(path: Path) -> None:
    """Rows that closing an orchestrator would tidy up, in transactions as memgraph makes them."""
    database = database_at(path)
    fill_the_rest(database)
    with database.write() as connection:
        for statement in REST:
            connection.exec_driver_sql(statement)
    database.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with filled(tmp_path_factory.mktemp("template")) as (_, opened, _):
        folder = opened.paths.memory
    fill_everything(folder / "memory.db")
    return folder


@pytest.fixture
def edited(template: Path, tmp_path: Path) -> Path:
    return copy_folder(template, tmp_path / "memory")


def columns(path: Path) -> list[tuple[str, str]]:
    """Every column of every table that is no index."""
    with tampering(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return [
            (table, row[1])
            for (table,) in sorted(tables.fetchall())
            if not table.startswith(DERIVED)
            for row in connection.execute(f"PRAGMA table_info({table})")
        ]


def other(value: Any) -> Any:
    """Another value of the same kind, which a check of the schema may well let through."""
    if value is None:
        return 7
    if isinstance(value, str) and value[:1] in ("{", "["):
        return '{"edited":1}' if value[0] == "{" else '["edited"]'
    if isinstance(value, str):
        return (
            re.sub(r"[a-z0-9]", lambda item: "b" if item[0] != "b" else "c", value, count=1) + "x"
        )
    return b"x" + value if isinstance(value, bytes) else value + 1


def codes(path: Path) -> set[str]:
    database = database_at(path)
    try:
        return set(verify(database, anchor_path(database.path)).totals)
    finally:
        database.close()


def restored(template: Path, path: Path) -> None:
    for file in path.parent.glob("memory.db*"):
        file.unlink()
    shutil.copyfile(template / "memory.db", path)


def edit(path: Path, change: str, table: str, *values: Any) -> None:
    """Change the last row of a table that is not a mere column of NULLs, behind memgraph's back."""
    connection = sqlite.connect(path, busy_timeout_ms=5_000, synchronous="OFF")
    try:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        cursor = connection.execute(f"SELECT * FROM {table}")
        row = cursor.fetchall()[-1]
        where = " AND ".join(f"{name[0]} IS ?" for name in cursor.description)
        assert connection.execute(f"{change} WHERE {where}", (*values, *row)).rowcount == 1
    finally:
        connection.close()


def value_of(path: Path, table: str, column: str) -> Any:
    with tampering(path) as connection:
        cursor = connection.execute(f"SELECT * FROM {table}")
        names = [name[0] for name in cursor.description]
        return cursor.fetchall()[-1][names.index(column)]


def is_checked(table: str) -> bool:
    return table not in whole_tables.UNCOUNTED or table in ("audit_log", "table_digests")


def test_one_edited_value_of_every_column_is_seen(template: Path, edited: Path) -> None:
    assert codes(edited) == set()
    visible, passed = 0, []
    for table, column in columns(edited):
        if not is_checked(table):
            continue
        restored(template, edited)
        fresh = other(value_of(edited, table, column))
        edit(edited, f"UPDATE {table} SET {column} = ?", table, fresh)
        if codes(edited):
            visible += 1
        else:
            passed.append(f"{table}.{column}")
    assert passed == UNSEEN
    assert visible > 100


def test_one_removed_row_of_every_table_is_seen(template: Path, edited: Path) -> None:
    passed = []
    for table in dict(columns(edited)):
        if not is_checked(table):
            continue
        restored(template, edited)
        edit(edited, f"DELETE FROM {table}", table)
        if not codes(edited):
            passed.append(table)
    assert passed == []


def test_every_table_is_counted_or_documented_as_not(edited: Path) -> None:
    tables = set(dict(columns(edited)))
    existing = {*whole_tables.SEALED, *whole_tables.COUNTED, *whole_tables.UNCOUNTED}
    assert tables == existing
    text = DOCS.read_text("utf-8")
    for table in whole_tables.UNCOUNTED:
        assert f"| `{table}` |" in text
    for table in whole_tables.COUNTED:
        assert f"`{table}`" in text


def test_removed_digests_do_not_make_it_unknown(template: Path, edited: Path) -> None:
    with tampering(edited) as connection:
        connection.execute("DELETE FROM table_digests")
    assert {"table.edited", "table.unsealed"} <= codes(edited)


@pytest.mark.parametrize(
    ("made_to_fit", "code"), [(False, "table.edited"), (True, "table.unsealed")]
)
def test_edited_tables_are_reported_until_an_operator_accepts_them(
    tmp_path: Path, made_to_fit: bool, code: str
) -> None:
    with filled(tmp_path) as (service, opened, _):
        with tampering(opened.paths.database) as connection:
            connection.execute("DELETE FROM memory_derivations")
        if made_to_fit:
            with opened.database.write() as transaction:
                whole_tables.renew(transaction)
        orc = service.orchestrator(NAME)
        for _ in range(2):
            assert orc.verify().totals == {code: 1}
            orc.remember("The lighthouse keeps its light.")
        orc.maintenance.accept_journal(reason="they were wrong")
        orc.remember("The lighthouse has a keeper.")
        assert orc.verify().ok
