"""Every kind of damage is found under its code, by real SQL or bytes behind memgraph's back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from working import NAME, copy_folder, database_at, filled, tampering

from memgraph import MemoryService
from memgraph.audit import anchor
from memgraph.audit.anchor import anchor_path
from memgraph.audit.findings import MAX_PER_CODE, FindingCode, VerifyReport
from memgraph.audit.verify import verify
from memgraph.store.journal import JournalHead, chain_hash
from memgraph.store.sqlite.database import SqliteDatabase


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A filled and closed orchestrator, made once; every test works on a copy."""
    root = tmp_path_factory.mktemp("template")
    with filled(root) as (_, opened, ids):
        folder = opened.paths.memory
    return folder, ids


@pytest.fixture
def copied(
    template: tuple[Path, dict[str, str]], tmp_path: Path
) -> Iterator[tuple[SqliteDatabase, dict[str, str]]]:
    folder, ids = template
    path = copy_folder(folder, tmp_path / "memory")
    database = database_at(path)
    yield database, ids
    database.close()


def codes(report: VerifyReport) -> set[str]:
    """What was found beside the tables themselves, whose digests know of every edit."""
    assert {finding.code.value for finding in report.findings} == set(report.totals)
    return set(report.totals) - {"table.edited"}


def test_a_sound_database_has_no_findings(copied: tuple[SqliteDatabase, dict[str, str]]) -> None:
    database, _ = copied
    stages: list[tuple[str, int, int]] = []
    report = verify(database, anchor_path(database.path), lambda *stage: stages.append(stage))
    assert report.findings == []
    assert report.ok
    assert report.checked["memories"] == 7
    assert report.checked["vectors"] == 7
    assert report.checked["journal_entries"] == 14
    assert [done for _, done, _ in stages] == list(range(len(stages)))
    assert stages[-1][1] == stages[-1][2]


def _reseal(connection: Any, seq: int) -> None:
    columns = "seq, at, actor, action, subject, details, state"
    row = connection.execute(f"SELECT {columns} FROM audit_log WHERE seq = ?", (seq,)).fetchone()
    (previous,) = connection.execute(
        "SELECT hash FROM audit_log WHERE seq = ?", (seq - 1,)
    ).fetchone()
    sealed = (chain_hash(previous, *row), seq)
    connection.execute("UPDATE audit_log SET hash = ? WHERE seq = ?", sealed)


