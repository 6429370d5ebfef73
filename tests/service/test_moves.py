"""A store that moves has what it had, row for row; its writers wait, and then find it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as sqlite
import pytest
import sqlalchemy as sa
from service_workers import NAME, Process
from test_concurrency import work_until
from working import SEES_ALL, fill, fill_the_rest, working

from memgraph import MemoryService
from memgraph.errors import DatabaseCorrupt, SchemaUnknown
from memgraph.operations.maintenance.move import MoveReport, move
from memgraph.store import postgres
from memgraph.store.metadata import SCHEMA_HEAD
from memgraph.store.postgres import copies
from memgraph.store.postgres.stores import PostgresStore
from memgraph.store.sqlite.stores import SqliteStore
from memgraph.store.stores import store_of
from tests.postgres_servers import execute

DIRECTIONS = ["to a server", "to a file", "between servers"]
to_a_server = pytest.mark.parametrize("direction", DIRECTIONS[:1], indirect=True)
between_engines = pytest.mark.parametrize("direction", DIRECTIONS[:2], indirect=True)


@dataclass(frozen=True)
class Move:
    """An orchestrator whose store is about to move."""

    service: MemoryService
    target: str

    @property
    def source(self) -> str:
        return self.service.settings(NAME).memory.storage.url

    @property
    def orc(self) -> Any:
        return self.service.orchestrator(NAME, viewer=SEES_ALL)

    def run(self) -> MoveReport:
        paths, clock = self.service.paths(NAME), self.service.clock
        return move(paths, self.target, source=self.source, clock=clock)

    def tamper(self, statement: str) -> None:
        """Change the file in use behind the back of memgraph."""
        with closing(sqlite.connect(str(self.service.paths(NAME).database))) as connection:
            connection.execute(statement)
            connection.commit()

    def reopened(self) -> Any:
        """Return the orchestrator once the service knows where it lies now."""
        self.service.forget(NAME)
        return self.orc

    def is_unmoved(self) -> bool:
        """Return whether the store in use is whole, and nothing is left of the move."""
        paths = self.service.paths(NAME)
        is_free = self.target != "" or not paths.database.exists()
        drafts = list(paths.memory.glob(".draft-*"))
        return is_free and not drafts and not paths.moving.exists() and self.reopened().verify().ok


@pytest.fixture(params=DIRECTIONS)
def direction(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def moving(direction: str, tmp_path: Path, url: str) -> Iterator[Move]:
    name = f"elsewhere_{uuid.uuid4().hex}"
    elsewhere = sa.make_url(url).set(database=name).render_as_string()
    if direction == "between servers":
        execute(url, f"CREATE DATABASE {name}")
    with working(tmp_path / "root") as service:
        fill(service.orchestrator(NAME, create=True))
        with service.opened(NAME) as opened:
            fill_the_rest(opened.database)
        made = Move(service, url)
        if direction != "to a server":
            made.run()
            made = Move(service, elsewhere if direction == "between servers" else "")
        made.reopened()
        yield made
    if direction == "between servers":
        execute(url, f"DROP DATABASE {name} WITH (FORCE)")


Rows = dict[str, list[tuple[Any, ...]]]


def rows_of(store: Any, file: Path) -> Rows:
    """Return every row of a store with its number, by table."""
    store.back_up(file)
    with closing(sqlite.connect(str(file))) as connection:
        tables = connection.execute(
            "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
            " AND name <> 'sqlite_schema'"
        ).fetchall()
        rows = {}
        for name, has_no_number in tables:
            place = "" if has_no_number else "rowid, "
            order = "" if has_no_number else " ORDER BY rowid"
            rows[name] = connection.execute(f"SELECT {place}* FROM {name}{order}").fetchall()
    rows.pop("sqlite_sequence", None)
    return rows


def test_the_new_store_has_every_row_of_the_old_one(moving: Move, tmp_path: Path) -> None:
    source = moving.source
    report = moving.run()
    assert report.left is not None
    old: Any = SqliteStore(Path(report.left) / "memory.db", NAME)
    if source:
        old = PostgresStore(postgres.checked_url(source), NAME, report.left)
    before = rows_of(old, tmp_path / "old.db")
    after = rows_of(store_of(moving.service.paths(NAME), moving.target), tmp_path / "new.db")
    assert sorted(before) == sorted(after)
    for name, rows in before.items():
        assert after[name] == rows, name
    assert report.memories == len(after["memories"])
    orc = moving.reopened()
    assert orc.verify().findings == []
    # Numbers continue after the old ones, and the indexes are those of the rows.
    kept = orc.remember("The lab moved to Oslo.", importance=70)
    orc.correct(kept, "The lab moved to Bergen.", reason="a slip")
    orc.settle()
    texts = [item.memory.content for item in orc.recall("Where is the lab?").items]
    assert "The lab moved to Bergen." in texts
    assert orc.verify().findings == []


@between_engines
def test_writers_of_other_processes_wait_and_lose_nothing(moving: Move, tmp_path: Path) -> None:
    source = moving.source
    moving.service.forget(NAME)
    with Process(moving.service.root, tmp_path / "told", moving=True) as process:
        work_until([process], 10)
        moving.run()
        work_until([process], len(process.acknowledged) + 30)
        assert process.finish() == 0
    assert moving.source == moving.target != source
    orc = moving.reopened()
    assert orc.verify().findings == []
    with moving.service.opened(NAME) as opened, opened.database.read() as snapshot:
        memories = {
            row[0] for row in snapshot.exec_driver_sql("SELECT memory_id FROM memories").fetchall()
        }
        edges = {
            row[0]
            for row in snapshot.exec_driver_sql(
                "SELECT edge_id FROM memory_edges WHERE resolved_at IS NOT NULL"
            ).fetchall()
        }
    stored = process.acknowledged
    assert {memory_id for what, memory_id in stored if what == "memory"} <= memories
    assert {edge_id for what, edge_id in stored if what == "resolved"} <= edges


@to_a_server
def test_a_copy_that_differs_or_a_store_of_another_schema_is_not_used(
    moving: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = moving.source
    digest = copies._require_same

    def compare(name: str, rows: Any, written: Any) -> None:
        written = iter(written)
        if name == "memories":
            next(written)
        digest(name, rows, written)

    with monkeypatch.context() as patched:
        patched.setattr(copies, "_require_same", compare)
        with pytest.raises(DatabaseCorrupt, match="the copy of memories differs"):
            moving.run()
    assert moving.source == source
    assert moving.is_unmoved()
    revision = "UPDATE alembic_version SET version_num = '{}'"
    moving.tamper(revision.format("0000"))
    with pytest.raises(SchemaUnknown):
        moving.run()
    moving.tamper(revision.format(SCHEMA_HEAD))
    assert moving.is_unmoved()
