"""An export comes back as it was, byte for byte; an import lets nothing in that is not one."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from working import NAME, fill, fill_the_rest, filled, tampering, working

from memgraph import MemoryService
from memgraph.errors import (
    Conflict,
    DatabaseCorrupt,
    ImportRejected,
    OrchestratorExists,
)
from memgraph.model.tables import metadata
from memgraph.operations.exchange import imports as importing
from memgraph.operations.exchange import records as exchange_records
from memgraph.operations.maintenance import maintenance
from memgraph.operations.maintenance import rebuild as rebuilding
from memgraph.paths import OrchestratorPaths
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store.journal import chain_hash
from memgraph.store.sqlite import engine

Line = dict[str, Any]


def exported(service: MemoryService, **options: Any) -> list[bytes]:
    return list(service.orchestrator(NAME).exchange.export_lines(**options))


def import_new(service: MemoryService, name: str, data: bytes) -> importing.ImportReport:
    return importing.import_new(
        OrchestratorPaths(service.root, name),
        io.BytesIO(data),
        dimensions=16,
        clock=service.clock,
        actor="operator",
    )


# What is under way belongs to the processes that work on this very file.
UNDER_WAY = {
    "ingest_parts",
    "memory_vector_changes",
    "memory_comparisons",
    "table_digests",
}


def everything(opened: OpenOrchestrator) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables but those that a new database fills in its own way."""
    with engine.inspected(opened.paths.database) as connection:
        return {
            name: sorted(connection.driver.execute(f"SELECT * FROM {name}"), key=repr)
            for name in metadata.tables
            if name not in {"memory_metadata", "memory_embeddings"} | UNDER_WAY
        }


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    with filled(tmp_path_factory.mktemp("export")) as (service, opened, _):
        fill_the_rest(opened.database)
        return exported(service, with_vectors=True)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with working(tmp_path / "root") as made:
        yield made


def test_every_column_of_every_table_is_exported_or_made_anew() -> None:
    made_anew = {
        "memories": {"pk", "orchestrator_id", "search_terms"},
        "memory_status": {"status_id"},
        "entities": {"pk"},
        "ingest_pending_links": {"link_id"},
        "job_runs": {"renewed_at"},
        "memory_embeddings": {"state", "attempts", "next_attempt_at", "error_code", "visibility"},
    }
    keys = {"memory_pk": "memory_id", "entity_pk": "entity_id"}
    exported_tables = {record.table.name for record in exchange_records.RECORDS}
    assert exported_tables == set(metadata.tables) - {"memory_metadata"} - UNDER_WAY
    for record in exchange_records.RECORDS:
        columns = {keys.get(column.name, column.name) for column in record.table.c}
        assert columns - set(record.fields) == made_anew.get(record.table.name, set())