ACTOR = "UPDATE audit_log SET actor = 'somebody else' WHERE seq = {}"
BERLIN = "WHERE memory_id = :berlin"
EDITED = f"UPDATE memories SET content = 'It is in Rome.' {BERLIN}"
CUT_OFF = "DELETE FROM audit_log WHERE seq > 11"
# By what is done: statements, or the numbers of entries to seal again, and the findings.
TAMPERED: dict[str, tuple[list[str | int], set[str]]] = {
    "edit entry": ([ACTOR.format(5)], {"journal.entry_changed"}),
    "reseal all": ([ACTOR.format(5), *range(5, 15)], {"journal.rewritten"}),
    "remove entry": (
        ["DELETE FROM audit_log WHERE seq = 12"],
        {"journal.entry_missing", "journal.entry_changed", "status.unjournalled"},
    ),
    "remove last entries": (
        [CUT_OFF],
        {"journal.truncated", "status.unjournalled", "table.unsealed"},
    ),
    "bytes in entry": (
        ["UPDATE audit_log SET details = x'ff00' WHERE seq = 14"],
        {"journal.entry_changed", "row.damaged"},
    ),
    "edit content": ([EDITED], {"memory.content_damaged"}),
    "edit white space": (
        ["UPDATE memories SET content = replace(content, ' ', char(9))"],
        {"memory.edited"},
    ),
    "smuggle memory": (
        [
            f"CREATE TEMP TABLE one AS SELECT * FROM memories {BERLIN}",
            "UPDATE one SET pk = 99, memory_id = 'fact_smuggled'",
            "INSERT INTO memories SELECT * FROM one",
        ],
        {"memory.unjournalled", "status.mismatch", "vector.missing"},
    ),
    "delete memory": (
        ["DELETE FROM memories WHERE memory_id = :cjk"],
        {"memory.missing", "reference.dangling"},
    ),
    "revive": (
        ["UPDATE memories SET status = 'active' WHERE memory_id = :old"],
        {"status.mismatch", "vector_index.stray"},
    ),
    "rewrite history": (
        ["DELETE FROM memory_status WHERE status = 'retracted'"],
        {"status.history_broken"},
    ),
    "antedate status": (
        [
            "UPDATE memory_status SET until = until - 500 WHERE memory_id = :old AND until NOTNULL",
            "UPDATE memory_status SET since = since - 500 WHERE memory_id = :old AND until IS NULL",
        ],
        {"status.unjournalled"},
    ),
    "stray text": (
        ["INSERT INTO memory_fts (rowid, content) VALUES (700, 'stray')"],
        {"text_index.drift"},
    ),
    "wrong terms": (
        ["UPDATE memories SET search_terms = NULL WHERE memory_id = :cjk"],
        {"text_index.drift"},
    ),
    "cut vector": (
        ["UPDATE memory_embeddings SET vector = x'7f0102' WHERE memory_pk = 1"],
        {"vector.damaged"},
    ),
    "shown vector": (
        ["UPDATE memory_embeddings SET visibility = 3 WHERE memory_pk = 1"],
        {"vector_index.stray"},
    ),
    "unqueue": (["DELETE FROM memory_embeddings WHERE memory_pk = 3"], {"vector.missing"}),
    "miscount": (
        ["UPDATE entities SET mention_count = mention_count + 1 WHERE pk = 1"],
        {"entity.count_wrong"},
    ),
    "drop trigger": (["DROP TRIGGER memory_fts_insert"], {"schema.changed"}),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_tampering_is_found(copied: tuple[SqliteDatabase, dict[str, str]], what: str) -> None:
    database, ids = copied
    steps, expected = TAMPERED[what]
    with tampering(database.path) as connection:
        for step in steps:
            if isinstance(step, int):
                _reseal(connection, step)
            else:
                connection.execute(step, ids)
    assert codes(verify(database, anchor_path(database.path))) == expected


def test_a_finding_names_what_is_concerned(copied: tuple[SqliteDatabase, dict[str, str]]) -> None:
    database, ids = copied
    with tampering(database.path) as connection:
        connection.execute(EDITED, ids)
        connection.execute(CUT_OFF)
    report = verify(database, anchor_path(database.path))
    subjects = {finding.code: finding.subject for finding in report.findings}
    assert subjects[FindingCode.MEMORY_CONTENT_DAMAGED] == ids["berlin"]
    assert subjects[FindingCode.JOURNAL_TRUNCATED] == "12"
    text = TypeAdapter(VerifyReport).dump_json(report).decode()
    assert '"ok":false' in text
    assert "Rome" not in text


def test_overwritten_pages_are_findings_and_the_other_checks_go_on(
    copied: tuple[SqliteDatabase, dict[str, str]],
) -> None:
    database, _ = copied
    path = database.path
    with tampering(path) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'memory_sources'"
        ).fetchone()
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    database.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * page)
        file.write(b"\xa5" * page)
    damaged = database_at(path)
    report = verify(damaged, anchor_path(damaged.path))
    damaged.close()
    assert report.totals["database.damaged"] >= 2
    assert report.checked["journal_entries"] == 14
    assert not report.rebuildable


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "journal.anchor_missing"),
        (b"", "journal.anchor_damaged"),
        (b"\xff" * 86, "journal.anchor_damaged"),
    ],
)
def test_a_missing_or_garbled_anchor_is_told(
    copied: tuple[SqliteDatabase, dict[str, str]], content: bytes | None, expected: str
) -> None:
    database, _ = copied
    path = anchor.anchor_path(database.path)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert codes(verify(database, anchor_path(database.path))) == {expected}


def test_an_anchor_that_lags_behind_a_crash_is_no_finding(
    copied: tuple[SqliteDatabase, dict[str, str]],
) -> None:
    database, _ = copied
    with database.read() as connection:
        hashed = connection.exec_driver_sql("SELECT hash FROM audit_log WHERE seq = 12").scalar()
    anchor.write(anchor.anchor_path(database.path), JournalHead(12, str(hashed)))
    assert verify(database, anchor_path(database.path)).ok


def test_the_report_stays_small_and_its_totals_are_full() -> None:
    report = VerifyReport()
    for number in range(MAX_PER_CODE + 5):
        report.add(FindingCode.MEMORY_EDITED, "edited", number)
    assert len(report.findings) == MAX_PER_CODE
    assert report.totals["memory.edited"] == MAX_PER_CODE + 5
    assert not report.rebuildable


def test_flipped_bytes_in_an_index_are_found_and_rebuilt(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        path = opened.paths.database
        service.forget(NAME)
    with tampering(path) as connection:
        [(page,)] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'ix_audit_log_subject'"
        ).fetchall()
        [(size,)] = connection.execute("PRAGMA page_size").fetchall()
    with path.open("r+b") as file:
        file.seek(page * size - 4)
        key = file.read(4)
        file.seek(page * size - 4)
        file.write(bytes(byte ^ 1 for byte in key))
    with MemoryService(tmp_path, environ={}, background=False) as service:
        orc = service.orchestrator(NAME)
        report = orc.verify()
        assert set(report.totals) == {"index.damaged"}
        assert report.rebuildable
        assert orc.maintenance.rebuild(["indexes"])["indexes"] > 20
        assert orc.verify().ok
