from __future__ import annotations

import os
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


def taken(entries: list[DropEntry]) -> list[str]:
    return [each.path for each in entries if each.verdict == "take"]


def verdicts(zone: Path) -> dict[str, tuple[str, RejectionReason | None]]:
    return {each.display: (each.verdict, each.reason) for each in discover(zone)}


def test_files_are_listed_with_their_folders_in_order(tmp_path: Path) -> None:
    drop(tmp_path, "b.txt", "a.md", "adr/0002.md", "adr/0001.md", "x/y/z.JSON")
    assert taken(list(discover(tmp_path))) == [
        "a.md",
        "adr/0001.md",
        "adr/0002.md",
        "b.txt",
        "x/y/z.JSON",
    ]


def test_own_folders_are_left_out_at_the_top_only(tmp_path: Path) -> None:
    drop(tmp_path, "processed/a.md", "rejected/b.md", ".claimed/c/c.md", "notes/processed/d.md")
    assert verdicts(tmp_path) == {"notes/processed/d.md": ("take", None)}


@pytest.mark.parametrize(
    "name",
    [".hidden.md", "a.md~", "a.md.tmp", "a.part", "~$a.md", "#a.md#", ".a.md.swp", "Thumbs.db"],
)
def test_hidden_and_temporary_names(tmp_path: Path, name: str) -> None:
    drop(tmp_path, name, "a.md")
    assert is_hidden_or_temporary(name)
    assert taken(list(discover(tmp_path))) == ["a.md"]
    told = [each for each in discover(tmp_path) if each.verdict == "skip"]
    assert [each.reason for each in told] in ([], [RejectionReason.HIDDEN_OR_TEMPORARY])


def test_what_is_refused_unread(tmp_path: Path) -> None:
    drop(tmp_path, "LICENSE", "a.pdf")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "link.md").symlink_to("/etc/passwd")
    (tmp_path / "folder-link").symlink_to("/etc")
    assert verdicts(tmp_path) == {
        "LICENSE": ("reject", RejectionReason.UNSUPPORTED_TYPE),
        "a.pdf": ("reject", RejectionReason.UNSUPPORTED_TYPE),
        "pipe.txt": ("reject", RejectionReason.NOT_REGULAR_FILE),
        "link.md": ("reject", RejectionReason.LINK),
        "folder-link": ("reject", RejectionReason.LINK),
    }


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("two\nlines.md", "two\\nlines.md"),
        ("..sneaky.md", "..sneaky.md"),
        ("caf\u00e9.md", "caf\u00e9.md"),
        ("\udcff.md", "\\xff.md"),
        ("\u202etxt.md", "\\u202etxt.md"),
        ("n" * 252 + ".md", "n" * 252 + ".md"),
    ],
)
def test_strange_names(tmp_path: Path, name: str, shown: str) -> None:
    drop(tmp_path, name)
    entries = list(discover(tmp_path))
    if name.startswith("."):
        assert entries == []
        return
    assert [(each.path, each.display, each.verdict) for each in entries] == [(name, shown, "take")]
    shown.encode()


def test_bounds(tmp_path: Path) -> None:
    drop(tmp_path, *(f"{number}.md" for number in range(5)), "x/y/z/deep.md")
    assert len(list(discover(tmp_path, max_files=3))) == 3
    deep = [each for each in discover(tmp_path, max_depth=2) if each.verdict == "skip"]
    assert [(each.path, each.reason) for each in deep] == [("x/y/z", RejectionReason.TOO_DEEP)]


def test_no_drop_zone_and_a_linked_one(tmp_path: Path) -> None:
    assert list(discover(tmp_path / "nowhere")) == []
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(IngestRejected):
        list(discover(tmp_path / "link"))


def test_display_path_is_always_storable() -> None:
    assert display_path("a/\udc80\x1b[0m.md") == "a/\\x80\\x1b[0m.md"
