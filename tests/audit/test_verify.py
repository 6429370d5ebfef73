"""Every kind of damage is found under its code, by real SQL or bytes behind memgraph's back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from working import NAME, copy_folder, filled, tampering

from memgraph import MemoryService
from memgraph.audit import anchor
from memgraph.audit.anchor import anchor_path
from memgraph.audit.findings import MAX_PER_CODE, FindingCode, VerifyReport
from memgraph.audit.journal import JournalHead
from memgraph.audit.verify import verify
from memgraph.store.journal import chain_hash
from memgraph.store.sqlite import provision
from memgraph.store.sqlite.database import SqliteDatabase

Tamper = Callable[[Any, dict[str, str]], None]


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
    database = provision.open_database(path, NAME, synchronous="NORMAL", busy_timeout_ms=5_000)
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
    assert report.as_dict()["findings"] == []
    assert report.ok
    assert report.checked["memories"] == 7
    assert report.checked["vectors"] == 7
    assert report.checked["edges"] == 2
    assert report.checked["journal_entries"] == 14
    assert [done for _, done, _ in stages] == list(range(len(stages)))
    assert stages[-1][1] == stages[-1][2]


def _set(connection: Any, table: str, column: str, value: Any, where: str, *values: Any) -> None:
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *values))


def _reseal(connection: Any, seq: int) -> None:
    columns = "seq, at, actor, action, subject, details, state"
    row = connection.execute(f"SELECT {columns} FROM audit_log WHERE seq = ?", (seq,)).fetchone()
    (previous,) = connection.execute(
        "SELECT hash FROM audit_log WHERE seq = ?", (seq - 1,)
    ).fetchone()
    _set(connection, "audit_log", "hash", chain_hash(previous, *row), "seq = ?", seq)


def _edit_entry(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "audit_log", "actor", "somebody else", "seq = 5")


def _edit_and_reseal_entry(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "audit_log", "actor", "somebody else", "seq = 5")
    _reseal(connection, 5)


def _edit_and_reseal_last(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "audit_log", "actor", "somebody else", "seq = 14")
    _reseal(connection, 14)


def _reseal_all(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "audit_log", "actor", "somebody else", "seq = 5")
    for seq in range(5, 15):
        _reseal(connection, seq)


def _swap_entries(connection: Any, ids: dict[str, str]) -> None:
    for old, new in ((5, 99), (6, 5), (99, 6)):
        connection.execute("UPDATE audit_log SET seq = ? WHERE seq = ?", (new, old))


def _remove_entry(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("DELETE FROM audit_log WHERE seq = 12")


def _remove_last_entries(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("DELETE FROM audit_log WHERE seq > 11")


def _bytes_in_entry(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "audit_log", "details", b"\xff\x00", "seq = 14")


def _edit_content(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "memories", "content", "It is in Rome.", "memory_id = ?", ids["berlin"])


def _edit_content_and_hash(connection: Any, ids: dict[str, str]) -> None:
    from memgraph.rules.similarity import content_hash

    _edit_content(connection, ids)
    hashed = content_hash("It is in Rome.")
    _set(connection, "memories", "content_hash", hashed, "memory_id = ?", ids["berlin"])


def _edit_white_space(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("UPDATE memories SET content = replace(content, ' ', '\t')")


def _edit_author(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "memories", "source_role", "system", "memory_id = ?", ids["turn"])


def _edit_time(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "memories", "event_time", 1, "memory_id = ?", ids["old"])


def _undecodable_content(connection: Any, ids: dict[str, str]) -> None:
    connection.execute(
        "UPDATE memories SET content = CAST(x'46ff6f' AS TEXT) WHERE memory_id = ?",
        (ids["berlin"],),
    )


def _blob_content(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "memories", "content", b"bytes", "memory_id = ?", ids["berlin"])


def _smuggle_memory(connection: Any, ids: dict[str, str]) -> None:
    names = [
        row[1]
        for row in connection.execute("PRAGMA table_info(memories)")
        if row[1] not in ("pk", "memory_id")
    ]
    listed = ", ".join(names)
    connection.execute(
        f"INSERT INTO memories (pk, memory_id, {listed})"
        f" SELECT 99, 'fact_smuggled', {listed} FROM memories WHERE memory_id = ?",
        (ids["berlin"],),
    )


def _delete_memory(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("DELETE FROM memories WHERE memory_id = ?", (ids["cjk"],))


def _edit_source(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("UPDATE memory_sources SET source_path = '/x' WHERE source_path NOTNULL")


def _revive(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "memories", "status", "active", "memory_id = ?", ids["old"])


def _rewrite_history(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("DELETE FROM memory_status WHERE status = 'retracted'")


def _two_open_periods(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("UPDATE memory_status SET until = NULL WHERE memory_id = ?", (ids["turn"],))


def _antedate_status(connection: Any, ids: dict[str, str]) -> None:
    connection.execute(
        "UPDATE memory_status SET until = until - 500 WHERE memory_id = ? AND until NOTNULL",
        (ids["old"],),
    )
    connection.execute(
        "UPDATE memory_status SET since = since - 500 WHERE memory_id = ? AND until IS NULL",
        (ids["old"],),
    )


def _smuggle_edge(connection: Any, ids: dict[str, str]) -> None:
    connection.execute(
        "INSERT INTO memory_edges (edge_id, from_memory_id, to_memory_id, edge_type, weight,"
        " created_at) VALUES ('edge_x', ?, ?, 'CausedBy', 1, 1)",
        (ids["new"], ids["cjk"]),
    )


def _turn_edge(connection: Any, ids: dict[str, str]) -> None:
    connection.execute(
        "UPDATE memory_edges SET from_memory_id = to_memory_id, to_memory_id = from_memory_id"
        " WHERE edge_type = 'Updates'"
    )


def _weaken_edge(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("UPDATE memory_edges SET weight = 0.01 WHERE edge_type = 'Updates'")


def _make_edge_partial(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("UPDATE memory_edges SET partial = 1 WHERE edge_type = 'Updates'")


def _edit_resolution(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("UPDATE memory_edges SET resolution = '{}' WHERE resolution NOTNULL")


def _reopen_silently(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("UPDATE memory_edges SET resolution = NULL, resolved_at = NULL")


def _delete_edge(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("DELETE FROM memory_edges WHERE edge_type = 'Updates'")


def _dangle(connection: Any, ids: dict[str, str]) -> None:
    connection.execute(
        "INSERT INTO memory_derivations VALUES (?, 'fact_gone', NULL)", (ids["new"],)
    )


def _stray_text(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("INSERT INTO memory_fts (rowid, content) VALUES (700, 'stray')")


def _wrong_terms(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "memories", "search_terms", None, "memory_id = ?", ids["cjk"])


def _vector(connection: Any, values: Any) -> None:
    _set(connection, "memory_embeddings", "vector", values, "memory_pk = 1")


def _cut_vector(connection: Any, ids: dict[str, str]) -> None:
    _vector(connection, b"\x7f\x01\x02")


def _weak_vector(connection: Any, ids: dict[str, str]) -> None:
    _vector(connection, bytes(range(16)))


def _shown_vector(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "memory_embeddings", "visibility", 3, "memory_pk = 1")


def _lower_sensitivity(connection: Any, ids: dict[str, str]) -> None:
    _set(connection, "memories", "sensitivity", "Public", "memory_id = ?", ids["cjk"])


def _unqueue(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("DELETE FROM memory_embeddings WHERE memory_pk = 3")


def _miscount(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("UPDATE entities SET mention_count = mention_count + 1 WHERE pk = 1")


def _drop_trigger(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("DROP TRIGGER memory_fts_insert")


def _drop_table(connection: Any, ids: dict[str, str]) -> None:
    connection.execute("DROP TABLE memory_edges")


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        (_edit_entry, {"journal.entry_changed"}),
        (_edit_and_reseal_entry, {"journal.entry_changed"}),
        (_edit_and_reseal_last, {"journal.rewritten"}),
        (_reseal_all, {"journal.rewritten"}),
        (_swap_entries, {"journal.entry_changed"}),
        (_remove_entry, {"journal.entry_missing", "journal.entry_changed", "status.unjournalled"}),
        (
            _remove_last_entries,
            {"journal.truncated", "status.unjournalled", "table.unsealed"},
        ),
        (_bytes_in_entry, {"journal.entry_changed", "row.damaged"}),
        (_edit_content, {"memory.content_damaged"}),
        (_edit_content_and_hash, {"memory.edited"}),
        (_edit_white_space, {"memory.edited"}),
        (_edit_author, {"memory.edited"}),
        (_edit_time, {"memory.edited"}),
        (_undecodable_content, {"memory.content_damaged"}),
        (_blob_content, {"memory.content_damaged", "row.damaged"}),
        (
            _smuggle_memory,
            {"memory.unjournalled", "status.mismatch", "vector.missing"},
        ),
        (_delete_memory, {"memory.missing", "reference.dangling"}),
        (_edit_source, {"source.edited"}),
        (_revive, {"status.mismatch", "vector_index.stray"}),
        (_rewrite_history, {"status.history_broken"}),
        (_two_open_periods, {"status.mismatch", "status.history_broken"}),
        (_antedate_status, {"status.unjournalled"}),
        (_smuggle_edge, {"edge.unjournalled"}),
        (_turn_edge, {"edge.edited"}),
        (_weaken_edge, {"edge.edited"}),
        (_make_edge_partial, {"edge.edited"}),
        (_edit_resolution, {"edge.edited"}),
        (_reopen_silently, {"edge.edited"}),
        (_delete_edge, {"edge.missing"}),
        (_dangle, {"reference.dangling"}),
        (_stray_text, {"text_index.drift"}),
        (_wrong_terms, {"text_index.drift"}),
        (_cut_vector, {"vector.damaged"}),
        (_weak_vector, {"vector.damaged"}),
        (_shown_vector, {"vector_index.stray"}),
        (_lower_sensitivity, {"memory.edited", "vector_index.stray"}),
        (_unqueue, {"vector.missing"}),
        (_miscount, {"entity.count_wrong"}),
        (_drop_trigger, {"schema.changed"}),
        (_drop_table, {"schema.changed"}),
    ],
    ids=lambda item: item.__name__.strip("_") if callable(item) else "",
)
def test_tampering_is_found(
    copied: tuple[SqliteDatabase, dict[str, str]], tamper: Tamper, expected: set[str]
) -> None:
    database, ids = copied
    with tampering(database.path) as connection:
        tamper(connection, ids)
    assert codes(verify(database, anchor_path(database.path))) == expected


def test_a_finding_names_what_is_concerned(copied: tuple[SqliteDatabase, dict[str, str]]) -> None:
    database, ids = copied
    with tampering(database.path) as connection:
        _edit_content(connection, ids)
        _remove_last_entries(connection, ids)
    report = verify(database, anchor_path(database.path))
    subjects = {finding.code: finding.subject for finding in report.findings}
    assert subjects[FindingCode.MEMORY_CONTENT_DAMAGED] == ids["berlin"]
    assert subjects[FindingCode.JOURNAL_TRUNCATED] == "12"
    details = json.loads(json.dumps(report.as_dict()))
    assert details["ok"] is False
    assert "Rome" not in json.dumps(details)


def test_one_flipped_byte_of_a_text_is_found(copied: tuple[SqliteDatabase, dict[str, str]]) -> None:
    database, _ = copied
    path = database.path
    database.close()
    content = path.read_bytes()
    place = content.index(b"The office is in Berlin.")
    path.write_bytes(content[:place] + b"U" + content[place + 1 :])
    damaged = provision.open_database(path, NAME, synchronous="NORMAL", busy_timeout_ms=5_000)
    result = codes(verify(damaged, anchor_path(damaged.path)))
    damaged.close()
    assert "memory.content_damaged" in result


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
    damaged = provision.open_database(path, NAME, synchronous="NORMAL", busy_timeout_ms=5_000)
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
        (b"garbage\n", "journal.anchor_damaged"),
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


def test_a_new_database_without_an_anchor_is_sound(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    provision.create(path, NAME, dimensions=20, now_ms=1)
    database = provision.open_database(path, NAME, synchronous="OFF", busy_timeout_ms=1_000)
    report = verify(database, anchor_path(database.path))
    database.close()
    assert report.ok
    assert not any(report.checked[item] for item in ("memories", "journal_entries", "vectors"))


def test_the_report_stays_small_and_its_totals_are_full() -> None:
    report = VerifyReport()
    for number in range(MAX_PER_CODE + 5):
        report.add(FindingCode.MEMORY_EDITED, "edited", number)
    assert len(report.findings) == MAX_PER_CODE
    assert report.totals["memory.edited"] == MAX_PER_CODE + 5
    assert not report.rebuildable


@pytest.mark.parametrize("index", ["ix_memories_source_id", "ix_audit_log_subject"])
def test_flipped_bytes_in_an_index_are_found_and_rebuilt(tmp_path: Path, index: str) -> None:
    with filled(tmp_path) as (service, opened, _):
        path = opened.paths.database
        service.forget(NAME)
    with tampering(path) as connection:
        [(page,)] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)
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
