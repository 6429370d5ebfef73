"""A store that is written to while it moves: the new one has what the old one had, row for row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as sqlite
import pytest
import sqlalchemy as sa
from service_workers import NAME, Process
from test_concurrency import work_until
from working import SEES_ALL, fill, fill_the_rest, working

from memgraph import MemoryService
from memgraph.errors import (
    Conflict,
    DatabaseCorrupt,
    DatabaseMissing,
    DatabaseReplaced,
    JournalBroken,
    SchemaOutdated,
    StorageError,
)
from memgraph.model.erasure import ErasureReport
from memgraph.operations.maintenance import move
from memgraph.operations.maintenance.move import MoveReport
from memgraph.store import postgres
from memgraph.store.engine import store_of
from memgraph.store.postgres.stores import PostgresStore
from memgraph.store.sqlite.stores import SqliteStore
from tests.postgres_servers import drop_schemas

SCHEMA = f"memgraph_{NAME}"
DIRECTIONS = ["to a server", "to a file", "between servers"]
between_engines = pytest.mark.parametrize("direction", DIRECTIONS[:2], indirect=True)


def execute(url: str, statement: str) -> None:
    with closing(postgres.connect(postgres.checked_url(url))) as connection:
        connection.execute(statement)


@pytest.fixture
def url(postgres_url: str) -> Iterator[str]:
    yield postgres_url
    drop_schemas(postgres_url)


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
        return move.move(paths, self.target, source=self.source, clock=clock)

    def run_with(self, *steps: Callable[[], object]) -> MoveReport:
        """Move, and do a step before each round that holds no lock."""
        rounds, follow = count(), move._Follower.catch_up

        def followed(follower: move._Follower) -> int:
            number = next(rounds)
            if number < len(steps):
                steps[number]()
            return follow(follower)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(move, "ROUNDS", len(steps))
            patched.setattr(move, "LAST_ROWS", -1)
            patched.setattr(move._Follower, "catch_up", followed)
            return self.run()

    def tamper(self, statement: str) -> None:
        """Change the store in use behind the back of memgraph."""
        if self.source:
            execute(self.source, f'SET search_path TO "{SCHEMA}"; {statement}')
            return
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
    """Return every row of a store with its number, by table, and the last numbers."""
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
    # The order in which tables had their first row.
    rows["sqlite_sequence"] = sorted(row[1:] for row in rows["sqlite_sequence"])
    return rows


def both(moving: Move, source: str, report: MoveReport, folder: Path) -> tuple[Rows, Rows]:
    """Return the rows of the store that was left, and those of the new one."""
    assert report.left is not None
    old: Any = SqliteStore(Path(report.left) / "memory.db", NAME)
    if source:
        old = PostgresStore(postgres.checked_url(source), NAME, report.left)
    new = store_of(moving.service.paths(NAME), moving.target)
    return rows_of(old, folder / "old.db"), rows_of(new, folder / "new.db")


def work(moving: Move) -> None:
    """Change rows of many tables, add some and remove some, as every day does."""
    orc = moving.orc
    kept = orc.remember("The lab moved to Oslo.", importance=70)
    lost = orc.remember("The lab is in 東京 with Kenji.", scope="project", scope_id="p")
    edge = orc.relate(kept, "Contradicts", lost)
    orc.contradictions.resolve(edge, winner=kept, reason="it moved")
    orc.correct(kept, "The lab moved to Bergen.", reason="a slip")
    for number in range(3):
        orc.save_episode(f"Ada said {number}.", session_id="s-9", source_role="Ada")
    orc.sources.trust("path", "/drop/a.txt", "low", reason="old")
    orc.recall("Where is the lab?")
    orc.bulletin()
    orc.settle()
    orc.maintenance.embed_pending()
    with moving.service.opened(NAME) as opened:
        opened.write_down()


REMOVALS = (
    "DELETE FROM entity_aliases WHERE alias_key = 'the city'",
    "DELETE FROM ingest_files WHERE sha256 = 'bb'",
    "UPDATE ingest_files SET path = '/moved' WHERE sha256 = 'aa'",
    "DELETE FROM recall_items",
    "DELETE FROM recalls",
    "DELETE FROM memory_supports",
    "DELETE FROM events",
    "DELETE FROM echo_lines",
    "DELETE FROM memory_vector_changes",
    "DELETE FROM job_runs",
    "UPDATE memory_embeddings SET attempts = attempts + 1",
    # In the place of the removed row is another one of the same content.
    "DELETE FROM source_trust WHERE name = 'a'",
    "INSERT INTO source_trust VALUES ('path', 'a', 'low', 3, 9, 'ada', 'why')",
    "UPDATE memories SET access_count = access_count + 5, last_accessed_at = 77",
    "UPDATE memories SET tags = '[\"north\"]' WHERE pk = 2",
)


def write(moving: Move, *statements: str) -> None:
    with moving.service.opened(NAME) as opened, opened.database.write() as transaction:
        for statement in statements:
            transaction.exec_driver_sql(statement)


def test_the_new_store_has_what_was_written_meanwhile(moving: Move, tmp_path: Path) -> None:
    source = moving.source
    report = moving.run_with(
        lambda: work(moving),
        lambda: write(moving, *REMOVALS),
        lambda: moving.orc.maintenance.rebuild(),
        lambda: moving.orc.entities.merge("Oslo", "Berlin", reason="a test"),
        # As it was journalled.
        lambda: write(moving, "UPDATE memories SET tags = '[]' WHERE pk = 2"),
    )
    old, new = both(moving, source, report, tmp_path)
    assert sorted(old) == sorted(new)
    for name, rows in old.items():
        assert new[name] == rows, name
    orc = moving.reopened()
    assert orc.verify().findings == []
    assert report.memories == len(new["memories"])
    texts = [item.memory.content for item in orc.recall("Where is the lab?").items]
    assert "The lab moved to Bergen." in texts
    # Numbers go on behind the old ones, and the indexes with the rows.
    work(moving)
    assert orc.verify().findings == []


@between_engines
def test_writers_of_other_processes_go_on(moving: Move, tmp_path: Path) -> None:
    orc = moving.orc
    # The copy has to take longer than a round.
    turn = {"kind": "episode", "session_id": "s-1"}
    orc.remember_many([{"content": f"The door {at} is locked.", **turn} for at in range(3_000)])
    orc.maintenance.embed_pending()
    source = moving.source
    moving.service.forget(NAME)
    with Process(moving.service.root, tmp_path / "told", moving=True) as process:
        work_until([process], 10)
        began, before = time.monotonic(), len(process.acknowledged)
        report = moving.run()
        whole_ms, during = (time.monotonic() - began) * 1000, len(process.acknowledged) - before
        work_until([process], before + during + 30)
        assert process.finish() == 0
    assert moving.source == moving.target != source
    assert during > 10
    assert report.paused_ms < whole_ms / 3
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


@between_engines
@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("UPDATE memories SET content = 'The office is in Rome.' WHERE pk = 1", "memories"),
        ("UPDATE memories SET access_count = 1000 WHERE pk = 1", "memory_uses"),
        ("UPDATE entities SET summary = 'a city' WHERE pk = 1", "entities"),
    ],
)
def test_a_row_that_something_else_changes_meanwhile_is_found(
    moving: Move, statement: str, table: str
) -> None:
    source = moving.source
    with pytest.raises(DatabaseCorrupt) as caught:
        moving.run_with(lambda: moving.orc.remember("As always."), lambda: moving.tamper(statement))
    assert caught.value.details["tables"] == [table]
    assert moving.source == source
    assert not moving.service.paths(NAME).moving.exists()


@between_engines
def test_a_journal_that_is_cut_meanwhile_is_found(moving: Move) -> None:
    def cut() -> None:
        moving.orc.remember("As always.")
        moving.tamper("DELETE FROM audit_log WHERE seq > 5")

    with pytest.raises((JournalBroken, DatabaseCorrupt)):
        moving.run_with(cut)
    assert not moving.service.paths(NAME).moving.exists()


@between_engines
def test_an_upgrade_ends_the_move(moving: Move) -> None:
    def downgrade() -> None:
        moving.tamper("UPDATE alembic_version SET version_num = '0012'")

    with pytest.raises(SchemaOutdated):
        moving.run_with(downgrade)
    with pytest.raises(SchemaOutdated):
        moving.run()
    moving.tamper("UPDATE alembic_version SET version_num = '0013'")
    assert moving.is_unmoved()


@between_engines
def test_an_erasure_waits_for_the_move_and_is_repeated(moving: Move, tmp_path: Path) -> None:
    secret = moving.orc.remember("The safe opens with seven-three-nine-one.")
    source = moving.source
    erasures: list[Future[ErasureReport]] = []

    def erase() -> ErasureReport:
        report: ErasureReport = moving.orc.erasure.erase(
            memory_id=secret, reason="asked for", dry_run=False
        )
        return report

    with ThreadPoolExecutor() as pool:
        report = moving.run_with(
            lambda: erasures.append(pool.submit(erase)), lambda: time.sleep(0.2)
        )
        assert isinstance(erasures[0].exception(), DatabaseReplaced | DatabaseMissing)
    old, new = both(moving, source, report, tmp_path)
    assert old["memories"] == new["memories"]
    moving.reopened()
    done = erase()
    assert done.complete
    assert secret in done.memory_ids


def test_an_erasure_of_another_machine_ends_a_move_from_a_server(tmp_path: Path, url: str) -> None:
    environ = {"MEMGRAPH_STORAGE_URL": url}
    with (
        working(tmp_path / "root", environ=environ) as service,
        working(tmp_path / "other", environ=environ) as other,
    ):
        moving = Move(service, "")
        secret = service.orchestrator(NAME, create=True).remember("The safe opens with 7391.")
        orc = other.orchestrator(NAME)
        with pytest.raises(Conflict, match="erased"):
            moving.run_with(
                lambda: orc.erasure.erase(memory_id=secret, reason="asked for", dry_run=False)
            )
        assert moving.source == url
        assert not service.paths(NAME).database.exists()
        assert not service.paths(NAME).moving.exists()


KILLED = """
import os, signal, sys
from importlib import import_module
from memgraph import MemoryService
from memgraph.operations.maintenance import move
place, after, root, target = sys.argv[1:]
module, name = place.split(":")
module, before = import_module(module), getattr(import_module(module), name)
calls = 0
def kill(*args, **more):
    global calls
    calls += 1
    if calls > int(after):
        os.kill(os.getpid(), signal.SIGKILL)
    return before(*args, **more)
