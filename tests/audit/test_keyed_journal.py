"""A key that lies elsewhere: who writes database and anchor cannot make entries that fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from working import NAME, tampering, working

from memgraph import MemoryService
from memgraph.audit import anchor
from memgraph.errors import InvalidConfig, JournalBroken
from memgraph.store.journal import JournalHead, chain_hash


def key_file(folder: Path, key: str = "k" * 64) -> Path:
    path = folder / "journal.key"
    path.write_text(key + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[MemoryService]:
    config = {"memory.audit.key_file": str(key_file(tmp_path))}
    with working(tmp_path / "root", config=config) as service:
        service.orchestrator(NAME, create=True).remember("Stored under a key.")
        yield service


def forge(path: Path) -> None:
    """Add an entry as somebody does who knows how they are made, and move the anchor on."""
    with tampering(path) as connection:
        seq, at, last = connection.execute(
            "SELECT seq, at, hash FROM audit_log ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        entry = (seq + 1, at, "user", "note", None, "{}")
        sealed = chain_hash(last, *entry)
        connection.execute(
            "INSERT INTO audit_log (seq, at, actor, action, subject, details, hash)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*entry, sealed),
        )
    anchor.write(anchor.anchor_path(path), JournalHead(seq + 1, sealed))


def test_an_entry_without_the_key_is_found_and_stops_writes(keyed: MemoryService) -> None:
    orc = keyed.orchestrator(NAME)
    assert orc.verify().ok
    with keyed.opened(NAME) as opened:
        forge(opened.paths.database)
    assert set(orc.verify().totals) == {"journal.entry_changed", "journal.unkeyed"}
    assert keyed.health(NAME)["code"] == "journal.broken"
    with pytest.raises(JournalBroken, match="key_file"):
        orc.remember("more")


def test_a_journal_gets_its_key_when_an_operator_says_so(tmp_path: Path) -> None:
    with working(tmp_path / "root") as service:
        service.orchestrator(NAME, create=True).remember("Stored without a key.")
    config = {"memory.audit.key_file": str(key_file(tmp_path))}
    with working(tmp_path / "root", config=config) as service:
        orc = service.orchestrator(NAME)
        assert orc.verify().totals == {"journal.unkeyed": 1}
        with pytest.raises(JournalBroken):
            orc.remember("more")
        orc.maintenance.accept_journal(reason="a key was set")
        orc.remember("more")
        assert orc.verify().ok
        assert orc.exchange.backup(tmp_path / "copy").journal_entries == 3


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    root, others = tmp_path / "root", tmp_path / "others"
    for folder in (root, others, tmp_path / "short"):
        folder.mkdir()
    key_file(others).chmod(0o644)
    paths = (key_file(root), others / "journal.key", key_file(tmp_path / "short", "k"))
    for number, path in enumerate((*paths, tmp_path / "missing")):
        with working(root, config={"memory.audit.key_file": str(path)}) as service:
            service.create(f"{NAME}-{number}")
            with pytest.raises(InvalidConfig):
                service.orchestrator(f"{NAME}-{number}").remember("more")
