"""A redaction that no erasure made is found, whatever of the database was made to fit it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from erasing_worlds import filled
from working import tampering

from memgraph import Orchestrator
from memgraph.audit.journal import memory_seal
from memgraph.rules.similarity import content_hash
from memgraph.store.journal import chain_hash

FORGED = "The transfer was approved by the whole board."


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def forge(
    path: Path, memory_id: str, *, erasure_id: str = "era_forged", tombstone: bool = False
) -> None:
    """Rewrite a memory with its journal entry, and list that as redacted in a new, sealed entry."""
    with tampering(path) as connection:
        hashed = content_hash(FORGED)
        connection.execute(
            "UPDATE memories SET content = ?, summary = ?, content_hash = ? WHERE memory_id = ?",
            (FORGED, FORGED, hashed, memory_id),
        )
        cursor = connection.execute("SELECT * FROM memories WHERE memory_id = ?", (memory_id,))
        row = dict(zip([item[0] for item in cursor.description], cursor.fetchone(), strict=True))
        seq, sealed, details = connection.execute(
            "SELECT seq, hash, details FROM audit_log WHERE subject = ? AND action = 'remember'",
            (memory_id,),
        ).fetchone()
        fresh = json.dumps(
            json.loads(details) | {"content_hash": hashed, "seal": memory_seal(row)},
            ensure_ascii=False,
            separators=(",", ":"),
            sort_keys=True,
        )
        connection.execute("UPDATE audit_log SET details = ? WHERE seq = ?", (fresh, seq))
        told: list[tuple[str | None, dict[str, object]]] = [
            (None, {"erasure_id": erasure_id, "redacted": [[seq, sealed, sha256(fresh)]]})
        ]
        if tombstone:
            told.append((memory_id, {"erasure_id": erasure_id}))
        for subject, said in told:
            last, at, previous = connection.execute(
                "SELECT seq, at, hash FROM audit_log ORDER BY seq DESC LIMIT 1"
            ).fetchone()
            text = json.dumps(said, separators=(",", ":"), sort_keys=True)
            entry = (last + 1, at, "operator", "erase", subject, text)
            connection.execute(
                "INSERT INTO audit_log (seq, at, actor, action, subject, details, hash)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*entry, chain_hash(previous, *entry)),
            )


def closed(orc: Orchestrator) -> Path:
    with orc._service.opened(orc.name) as opened:
        path = opened.paths.database
    orc._service.forget(orc.name)
    return path


def messages(orc: Orchestrator) -> str:
    result = orc.verify().findings
    return " ".join(item.message for item in result if item.code == "journal.redaction_unproven")


def test_a_memory_that_was_rewritten_under_a_forged_redaction_is_found(orc: Orchestrator) -> None:
    memory_id = orc.remember("The transfer was approved by Anna alone.")
    assert orc.verify().ok
    forge(closed(orc), memory_id)
    assert orc.get(memory_id).content == FORGED
    report = orc.verify()
    assert "journal.redaction_unproven" in report.totals
    assert "there is no signed report of era_forged" in messages(orc)


def test_a_tombstone_makes_it_no_better(orc: Orchestrator) -> None:
    memory_id = orc.remember("The transfer was approved by Anna alone.")
    forge(closed(orc), memory_id, tombstone=True)
    assert "journal.redaction_unproven" in orc.verify().totals


def test_the_report_of_another_erasure_does_not_cover_it(orc: Orchestrator) -> None:
    memory_id = orc.remember("The transfer was approved by Anna alone.")
    report = orc.erasure.erase(memory_id=filled(orc).secret, reason="asked for", dry_run=False)
    assert orc.verify().ok
    forge(closed(orc), memory_id, erasure_id=report.erasure_id)
    assert f"the signed report of {report.erasure_id} does not cover it" in messages(orc)


def test_a_report_of_an_earlier_version_covers_as_many_entries_as_it_says(
    orc: Orchestrator,
) -> None:
    from memgraph.operations.erasure.signatures import signed

    memory_id = orc.remember("The transfer was approved by Anna alone.")
    report = orc.erasure.erase(memory_id=filled(orc).secret, reason="asked for", dry_run=False)
    with orc._service.opened(orc.name) as opened:
        paths = opened.paths
    older = report.model_copy(update={"redactions": (), "signature": None})
    path = paths.erasures / f"{report.erasure_id}.json"
    path.write_text(signed(older, paths.root).model_dump_json())
    assert orc.verify().ok
    forge(closed(orc), memory_id, erasure_id=report.erasure_id)
    assert "does not cover it" in messages(orc)


@pytest.mark.parametrize(
    ("harm", "details"),
    [
        (lambda path: path.unlink(), "there is no signed report"),
        (lambda path: path.write_text("{"), "cannot be read"),
        (
            lambda path: path.write_text(path.read_text().replace('"asked for"', '"other"')),
            "was changed after it was signed",
        ),
    ],
)
def test_a_report_that_is_gone_or_touched_proves_nothing(
    orc: Orchestrator, harm: Callable[[Path], object], details: str
) -> None:
    report = orc.erasure.erase(memory_id=filled(orc).secret, reason="asked for", dry_run=False)
    with orc._service.opened(orc.name) as opened:
        path = opened.paths.erasures / f"{report.erasure_id}.json"
    harm(path)
    assert details in messages(orc)
    orc.maintenance.accept_journal(reason="the report was lost")
    assert orc.verify().ok


def test_a_report_signed_with_another_key_proves_nothing(orc: Orchestrator) -> None:
    orc.erasure.erase(memory_id=filled(orc).secret, reason="asked for", dry_run=False)
    (orc._service.root / "signing.key").unlink()
    orc.erasure.erase(
        memory_id=orc.remember("Something else to go away."), reason="too", dry_run=False
    )
    assert "signed with another key" in messages(orc)


def test_what_a_report_proved_stays_proven_when_words_go_from_it(orc: Orchestrator) -> None:
    words = "the canary of Quast sings at night"
    orc.erasure.erase(memory_id=filled(orc).secret, reason=f"asked for: {words}", dry_run=False)
    later = orc.erasure.erase(memory_id=orc.remember(words), reason="too", dry_run=False)
    assert any(item.startswith("memory/erasures/") for item in later.files_redacted)
    assert orc.verify().ok
