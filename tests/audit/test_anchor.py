"""The anchor advances with a sound journal, and stays if the journal was manipulated."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from working import NAME, copy_folder, filled, tampering, working

from memgraph.audit import anchor
from memgraph.audit.findings import AnchorState
from memgraph.audit.verify import verify
from memgraph.errors import InvalidInput, JournalBroken
from memgraph.model.enums import JobName
from memgraph.store.journal import JournalHead


def test_nothing_is_written_behind_the_anchor_until_an_operator_decides(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        with tampering(opened.paths.database) as connection:
            connection.execute("DELETE FROM audit_log WHERE seq > 12")
        orc = service.orchestrator(NAME)
        state = orc.maintenance.journal_state()
        assert (state.state, state.seq, state.anchored, state.lost) == ("behind", 12, 14, 2)
        health = service.health(NAME)
        assert (health["status"], health["code"]) == ("disabled", "journal.broken")
        for _ in range(4):
            with pytest.raises(JournalBroken, match="memgraph repair"):
                orc.remember("more")
        assert verify(opened.database, opened.anchor_file).totals["journal.truncated"] == 1
        assert orc.recall("Berlin").items
        orc.maintenance.accept_journal(reason="the disk lost it")
        assert orc.maintenance.journal_state().state == "agrees"
        assert service.health(NAME)["status"] == "ready"
        assert orc.remember("more")


def test_entries_that_were_replaced_are_no_smaller_loss(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        with tampering(opened.paths.database) as connection:
            connection.execute("UPDATE audit_log SET hash = ? WHERE seq = 14", ("0" * 64,))
        state = service.orchestrator(NAME).maintenance.journal_state()
        assert (state.state, state.lost) == ("behind", 0)
        with pytest.raises(JournalBroken):
            service.orchestrator(NAME).remember("more")


def test_a_removed_anchor_is_not_made_anew_in_silence(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        path = anchor.anchor_path(opened.paths.database)
        path.unlink()
        service.orchestrator(NAME).remember("more")
        assert not path.exists()
        assert "journal.unanchored" in service.health(NAME)["degraded"]
        path.write_text("garbage")
        assert "journal.unanchored" in service.health(NAME)["degraded"]
        service.orchestrator(NAME).remember("and more")
        assert path.read_text() == "garbage"
        assert anchor.read(path) is AnchorState.DAMAGED


def test_an_anchor_that_cannot_be_written_does_not_undo_the_change(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        path = anchor.anchor_path(opened.paths.database)
        saved = path.with_name("kept")
        path.rename(saved)
        path.symlink_to(saved)
        before = saved.read_bytes()
        memory_id = service.orchestrator(NAME).remember("durable all the same")
        assert saved.read_bytes() == before
        with opened.database.read() as connection:
            result = connection.exec_driver_sql(
                "SELECT count(*) FROM memories WHERE memory_id = ?", (memory_id,)
            )
            assert result.scalar() == 1


def test_an_anchor_set_back_to_nothing_is_damaged(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, opened, _):
        anchor.write(opened.anchor_file, JournalHead(0, ""))
        orc = service.orchestrator(NAME)
        assert orc.verify().totals == {"journal.anchor_damaged": 1}
        assert "journal.unanchored" in service.health(NAME)["degraded"]
        orc.remember("goes on, and hides nothing")
        assert anchor.read(opened.anchor_file) == JournalHead(0, "")
        with pytest.raises(InvalidInput):
            orc.maintenance.accept_journal(reason=" ")
        orc.maintenance.accept_journal(reason="it was me")
        assert orc.verify().ok


def test_one_change_may_be_unanchored(tmp_path: Path) -> None:
    """Simulate a process that died between its first commit and the anchor."""
    with working(tmp_path) as service:
        orc = service.orchestrator(NAME, create=True)
        orc.remember_many([{"content": "one"}, {"content": "two"}])
        with service.opened(NAME) as opened:
            anchor.write(opened.anchor_file, JournalHead(0, ""))
        assert orc.verify().ok
        orc.remember("three")
        assert orc.maintenance.journal_state().anchored == 3


def test_neither_anchor_nor_journal_may_be_behind_what_the_nightly_audit_saw(
    tmp_path: Path,
) -> None:
    with filled(tmp_path) as (service, opened, _):
        orc = service.orchestrator(NAME)
        with opened.database.read() as snapshot:
            [(earlier,)] = snapshot.exec_driver_sql("SELECT hash FROM audit_log WHERE seq = 12")
        assert not orc.jobs.run(JobName.VERIFICATION).failed
        assert orc.verify().ok
        anchor.write(opened.anchor_file, JournalHead(12, earlier))
        assert orc.verify().totals == {"journal.anchor_damaged": 1}
        with tampering(opened.paths.database) as connection:
            connection.execute("DELETE FROM audit_log WHERE seq > 12")
        assert "journal.truncated" in orc.verify().totals
        with pytest.raises(JournalBroken, match="lacks the acknowledged entry 14"):
            orc.remember("more")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_rollback_of_the_whole_folder_is_seen_by_an_anchor_elsewhere(
    tmp_path: Path, elsewhere: bool
) -> None:
    """With the anchor in the folder, only a head that was recorded elsewhere shows it."""
    config = {"memory.audit.anchor_path": str(tmp_path)} if elsewhere else {}
    root = tmp_path / "root"
    with working(root, config=config) as service:
        service.orchestrator(NAME, create=True).remember("first")
    saved = copy_folder(root / NAME / "memory", tmp_path / "saved").parent
    with working(root, config=config) as service:
        orc = service.orchestrator(NAME)
        orc.remember("second")
        recorded = orc.maintenance.journal_state()
        shutil.rmtree(root / NAME / "memory")
        shutil.copytree(saved, root / NAME / "memory")
        with pytest.raises(JournalBroken) if elsewhere else nullcontext():
            orc.remember("another second")
        assert orc.verify().ok is not elsewhere
        assert orc.maintenance.journal_state().hash != recorded.hash