@pytest.mark.parametrize("with_vectors", [True, False])
def test_an_export_comes_back_byte_for_byte(tmp_path: Path, with_vectors: bool) -> None:
    with filled(tmp_path / "one") as (service, opened, _):
        fill_the_rest(opened.database)
        lines = exported(service, with_vectors=with_vectors)
        before = everything(opened)
    with working(tmp_path / "two") as service:
        service.clock.advance(days=3)  # type: ignore[attr-defined]  # the fixed clock of tests
        report = import_new(service, NAME, b"".join(lines))
        assert report.renamed_from is None
        assert report.records["memory"] == 7
        with service.opened(NAME) as opened:
            assert everything(opened) == before
            again = exported(service, with_vectors=with_vectors)
            assert again[1:] == lines[1:]
            assert json.loads(again[0]) | {"exported_at": ""} == json.loads(lines[0]) | {
                "exported_at": ""
            }
            verified = maintenance.verify(opened)
            assert verified.as_dict()["findings"] == []
            ready = rebuilding.embeddings_status(opened).states["ready"]
            assert ready == (7 if with_vectors else 0)
            if not with_vectors:
                assert service.orchestrator(NAME).maintenance.embed_pending().ready == 7
                assert maintenance.verify(opened).ok


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
contents = texts.filter(str.strip)
memories = st.fixed_dictionaries(
    {"content": contents},
    optional={
        "kind": st.sampled_from(["fact", "episode", "reflection"]),
        "confidence": st.floats(0, 1),
        "decay_rate": st.floats(0, 1000),
        "importance": st.integers(0, 100),
        "event_time": st.integers(-62_135_596_800_000, 253_402_300_799_999),
        "tags": st.lists(texts.filter(bool), max_size=3),
        "attributes": st.dictionaries(
            texts,
            st.none()
            | st.booleans()
            | st.integers(-(2**63), 2**63 - 1)
            | st.floats(allow_nan=False, allow_infinity=False)
            | texts,
            max_size=3,
        ),
        "session_id": texts.filter(bool),
        "source": st.fixed_dictionaries({"locator": texts.filter(bool)}),
    },
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(memories, min_size=1, max_size=6))
def test_any_contents_come_back(items: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder, working(Path(folder)) as service:
        orchestrator = service.orchestrator(NAME, create=True)
        outcomes = orchestrator.remember_many(items)
        assert {each.outcome for each in outcomes} <= {"stored", "duplicate"}
        with service.opened(NAME) as opened:
            lines = exported(service)
            before = everything(opened)
        import_new(service, "orc-2", b"".join(lines))
        with service.opened("orc-2") as opened:
            found = everything(opened)
            assert [row[5] for row in found["memories"]] == [row[5] for row in before["memories"]]
            assert found["memory_sources"] == before["memory_sources"]
            assert maintenance.verify(opened).ok


def test_an_empty_orchestrator_takes_an_import_and_a_full_one_does_not(
    export: list[bytes], service: MemoryService
) -> None:
    service.create(NAME)
    data = b"".join(export)
    with service.opened(NAME) as opened:
        importing.import_into(opened, io.BytesIO(data), actor="operator")
        assert maintenance.verify(opened).ok
        assert exported(service, with_vectors=True)[1:] == export[1:]
        with pytest.raises(Conflict):
            importing.import_into(opened, io.BytesIO(data), actor="operator")
    with pytest.raises(OrchestratorExists):
        import_new(service, NAME, data)


def test_a_file_is_private_and_not_overwritten(tmp_path: Path) -> None:
    with filled(tmp_path / "root") as (service, _, _):
        orc, file = service.orchestrator(NAME), tmp_path / "orc.jsonl"
        seen: list[int] = []
        report = orc.exchange.export(file, progress=seen.append)
        assert file.stat().st_mode & 0o777 == 0o600
        assert report.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
        assert report.as_dict()["records"]["memory"] == 7
        assert seen == [0]
        with pytest.raises(Conflict):
            orc.exchange.export(file)
        orc.exchange.export(file, force=True)
        assert {each.name for each in tmp_path.iterdir()} == {"root", "orc.jsonl"}


def test_a_row_that_json_cannot_hold_ends_the_export(tmp_path: Path) -> None:
    with filled(tmp_path / "root") as (service, opened, _):
        orc = service.orchestrator(NAME)
        with tampering(opened.paths.database) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute("UPDATE memories SET decay_rate = 9e999 WHERE pk = 1")
        with pytest.raises(DatabaseCorrupt):
            orc.exchange.export(tmp_path / "orc.jsonl")
        assert not (tmp_path / "orc.jsonl").exists()


def sealed(lines: list[bytes]) -> bytes:
    """Lines with an end that fits them, so that what is refused is not the digest."""
    body = lines[1:-1]
    end = {
        "record": "end",
        "records": len(body),
        "sha256": hashlib.sha256(b"".join(body)).hexdigest(),
    }
    return b"".join([lines[0], *body, json.dumps(end).encode() + b"\n"])


def index_of(lines: list[bytes], record: str) -> int:
    return next(at for at, line in enumerate(lines) if json.loads(line)["record"] == record)


def changed(target: str, **values: Any) -> Callable[[list[bytes]], tuple[bytes, int]]:
    """An export with one line changed; gives the number of that line too."""

    def change(lines: list[bytes]) -> tuple[bytes, int]:
        at = index_of(lines, target)
        line = json.loads(lines[at])
        line.update(values)
        line = {key: value for key, value in line.items() if value is not ...}
        fresh = [*lines[:at], json.dumps(line).encode() + b"\n", *lines[at + 1 :]]
        return sealed(fresh), at + 1

    return change


def at_first(
    record: str, change: Callable[[list[bytes]], tuple[bytes, int]]
) -> Callable[[list[bytes]], tuple[bytes, int]]:
    """The same change, which tells at the first line of another kind."""
    return lambda lines: (change(lines)[0], index_of(lines, record) + 1)


def raw(record: str, old: bytes, new: bytes) -> Callable[[list[bytes]], tuple[bytes, int]]:
    """An export with the bytes of one line changed."""

    def change(lines: list[bytes]) -> tuple[bytes, int]:
        at = index_of(lines, record)
        assert old in lines[at]
        fresh = [*lines[:at], lines[at].replace(old, new, 1), *lines[at + 1 :]]
        return sealed(fresh), at + 1

    return change


def twice(record: str) -> Callable[[list[bytes]], tuple[bytes, int]]:
    def change(lines: list[bytes]) -> tuple[bytes, int]:
        at = index_of(lines, record)
        return sealed([*lines[: at + 1], *lines[at:]]), at + 2

    return change


def without(record: str) -> Callable[[list[bytes]], tuple[bytes, int]]:
    """Where the line that is left out is missed: the first that refers to it."""

    def change(lines: list[bytes]) -> tuple[bytes, int]:
        at = index_of(lines, record)
        key = {"source": "source_id", "memory": "memory_id", "recall": "recall_id"}[record]
        value = json.loads(lines[at])[key].encode()
        left = [*lines[:at], *lines[at + 1 :]]
        refers = next(
            place
            for place, line in enumerate(left)
            if value in line and json.loads(line)["record"] not in ("journal", record)
        )
        return sealed(left), refers + 1

    return change


def swapped(lines: list[bytes]) -> tuple[bytes, int]:
    at = index_of(lines, "memory")
    edge = index_of(lines, "edge")
    return sealed([*lines[:at], lines[edge], *lines[at:edge], *lines[edge + 1 :]]), at + 2


def cut(lines: list[bytes]) -> tuple[bytes, int]:
    return b"".join(lines[:-1]), len(lines) - 1


def cut_inside(lines: list[bytes]) -> tuple[bytes, int]:
    return b"".join(lines)[: -len(lines[-1]) - 10], len(lines) - 1


def fewer(lines: list[bytes]) -> tuple[bytes, int]:
    return b"".join([*lines[:-2], lines[-1]]), len(lines) - 1


def more(lines: list[bytes]) -> tuple[bytes, int]:
    return b"".join([*lines, b"{}\n"]), len(lines) + 1


def other_digest(lines: list[bytes]) -> tuple[bytes, int]:
    return b"".join(lines).replace(b"they moved", b"they stayed", 1), 0


def huge(lines: list[bytes]) -> tuple[bytes, int]:
    at = index_of(lines, "memory")
    line = lines[at][:-2] + b" " * importing.MAX_LINE_BYTES + b"}\n"
    return sealed([*lines[:at], line, *lines[at + 1 :]]), at + 1


def deep(lines: list[bytes]) -> tuple[bytes, int]:
    at = index_of(lines, "memory")
    value = b"[" * 100_000 + b"]" * 100_000
    line = lines[at].replace(b'"tags":["place"]', b'"tags":' + value)
    return sealed([*lines[:at], line, *lines[at + 1 :]]), at + 1


def resealed(lines: list[bytes]) -> tuple[bytes, int]:
    """A journal that was rewritten as a whole: its chain fits, what it tells does not."""
    previous, fresh = "", []
    for line in lines:
        value = json.loads(line)
        if value["record"] == "journal":
            details = json.loads(value["details"])
            if details.get("content_hash"):
                details["content_hash"] = "0" * 64
            value["details"] = json.dumps(details)
            keys = ("seq", "at", "actor", "action", "subject", "details", "state")
            value["hash"] = previous = chain_hash(previous, *(value[key] for key in keys))
            line = json.dumps(value).encode() + b"\n"  # the changed line
        fresh.append(line)
    return sealed(fresh), 0


REFUSED: list[tuple[str, Callable[[list[bytes]], tuple[bytes, int]]]] = [
    ("header", lambda lines: (b"", 0)),
    ("header", lambda lines: (b"".join(lines[1:]), 1)),
    ("header", changed("header", format="something")),
    ("version", changed("header", version=2)),
    ("version", changed("header", schema="9999")),
    ("fields", changed("header", extra=1)),
    ("value", changed("header", orchestrator="../orc")),
    ("value", changed("memory", memory_id="x" * 32_001)),
    ("value", changed("header", embedding={"model": "m", "dimensions": 0})),
    ("fields", changed("header", embedding={"model": "m"})),
    ("value", at_first("embedding", changed("header", embedding={"model": "m", "dimensions": 20}))),
    ("record", at_first("embedding", changed("header", embedding=None))),
    ("syntax", raw("memory", b"{", b"[")),
    ("encoding", raw("memory", b"Berlin", b"Ber\xfflin")),
    ("duplicate_key", raw("memory", b'"kind"', b'"kind":"fact","kind"')),
    ("number", raw("memory", b'"importance":50', b'"importance":NaN')),
    ("number", raw("memory", b'"confidence":0.3', b'"confidence":1e999')),
    ("number", raw("memory", b'"importance":50', b'"importance":' + b"9" * 5_000)),
    ("value", raw("memory", b'"place"', b'"\\ud800"')),
    ("value", raw("memory", b'"place"', b'"a\\u0000b"')),
    ("value", changed("memory", tags=[1])),
    ("syntax", changed("memory", tags='["a"],"z":1')),
    ("duplicate_key", changed("memory", attributes='{"a":1,"a":2}')),
    ("record", changed("memory", record="table")),
    ("fields", changed("memory", colour="red")),
    ("fields", changed("memory", kind=...)),
    ("value", changed("memory", kind="thought")),
    ("value", changed("memory", content=None)),
    ("value", changed("memory", content="x" * 32_001)),
    ("value", changed("memory", importance=True)),
    ("value", changed("memory", created_at=2**62)),
    ("value", changed("memory", event_time="2026-01-01")),
    ("constraint", changed("memory", confidence=-0.1)),
    ("constraint", changed("memory", scope="project")),
    ("content_hash", changed("memory", content="The office is in Rome.")),
    ("constraint", changed("edge", weight=2.0)),
    ("dangling", changed("edge", to_memory_id="fact_nowhere")),
    ("dangling", changed("mention", memory_id="fact_nowhere")),
    ("dangling", changed("embedding", memory_id="fact_nowhere")),
    ("dangling", without("source")),
    ("dangling", without("memory")),
    ("dangling", without("recall")),
    ("value", changed("pending_link", outgoing=1)),
    ("value", changed("embedding", vector="not base64")),
    ("value", changed("embedding", vector=base64.b64encode(b"1234").decode())),
    ("value", changed("embedding", model=None)),
    ("journal", changed("journal", actor="somebody else")),
    ("journal", twice("journal")),
    ("duplicate", twice("memory")),
    ("duplicate", twice("embedding")),
    ("audit", changed("source", source_path="/elsewhere")),
    ("audit", changed("memory", event_time=1)),
    ("audit", changed("edge", edge_type="RelatedTo")),
    ("audit", twice("status")),
    ("audit", resealed),
    ("order", swapped),
    ("truncated", cut),
    ("syntax", cut_inside),
    ("truncated", fewer),
    ("digest", other_digest),
    ("trailing", more),
    ("line_too_long", huge),
    ("nesting", deep),
]


@pytest.mark.parametrize(
    ("reason", "change"), REFUSED, ids=[f"{at}-{reason}" for at, (reason, _) in enumerate(REFUSED)]
)
def test_what_is_no_export_is_refused_as_a_whole(
    export: list[bytes],
    service: MemoryService,
    reason: str,
    change: Callable[[list[bytes]], tuple[bytes, int]],
) -> None:
    data, line = change(export)
    with pytest.raises(ImportRejected) as caught:
        import_new(service, NAME, data)
    assert caught.value.details["reason"] == reason, caught.value.message
    assert reason in caught.value.message
    if reason not in ("audit", "digest"):
        assert caught.value.details["line"] == line, caught.value.message
    assert list(service.root.iterdir()) == []


def test_a_refused_import_leaves_an_empty_orchestrator_empty(
    export: list[bytes], service: MemoryService
) -> None:
    service.create(NAME)
    with service.opened(NAME) as opened:
        before = exported(service)
        data, _ = changed("journal", actor="somebody else")(export)
        with pytest.raises(ImportRejected):
            importing.import_into(opened, io.BytesIO(data), actor="operator")
        assert exported(service) == before
        assert maintenance.verify(opened).ok
        fill(service.orchestrator(NAME))
        assert maintenance.verify(opened).ok


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_changed_byte_is_refused(
    export: list[bytes], service: MemoryService, data: st.DataObject
) -> None:
    whole = bytearray(b"".join(export))
    at = data.draw(st.integers(len(export[0]), len(whole) - 2))
    whole[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ImportRejected):
        import_new(service, NAME, bytes(whole))
    assert list(service.root.iterdir()) == []


def test_the_handle_writes_a_file_and_the_service_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "orc.jsonl"
    with filled(tmp_path / "one") as (service, _, _):
        service.orchestrator(NAME).exchange.export(file, with_vectors=True)
        lines = exported(service, with_vectors=True)
    with working(tmp_path / "two") as service:
        service.create("orc-2")
        seen: list[int] = []
        for name, origin in (("orc-2", NAME), (NAME, None)):
            with file.open("rb") as source:
                report = service.import_lines(name, source, progress=seen.append)
            assert report.renamed_from == origin
        assert seen == [0, 0]
        assert exported(service, with_vectors=True)[1:] == lines[1:]
        with file.open("rb") as source, pytest.raises(Conflict):
            service.import_lines("orc-2", source)


def test_a_wal_without_its_database_is_not_replayed_into_an_import(
    export: list[bytes], service: MemoryService
) -> None:
    paths = OrchestratorPaths(service.root, NAME)
    paths.memory.mkdir(parents=True)
    stale = paths.memory / "memory.db-wal"
    stale.write_bytes(b"frames of another")
    with pytest.raises(OrchestratorExists):
        import_new(service, NAME, b"".join(export))
    assert not paths.database.exists()
    assert stale.read_bytes() == b"frames of another"
