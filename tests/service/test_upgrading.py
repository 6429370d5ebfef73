"""A database of the first schema with a memory in it becomes one of today, and loses nothing."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from alembic import command
from alembic.config import Config
from working import NAME, filled, tampering, without_states, working

from memgraph.audit import anchor
from memgraph.audit.findings import FindingCode
from memgraph.audit.journal import JournalHead
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.model.enums import MemoryKind
from memgraph.model.tables import metadata
from memgraph.operations.exchange.operations import export_lines
from memgraph.operations.exchange.records import RECORDS, encode
from memgraph.operations.maintenance import maintenance
from memgraph.operations.write import writer as writing
from memgraph.paths import OrchestratorPaths
from memgraph.store import embeddings, sqlite
from memgraph.store import migrations as migrating
from memgraph.store.metadata import SCHEMA_HEAD
from memgraph.store.snapshot import Snapshot
from memgraph.store.sqlite import provision
from memgraph.store.sqlite.engine import ENGINE
from memgraph.store.text_index import search_terms

OLD_EXPORT = Path(__file__).parent / "export_of_schema_0001.jsonl"
LINES = [json.loads(line) for line in OLD_EXPORT.read_bytes().splitlines()]
TABLES = {record.name: record.table.name for record in RECORDS}


def old_database(paths: OrchestratorPaths) -> None:
    """What stands in the export, in a file of the schema that it is from."""
    for folder in paths.folders:
        folder.mkdir(parents=True, exist_ok=True)
    connection = sqlite.connect(paths.database, busy_timeout_ms=100, create=True)
    connection.execute(f"PRAGMA application_id = {provision.APPLICATION_ID}")
    connection.execute("PRAGMA journal_mode = WAL")
    with provision.writing(connection) as wrapped:
        migrating.upgrade(wrapped, ENGINE, "0001")
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO memory_metadata (key, value) VALUES (?, ?)",
        [
            ("orchestrator_id", NAME),
            ("created_at", "1767225600000"),
            ("embedding_dimensions", "16"),
        ],
    )
    connection.execute(
        "CREATE VIRTUAL TABLE memory_vectors USING vec0("
        "memory_pk INTEGER PRIMARY KEY, embedding bit[16], visibility INTEGER)"
    )
    for line in LINES[1:-1]:
        insert(connection, TABLES[line["record"]], dict(line))
    connection.execute("COMMIT")
    connection.close()
    with provision.alone(paths.database) as queue:
        embeddings.enqueue_missing(queue)
    anchor.write(
        anchor.anchor_path(paths.database), JournalHead(LINES[-2]["seq"], LINES[-2]["hash"])
    )


def insert(connection: Any, table: str, values: dict[str, Any]) -> None:
    del values["record"]
    if table == "memories":
        values |= {"orchestrator_id": NAME, "search_terms": search_terms(values["content"])}
    if table == "memory_entities":
        for kind, of in (("memory", "memories"), ("entity", "entities")):
            [(pk,)] = connection.execute(
                f"SELECT pk FROM {of} WHERE {kind}_id = ?", (values.pop(f"{kind}_id"),)
            )
            values[f"{kind}_pk"] = pk
    texts = {
        key: json.dumps(value) if isinstance(value, list | dict) else value
        for key, value in values.items()
    }
    connection.execute(
        f"INSERT INTO {table} ({', '.join(texts)}) VALUES ({', '.join('?' * len(texts))})",
        list(texts.values()),
    )


MADE_ANEW = {"memory_metadata", "memory_embeddings", "memory_vector_changes", "table_digests"}


def everything(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with provision.inspected(path) as connection:
        return {
            name: sorted(connection.driver.execute(f"SELECT * FROM {name}"), key=repr)
            for name in metadata.tables
            if name not in MADE_ANEW
        }


@pytest.fixture
def paths(tmp_path: Path) -> OrchestratorPaths:
    found = OrchestratorPaths(tmp_path / "old", NAME)
    old_database(found)
    return found


def test_a_memory_of_the_first_schema_is_upgraded_with_all_that_it_holds(
    paths: OrchestratorPaths, tmp_path: Path
) -> None:
    with working(tmp_path / "old") as service:
        assert service.health(NAME)["code"] == "storage.schema_outdated"
        report = maintenance.upgrade(paths, service.clock)
        assert (report.before, report.after) == ("0001", SCHEMA_HEAD)
        assert service.health(NAME)["status"] == "ready"
        orc = service.orchestrator(NAME)
        assert orc.verify().ok
        # What was not consolidated waits for it, as a session that is over.
        first = {one.session_id: one for one in orc.sessions.list(pending=True)}
        assert list(first) == ["first"]
        assert first["first"].completed_at == first["first"].last_seen_at
        service.forget(NAME)
        upgraded = everything(paths.database)
    with working(tmp_path / "new") as service:
        service.import_lines(NAME, io.BytesIO(OLD_EXPORT.read_bytes()))
        service.forget(NAME)
        assert everything(service.paths(NAME).database) == upgraded
    with working(tmp_path / "old") as service:
        orc = service.orchestrator(NAME)
        found = orc.recall("Where does Anna Weber live?").items
        assert "Anna Weber lives in Porto." in [each.memory.content for each in found]
        orc.save_episode("Another turn.", session_id="first", source_role="user")
        assert next(one for one in orc.sessions.list() if one.session_id == "first").pending == 3
        assert orc.jobs.run("consolidation").state.value == "done"
        assert orc.verify().ok


def test_vectors_are_rounded_and_know_who_may_see_them(tmp_path: Path) -> None:
    given = np.random.default_rng(1).normal(size=(8, 16)).astype("<f4")
    given /= np.linalg.norm(given, axis=1, keepdims=True)
    with working(tmp_path) as service:
        orc = service.orchestrator(NAME, create=True)
        ids = [orc.remember(f"Note {number}.") for number in range(8)]
        orc.retract(ids[5], reason="wrong")
        orc.maintenance.embed_pending()
        path = service.paths(NAME).database
        service.forget(NAME)
        with provision.alone(path) as connection:
            config = migrating_config(connection)
            command.downgrade(config, "0010")
            raw: Any = connection.driver
            raw.executemany(
                "UPDATE memory_embeddings SET vector = ?, model = 'fake', dimensions = 16,"
                " state = 'ready' WHERE memory_pk = ?",
                [(vector.tobytes(), pk) for pk, vector in enumerate(given, start=1)],
            )
            raw.execute("UPDATE memory_embeddings SET vector = x'0102' WHERE memory_pk = 8")
            command.upgrade(config, "head")
            faulty = [each.pk for each in embeddings.index(connection).check()]
            [stored] = connection.exec_driver_sql(
                "SELECT CAST(group_concat(vector, '') AS BLOB) FROM memory_embeddings"
                " WHERE memory_pk < 8"
            )
            [waiting] = connection.exec_driver_sql(
                "SELECT count(*) FROM memory_embeddings WHERE state <> 'ready'"
            )
    assert faulty == [8]
    assert waiting == (0,)
    assert np.array_equal(
        np.frombuffer(stored[0], np.int8).reshape(7, 16), embeddings.quantized(given[:7])
    )


def test_a_downgrade_and_an_upgrade_leave_nothing_for_verify_to_find(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        for number in range(int(SCHEMA_HEAD) - 1, 0, -1):
            service.forget(NAME)
            with provision.alone(opened.paths.database) as connection:
                command.downgrade(migrating_config(connection), f"{number:04}")
            report = maintenance.upgrade(opened.paths, service.clock)
            assert int(report.before) == number
            orc = service.orchestrator(NAME)
            assert orc.verify().findings == []
            orc.remember(f"Written again after schema {number}.")
            assert orc.verify().findings == []


def test_alembic_alone_seals_the_tables_after_an_upgrade(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        service.forget(NAME)
        with provision.alone(opened.paths.database) as connection:
            command.downgrade(migrating_config(connection), "0012")
            command.upgrade(migrating_config(connection), "head")
        assert service.orchestrator(NAME).verify().findings == []


def test_an_upgrade_says_from_which_entry_the_tables_are_sealed_anew(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        service.forget(NAME)
        with provision.alone(opened.paths.database) as connection:
            before = connection.exec_driver_sql("SELECT max(seq) FROM audit_log").scalar()
            command.downgrade(migrating_config(connection), "0012")
            connection.exec_driver_sql("UPDATE memories SET tags = '[\"older\"]' WHERE pk = 1")
        report = maintenance.upgrade(opened.paths, service.clock)
        assert report.sealed_at == before + 1
        orc = service.orchestrator(NAME)
        assert orc.verify().findings == []
        assert maintenance.upgrade(opened.paths, service.clock).sealed_at is None
        service.forget(NAME)
        with tampering(opened.paths.database) as raw:
            raw.execute("UPDATE audit_log SET state = NULL WHERE seq = ?", (before,))
        found = {each.code for each in service.orchestrator(NAME).verify().findings}
        assert found == {FindingCode.JOURNAL_ENTRY_CHANGED}


def migrating_config(connection: Snapshot) -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrating.migrations_folder()))
    config.attributes["connection"] = connection.connection
    return config


def test_vectors_of_an_earlier_export_are_rounded(tmp_path: Path) -> None:
    with filled(tmp_path / "one") as (service, opened, _):
        service.orchestrator(NAME).maintenance.embed_pending()
        service.forget(NAME)
        without_states(opened.paths.database)
        with service.opened(NAME) as opened:
            lines = [json.loads(line) for line in export_lines(opened, with_vectors=True)]
    lines[0]["schema"] = "0010"
    for line in lines:
        if line["record"] == "journal":
            assert line.pop("state") is None
    stored = []
    for line in lines:
        if line["record"] == "embedding":
            codes = np.frombuffer(base64.b64decode(line["vector"]), np.int8)
            unit = (codes / np.linalg.norm(codes)).astype("<f4")
            line["vector"] = base64.b64encode(unit.tobytes()).decode()
            stored.append(codes.tobytes())
    body = [encode(line).encode() + b"\n" for line in lines[:-1]]
    lines[-1]["sha256"] = hashlib.sha256(b"".join(body[1:])).hexdigest()
    body.append(encode(lines[-1]).encode() + b"\n")
    with working(tmp_path / "two") as service:
        service.import_lines(NAME, io.BytesIO(b"".join(body)))
        with service.opened(NAME) as opened, opened.database.read() as connection:
            found = connection.exec_driver_sql(
                "SELECT vector FROM memory_embeddings ORDER BY memory_pk"
            ).scalars()
            assert list(found) == stored
            assert len(stored) == 7
        assert service.orchestrator(NAME).verify().ok


def test_every_upgrade_has_the_indexes_that_statements_name(tmp_path: Path) -> None:
    """``INDEXED BY`` is an error where there is no such index, not a slower way."""
    path = tmp_path / "upgraded.db"
    connection = sqlite.connect(path, busy_timeout_ms=100, create=True)
    for revision in ("0004", "0005", SCHEMA_HEAD):
        with provision.writing(connection) as wrapped:
            migrating.upgrade(wrapped, ENGINE, revision)
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    connection.close()
    wanted = {index.name for table in metadata.tables.values() for index in table.indexes}
    assert wanted
    assert wanted <= found


INFERRED = {"captured_by": "extractor"}


def before_rates(root: Path) -> dict[str, str]:
    """A store as schema 0007 has it, where every fact decays; gives ids by what they are."""
    with (
        patch.object(writing, "rate_of", lambda kind, **_: 0.1 if kind is MemoryKind.FACT else 0.0),
        working(root) as service,
    ):
        orc = service.orchestrator(NAME, create=True)
        said = {
            "typed": {},
            "hosted": {"source": {"captured_by": "system"}},
            "from a file": {"source": INFERRED | {"source_type": "ingest_file"}},
            "preferred": {"source": INFERRED, "type": "Preference"},
            "important": {"source": INFERRED, "importance": 80},
            "superseded": {},
            "inferred": {"source": INFERRED},
        }
        ids = {name: orc.remember(f"The lamp is {name}.", **one) for name, one in said.items()}  # type: ignore[arg-type]  # by keyword
        orc.correct(ids["superseded"], "The lamp is replaced.", reason="newer")
        for role in ("Ann", "bot", "model"):
            turn = orc.save_episode("The lamp is old.", session_id=role, source_role=role)
            attributes = {"quote": "The lamp is old."} | ({"model": "m"} if role == "model" else {})
            ids[role] = orc.remember(
                f"{role}: “The lamp is old.”",
                source=INFERRED | {"source_type": "channel_transcript"},
                attributes=attributes,
                derived_from=[turn],
            )
        service.clock.advance(days=3)  # type: ignore[attr-defined]  # a fixed one
        orc.recall("lamp")
        path = service.paths(NAME).database
    without_states(path)
    config = Config()
    folder = str(migrating.migrations_folder())
    config.set_main_option("script_location", folder.replace("%", "%%"))
    with provision.alone(path) as connection:
        config.attributes["connection"] = connection.connection
        command.downgrade(config, "0007")
    return ids


def test_existing_rates_follow_the_origin_and_what_was_stays(tmp_path: Path) -> None:
    ids = before_rates(tmp_path / "old")
    later = FixedClock()
    later.advance(days=4)
    with working(tmp_path / "old", clock=later) as service:
        maintenance.upgrade(service.paths(NAME), service.clock)
        orc = service.orchestrator(NAME)
        rates = {name: orc.get(one).decay_rate for name, one in ids.items()}
        assert {name for name, rate in rates.items() if rate} == {"inferred", "bot", "model"}
        assert {rate for rate in rates.values() if rate} == {0.1}
        assert orc.verify().ok
        values = orc.history.get(ids["typed"]).values
        assert [each.decay_rate for each in values] == [0.1, 0.0]
        assert orc.get(ids["typed"]).updated_at == orc.get(ids["inferred"]).updated_at
        then = orc.recall("lamp", as_of=later.now_ms() - MS_PER_DAY)
        facts = [each.memory for each in then.items if each.memory.kind == "fact"]
        assert {each.decay_rate for each in facts} == {0.1}
        assert orc.receipts.replay(
            orc.receipts.list().receipts[-1].receipt_id, query="lamp"
        ).same_digest
        with service.opened(NAME) as opened, opened.database.read() as connection:
            told = connection.exec_driver_sql(
                "SELECT actor, subject, details FROM audit_log WHERE action = 'rates'"
            ).fetchall()
        assert told == [("migration", None, '{"memories":8}')]
        lines = b"".join(orc.exchange.export_lines())
    with working(tmp_path / "copy", clock=later) as service:
        service.import_lines(NAME, io.BytesIO(lines))
        copy = service.orchestrator(NAME)
        assert {name: copy.get(one).decay_rate for name, one in ids.items()} == rates
        assert copy.verify().ok
