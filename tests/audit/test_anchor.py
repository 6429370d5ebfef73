"""The anchor moves on with a sound journal and stays where a journal betrays it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from working import NAME, filled, tampering, working

from memgraph.audit import anchor
from memgraph.audit.journal import Head
from memgraph.audit.verify import verify
from memgraph.errors import JournalBroken

hashes = st.text("0123456789abcdef", min_size=64, max_size=64) | st.just("")


@given(st.integers(0, 10**18), hashes)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, seq: int, hashed: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "journal.anchor"
    anchor.write(path, Head(seq, hashed))
    assert anchor.read(path) == Head(seq, hashed)
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_anchor_behind_a_link_is_not_written(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    link = tmp_path / "journal.anchor"
    link.symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic"):
        anchor.write(link, Head(1, "0" * 64))
    assert elsewhere.read_text() == "precious"


def test_every_change_moves_the_anchor(tmp_path: Path) -> None:
    with working(tmp_path) as service:
        orchestrator = service.orchestrator(NAME, create=True)
        path = anchor.anchor_path(tmp_path / NAME / "memory" / "memory.db")
        assert anchor.read(path) == Head(0, "")
        for seq in (1, 2, 3):
            orchestrator.remember(f"text {seq}")
            found = anchor.read(path)
            assert found is not None
            assert found.seq == seq


def test_a_cut_journal_is_still_found_after_more_was_written(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        with tampering(opened.database.path) as connection:
            connection.execute("DELETE FROM audit_log WHERE seq > 13")
        for number in range(4):
            service.orchestrator(NAME).remember(f"more {number}")
        report = verify(opened.database)
        assert report.totals["journal.rewritten"] == 1
        log = opened.paths.log_file.read_text()
        assert "journal.anchor" in log


def test_a_removed_anchor_is_not_made_anew_in_silence(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        path = anchor.anchor_path(opened.database.path)
        path.unlink()
        service.orchestrator(NAME).remember("more")
        assert not path.exists()
        path.write_text("garbage")
        service.orchestrator(NAME).remember("and more")
        assert path.read_text() == "garbage"
        with pytest.raises(JournalBroken):
            anchor.read(path)


def test_an_anchor_that_cannot_be_written_does_not_undo_the_change(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        path = anchor.anchor_path(opened.database.path)
        kept = path.with_name("kept")
        path.rename(kept)
        path.symlink_to(kept)
        memory_id = service.orchestrator(NAME).remember("durable all the same")
        with opened.database.read() as connection:
            found = connection.exec_driver_sql(
                "SELECT count(*) FROM memories WHERE memory_id = ?", (memory_id,)
            )
            assert found.scalar() == 1


def test_a_folder_in_the_anchors_place_is_told_and_stops_no_write(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        path = anchor.anchor_path(opened.database.path)
        path.unlink()
        path.mkdir()
        orc = service.orchestrator(NAME)
        assert orc.remember("goes on all the same")
        assert orc.verify().totals == {"journal.anchor_damaged": 1}
