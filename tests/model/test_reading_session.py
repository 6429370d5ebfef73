"""``MemoryService.session``: it reads all, changes nothing and is in nobody's way."""

from __future__ import annotations

import hashlib
from itertools import product
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError
from sqlmodel import Session, func, select

from memgraph import MemoryService, MemoryStatus, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import (
    DatabaseForeign,
    DatabaseMissing,
    InvalidInput,
    OrchestratorMissing,
    SchemaUnknown,
)
from memgraph.ids import CountingIds
from memgraph.model.tables import MemoryRow, SourceRow

SECRET = "The vault opens with the numbers nine, four and seven."


def _created(service: MemoryService) -> MemoryService:
    service.create("orc-1")
    return service


def contents(session: Session) -> list[str]:
    return list(session.exec(select(MemoryRow.content).order_by(MemoryRow.pk)))


def test_no_statement_and_no_object_is_written(service: MemoryService, orc: Orchestrator) -> None:
    orc.remember("The gate closes at nine.")
    statements = ("UPDATE memories SET content = 'x'", "CREATE TABLE mine (x)")
    with service.session(orc.name) as session:
        # SQLite's flag can be taken off; the file stays opened for reading alone.
        for pragma, statement in product(("ON", "OFF"), statements):
            session.connection().exec_driver_sql(f"PRAGMA query_only = {pragma}")
            with pytest.raises(OperationalError, match="readonly database"):
                session.connection().exec_driver_sql(statement)
        assert contents(session) == ["The gate closes at nine."]
        session.exec(select(MemoryRow)).one().status = MemoryStatus.RETRACTED
        with pytest.raises(OperationalError, match="readonly database"):
            session.commit()
        session.rollback()
        session.add(SourceRow(source_id="src_x", source_type="manual", captured_by="user"))
        with pytest.raises(OperationalError, match="readonly database"):
            session.commit()
    assert [list_memory.status for list_memory in orc.memories.list()] == [MemoryStatus.ACTIVE]


def test_it_hides_nothing(service: MemoryService, orc: Orchestrator) -> None:
    orc.remember("For everybody.")
    orc.remember("For few.", sensitivity="Restricted")
    orc.remember("For one task.", scope="session", scope_id="t-1")
    orc.retract(orc.remember("Taken back."), reason="wrong")
    with service.session(orc.name) as session:
        assert contents(session) == ["For everybody.", "For few.", "For one task.", "Taken back."]


def test_it_reads_a_closed_orchestrator_and_leaves_its_file_as_it_is(tmp_path: Path) -> None:
    with MemoryService(tmp_path, environ={}) as service:
        service.orchestrator("orc-1", create=True).remember("The gate closes at nine.")
    database = service.paths("orc-1").database
    before = hashlib.sha256(database.read_bytes()).digest()

    # With work to do in the background, which opening the orchestrator would begin.
    with MemoryService(tmp_path, environ={}) as service:
        with service.session("orc-1") as session:
            assert contents(session) == ["The gate closes at nine."]
        with service.pool.if_open("orc-1") as opened:
            assert opened is None
    assert hashlib.sha256(database.read_bytes()).digest() == before
    with MemoryService(tmp_path, environ={}) as service:
        assert service.orchestrator("orc-1").verify().ok
        service.session("orc-1").close()
    # The last connection to close folds the WAL and removes it: no session holds one.
    names = {path.name for path in service.paths("orc-1").memory.iterdir()}
    assert not {"memory.db-wal", "memory.db-shm"} & names


def test_an_idle_session_holds_up_no_writer_and_no_erasure(
    service: MemoryService, orc: Orchestrator
) -> None:
    secret = orc.remember(SECRET)
    with service.session(orc.name) as session:
        row = session.exec(select(MemoryRow)).one()
        assert row.content == SECRET

        orc.remember("The gate closes at nine.")
        report = orc.erasure.erase(memory_id=secret, reason="asked for", dry_run=False)
        assert (report.unfinished, report.remains) == ((), ())
        # What was loaded is the reader's copy, until it is read anew.
        assert row.content == SECRET
        session.refresh(row)
        assert (row.content, row.status) == ("", MemoryStatus.RETRACTED)
        assert contents(session) == ["", "The gate closes at nine."]


def test_begin_makes_one_snapshot_which_an_erasure_waits_for(
    tmp_path: Path, clock: FixedClock
) -> None:
    config = {"memory.storage.busy_timeout_ms": 100}
    with (
        MemoryService(tmp_path, config=config, clock=clock, background=False) as service,
        _created(service).session("orc-1") as session,
    ):
        orc = service.orchestrator("orc-1")
        secret = orc.remember(SECRET)
        session.execute(sa.text("BEGIN"))
        assert contents(session) == [SECRET]
        orc.remember("The gate closes at nine.")
        assert session.exec(select(func.count()).select_from(MemoryRow)).one() == 1
        report = orc.erasure.erase(memory_id=secret, reason="asked for", dry_run=False)
        assert "database.in_use" in report.unfinished

        session.commit()
        assert contents(session) == ["", "The gate closes at nine."]
        assert orc.erasure.erase(memory_id=secret, reason="asked for", dry_run=False).complete


def test_what_cannot_be_opened_is_named(tmp_path: Path, clock: FixedClock) -> None:
    with MemoryService(tmp_path, clock=clock, ids=CountingIds(), environ={}) as service:
        with pytest.raises(OrchestratorMissing):
            service.session("nobody")
        with pytest.raises(InvalidInput):
            service.session("../orc-1")
        for name in ("orc-1", "orc-2", "orc-3"):
            service.create(name)
        paths = {name: service.paths(name).database for name in ("orc-1", "orc-2", "orc-3")}
    paths["orc-1"].write_bytes(paths["orc-2"].read_bytes())
    with pytest.raises(DatabaseForeign):
        service.session("orc-1")
    paths["orc-2"].unlink()
    with pytest.raises(DatabaseMissing):
        service.session("orc-2")
    engine = sa.create_engine(f"sqlite:///{paths['orc-3']}")
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    engine.dispose()
    with pytest.raises(SchemaUnknown):
        service.session("orc-3")
