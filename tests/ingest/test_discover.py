from __future__ import annotations

from pathlib import Path

import pytest

from ingest.drop_zone import DropEntry, discover, display_path, is_hidden_or_temporary
from ingest.reasons import RejectionReason
from memgraph.errors import IngestRejected


def drop(zone: Path, *names: str) -> None:
    for name in names:
        path = zone / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("words")


def taken(zone: Path, **bounds: int) -> list[str]:
    return [each.path for each in discover(zone, **bounds) if each.reason is None]


def skipped(zone: Path, **bounds: int) -> list[DropEntry]:
    return [each for each in discover(zone, **bounds) if each.reason is not None]


def test_files_are_listed_with_their_folders_in_order(tmp_path: Path) -> None:
    drop(tmp_path, "b.txt", "a.md", "adr/0002.md", "adr/0001.md", "x/y/z.JSON")
    assert taken(tmp_path) == [
        "a.md",
        "adr/0001.md",
        "adr/0002.md",
        "b.txt",
        "x/y/z.JSON",
    ]


def test_own_folders_are_left_out_at_the_top_only(tmp_path: Path) -> None:
    drop(tmp_path, "processed/a.md", "rejected/b.md", ".claimed/c/c.md", "notes/processed/d.md")
    assert list(discover(tmp_path)) == [("notes/processed/d.md", None)]


def test_hidden_and_temporary_names_are_left_out(tmp_path: Path) -> None:
    names = [".hidden.md", "a.md~", "a.md.tmp", "a.part", "~$a.md", "#a.md#", ".a.md.swp"]
    drop(tmp_path, *names, "Thumbs.db", "a.md")
    assert all(map(is_hidden_or_temporary, [*names, "Thumbs.db"]))
    assert taken(tmp_path) == ["a.md"]
    assert {each.reason for each in skipped(tmp_path)} <= {RejectionReason.HIDDEN_OR_TEMPORARY}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("two\nlines.md", "two\\nlines.md"),
        ("..sneaky.md", "..sneaky.md"),
        ("caf\u00e9.md", "caf\u00e9.md"),
        ("\udcff.md", "\\xff.md"),
        ("\u202etxt.md", "\\u202etxt.md"),
        ("\udc80\x1b[0m.md", "\\x80\\x1b[0m.md"),
        ("n" * 252 + ".md", "n" * 252 + ".md"),
    ],
)
def test_strange_names(tmp_path: Path, name: str, shown: str) -> None:
    drop(tmp_path, name)
    assert list(discover(tmp_path)) == ([] if name.startswith(".") else [(name, None)])
    assert display_path(name) == shown
    shown.encode()


def test_bounds(tmp_path: Path) -> None:
    drop(tmp_path, *(f"{number}.md" for number in range(5)), "x/y/z/deep.md")
    assert len(list(discover(tmp_path, max_files=3))) == 3
    assert skipped(tmp_path, max_depth=2) == [("x/y/z", RejectionReason.TOO_DEEP)]


def test_no_drop_zone_and_a_linked_one(tmp_path: Path) -> None:
    assert list(discover(tmp_path / "nowhere")) == []
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(IngestRejected):
        list(discover(tmp_path / "link"))