setattr(module, name, kill)
with MemoryService(root, background=False, environ={}) as service:
    begin = move._Follower.__init__
    def write(*args):
        begin(*args)
        service.orchestrator("orc-1").remember("This was said during the copy.")
    move._Follower.__init__ = write
    source = service.settings("orc-1").memory.storage.url
    move.move(service.paths("orc-1"), target, source=source, clock=service.clock)
"""


@between_engines
@pytest.mark.parametrize(
    ("place", "after"),
    [
        # In the midst of the first round, in the midst of the last one, and behind it.
        ("memgraph.store.whole_tables:unexplained", 0),
        ("memgraph.store.whole_tables:unexplained", 1),
        ("memgraph.operations.maintenance.move:_check_journal", 0),
    ],
)
def test_a_move_that_is_killed_in_a_round_is_repeated(
    moving: Move, place: str, after: int, tmp_path: Path
) -> None:
    source = moving.source
    moving.service.forget(NAME)
    command = [sys.executable, "-c", KILLED, place, str(after), str(moving.service.root)]
    killed = subprocess.run([*command, moving.target], timeout=120, env=os.environ)
    assert killed.returncode == -signal.SIGKILL
    assert moving.source == source
    with suppress(StorageError):
        moving.orc.memories.counts()
    memory_id = moving.orc.remember("This was said after the kill.")
    report = moving.run()
    old, new = both(moving, source, report, tmp_path)
    for name, rows in old.items():
        assert new[name] == rows, name
    orc = moving.reopened()
    assert orc.get(memory_id).content == "This was said after the kill."
    assert orc.recall("What was said during the copy?").items
    assert orc.verify().findings == []
