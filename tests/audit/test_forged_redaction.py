"""A redaction that no erasure made is found, whatever of the database was made to fit it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from erasing_worlds import filled
from working import tampering

from memgraph import Orchestrator
from memgraph.rules.similarity import content_hash
from memgraph.store.journal import chain_hash, memory_seal

FORGED = "The transfer was approved by the whole board."


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def forge(
    path: Path,
    memory_id: str,
    *,
    erasure_id: str = "era_forged",
    tombstone: bool = False,
    hmac: str = "",
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
            (
                None,
                {
                    "erasure_id": erasure_id,
                    "hmac": hmac,
                    "redacted": [[seq, sealed, sha256(fresh)]],
                },
            )
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


def unproven(orc: Orchestrator) -> bool:
    return "journal.redaction_unproven" in orc.verify().totals


def test_a_memory_that_was_rewritten_under_a_forged_redaction_is_found(orc: Orchestrator) -> None:
    memory_id = orc.remember("The transfer was approved by Anna alone.")
    assert orc.verify().ok
    forge(closed(orc), memory_id)
    assert orc.get(memory_id).content == FORGED
    assert unproven(orc)


@pytest.mark.parametrize("tombstone", [False, True])
def test_the_seal_of_another_erasure_does_not_cover_it(orc: Orchestrator, tombstone: bool) -> None:
    memory_id = orc.remember("The transfer was approved by Anna alone.")
    report = orc.erasure.erase(memory_id=filled(orc).secret, reason="asked for", dry_run=False)
    assert orc.verify().ok
    path = closed(orc)
    with tampering(path) as connection:
        [(details,)] = connection.execute(
            "SELECT details FROM audit_log WHERE action = 'erase' AND subject IS NULL LIMIT 1"
        )
    forge(
        path,
        memory_id,
        erasure_id=report.erasure_id,
        tombstone=tombstone,
        hmac=json.loads(details)["hmac"],
    )
    assert unproven(orc)


def test_the_seal_of_another_root_proves_nothing_until_it_is_accepted(orc: Orchestrator) -> None:
    orc.erasure.erase(memory_id=filled(orc).secret, reason="asked for", dry_run=False)
    (orc._service.root / "erasure.key").unlink()
    assert unproven(orc)
    orc.maintenance.accept_journal(reason="the key was lost")
    assert orc.verify().ok


def test_an_erasure_may_take_words_from_the_entry_of_an_earlier_one(orc: Orchestrator) -> None:
    words = "the canary of Quast sings at night"
    orc.erasure.erase(memory_id=filled(orc).secret, reason=f"asked for: {words}", dry_run=False)
    orc.erasure.erase(memory_id=orc.remember(words), reason="too", dry_run=False)
    assert words not in orc.erasure.reports().erasures[-1].reason
    assert orc.verify().ok
