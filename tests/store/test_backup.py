"""Copies get their names without hard links, and move aside what was there with all its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from memgraph.errors import Conflict
from memgraph.store.files import draft_beside, publish
from memgraph.store.sqlite import copies


def test_publish_works_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    target = tmp_path / "copy.db"
    for content, is_taken in ((b"first", False), (b"second", True)):
        with draft_beside(target) as draft:
            draft.write_bytes(content)
            if is_taken:
                with pytest.raises(Conflict):
                    publish(draft, target, force=False)
            else:
                publish(draft, target, force=False)
    assert target.read_bytes() == b"first"


def test_a_database_is_moved_aside_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    for name in ("memory.db", "memory.db-wal", "memory.db-shm", "journal.anchor", "other"):
        (tmp_path / name).write_text(name)
    folder = tmp_path / "replaced" / "one"
    moved = copies.move_aside(database, folder, ("journal.anchor",))
    assert moved == ["memory.db", "memory.db-wal", "memory.db-shm", "journal.anchor"]
    assert {file.name: file.read_text() for file in folder.iterdir()} == {n: n for n in moved}
    assert {file.name for file in tmp_path.iterdir()} == {"other", "replaced"}
    assert copies.move_aside(database, tmp_path / "replaced" / "two") == []
    assert not (tmp_path / "replaced" / "two").exists()
