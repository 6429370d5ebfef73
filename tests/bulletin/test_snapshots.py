"""Snapshot files: whole, bounded in number, and told apart by view."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memgraph.bulletin.board import BulletinFiles
from memgraph.bulletin.generate import composed
from memgraph.config.schema import BulletinSettings
from memgraph.model.context import Bulletin
from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.rules.bulletin import BulletinSection
from memgraph.rules.lines import BlockLine

PLAIN, OTHER = "0" * 16, "f" * 16


def bulletin(seq: int, key: str = PLAIN, text: str = "Ship — 船") -> Bulletin:
    goal = BlockLine("fact_1", MemoryKind.FACT, MemoryType.GOAL, text, 0)
    offered = {BulletinSection.ACTIVE_GOALS: [(goal,)]}
    return composed(offered, BulletinSettings(), change_seq=seq, key=key)


def snapshots(folder: Path, keep: int = 20) -> BulletinFiles:
    return BulletinFiles(folder, keep=keep, plain_key=PLAIN)


def saved(folder: Path, *bulletins: Bulletin, keep: int = 20) -> list[str]:
    """Save them a second apart, and list what is there then."""
    for at, one in enumerate(bulletins, start=1_000):
        path = snapshots(folder, keep).save(one)
        for each in (path, path.with_suffix(".json")):
            os.utime(each, (at, at))
    return sorted(path.name for path in folder.iterdir())


def test_a_snapshot_is_named_after_the_change_and_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "bulletins"
    assert saved(folder, bulletin(7)) == ["7.json", "7.md"]
    assert (folder / "7.md").read_text(encoding="utf-8") == bulletin(7).text
    assert snapshots(folder).latest(PLAIN) == bulletin(7)
    assert (folder / "7.md").stat().st_mode & 0o777 == 0o600


def test_the_last_ones_written_are_kept(tmp_path: Path) -> None:
    names = saved(tmp_path, *(bulletin(seq) for seq in (8, 9, 10, 11)), keep=2)
    assert names == ["10.json", "10.md", "11.json", "11.md"]


def test_a_restored_backup_that_counts_from_lower_is_the_latest(tmp_path: Path) -> None:
    names = saved(tmp_path, bulletin(100), bulletin(101), bulletin(50), keep=2)
    assert names == ["101.json", "101.md", "50.json", "50.md"]
    found = snapshots(tmp_path).latest(PLAIN)
    assert found is not None
    assert found.change_seq == 50


def test_views_have_files_of_their_own(tmp_path: Path) -> None:
    names = saved(tmp_path, bulletin(3), bulletin(3, OTHER, "Other"))
    assert names == [f"3-{OTHER}.json", f"3-{OTHER}.md", "3.json", "3.md"]
    assert snapshots(tmp_path).latest(PLAIN) == bulletin(3)
    assert snapshots(tmp_path).latest(OTHER) == bulletin(3, OTHER, "Other")
    assert snapshots(tmp_path).latest("a" * 16) is None


@pytest.mark.parametrize("content", [b"", b"null", b'{"text": "x"}'])
def test_a_garbled_snapshot_is_passed_over(tmp_path: Path, content: bytes) -> None:
    saved(tmp_path, bulletin(1), bulletin(2))
    (tmp_path / "2.json").write_bytes(content)
    assert snapshots(tmp_path).latest(PLAIN) == bulletin(1)


def test_a_file_that_was_renamed_to_another_view_is_passed_over(tmp_path: Path) -> None:
    saved(tmp_path, bulletin(4, OTHER))
    (tmp_path / f"4-{OTHER}.json").rename(tmp_path / "4.json")
    assert snapshots(tmp_path).latest(PLAIN) is None


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    for name in ("notes.json", "1.txt", "x-1.json", "1.json.bak"):
        (tmp_path / name).write_text("mine")
    saved(tmp_path, bulletin(1), bulletin(2), keep=1)
    snapshots(tmp_path).remove(bulletin(2))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"notes.json", "1.txt", "x-1.json", "1.json.bak"}


def test_no_folder_is_no_snapshot(tmp_path: Path) -> None:
    nowhere = snapshots(tmp_path / "nowhere")
    assert nowhere.latest(PLAIN) is None
    nowhere.remove(bulletin(1))
    assert not (tmp_path / "nowhere").exists()


def test_what_was_removed_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        snapshots(tmp_path / "removed" / "bulletins").save(bulletin(1))
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_place_of_a_snapshot_is_replaced_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "bulletins"
    folder.mkdir()
    target = tmp_path / "precious"
    target.write_text("precious")
    (folder / "5.md").symlink_to(target)
    snapshots(folder).save(bulletin(5))
    assert target.read_text() == "precious"
    assert not (folder / "5.md").is_symlink()


def test_a_failed_write_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "6.md").mkdir()
    with pytest.raises(OSError, match="directory"):
        snapshots(tmp_path).save(bulletin(6))
    assert [path.name for path in tmp_path.iterdir()] == ["6.md"]
