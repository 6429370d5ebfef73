from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ingest.drop_zone import discover, stage
from ingest.reasons import RejectionReason


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    made = tmp_path / "ingest"
    made.mkdir()
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    made = tmp_path / "source"
    (made / "adr").mkdir(parents=True)
    for name in ("adr/1.md", "adr/LICENSE", "adr/.hidden.md", "a.txt"):
        (made / name).write_text(name)
    (made / "link.md").symlink_to(made / "a.txt")
    return made


def test_a_folder_is_copied_with_its_paths(zone: Path, source: Path) -> None:
    results = stage([source], zone)
    assert {each.copied_to for each in results if each.reason is None} == {"adr/1.md", "a.txt"}
    assert {each.source.name: each.reason for each in results if each.reason} == {
        "LICENSE": RejectionReason.UNSUPPORTED_TYPE,
        ".hidden.md": RejectionReason.HIDDEN_OR_TEMPORARY,
        "link.md": RejectionReason.LINK,
    }
    assert [each.path for each in discover(zone)] == ["a.txt", "adr/1.md"]
    assert (source / "a.txt").exists()


def test_nothing_is_overwritten(zone: Path, source: Path) -> None:
    (zone / "a.txt").write_text("mine")
    results = stage([source / "a.txt", source / "a.txt"], zone)
    assert [each.copied_to for each in results] == ["a~2.txt", "a~3.txt"]
    assert (zone / "a.txt").read_text() == "mine"


def test_a_named_file_is_copied_whatever_it_is_called(zone: Path, source: Path) -> None:
    (result,) = stage([source / "adr" / "LICENSE"], zone)
    assert result.copied_to == "LICENSE"


def test_a_folder_cannot_land_among_the_processed(zone: Path, source: Path) -> None:
    (source / "processed").mkdir()
    (source / "processed" / "b.md").write_text("b")
    stage([source], zone)
    assert "processed-1/b.md" in [each.path for each in discover(zone)]


def test_nothing_is_copied_through_a_link(zone: Path, source: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (zone / "adr").symlink_to(outside)
    assert [each.copied_to for each in stage([source], zone)][:2] == ["a.txt", None]
    assert (zone / "1.md").read_text() == "adr/1.md"
    assert list(outside.iterdir()) == []


def test_what_is_not_there_is_an_error(zone: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        stage([tmp_path / "nowhere.md"], zone)
    assert list(zone.glob(".incoming-*")) == []


def test_names_of_full_length_stay_apart(zone: Path, tmp_path: Path) -> None:
    name = "ü" * 126 + ".md"
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(folder)
    results = stage([tmp_path / "one", tmp_path / "two"], zone)
    copied = [str(each.copied_to) for each in results]
    assert copied == [name, "ü" * 125 + "~2.md"]
    assert [(zone / each).read_text() for each in copied] == ["one", "two"]


def test_what_cannot_be_read_is_told_and_the_rest_goes_on(
    zone: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The superuser may read everything: the refusal has to be made up.
    really_open = Path.open

    def guarded(path: Path, *arguments: str) -> object:
        if path == source / "a.txt":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return really_open(path, *arguments)

    monkeypatch.setattr(Path, "open", guarded)
    results = stage([source / "a.txt", source / "adr" / "1.md"], zone)
    assert [(each.copied_to, each.reason) for each in results] == [
        (None, RejectionReason.UNREADABLE),
        ("1.md", None),
    ]


def test_a_folder_that_cannot_be_looked_into_is_told(
    zone: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_scan = os.scandir

    def guarded(path: str | int) -> object:
        # Whatever removes a folder lists it by its descriptor.
        if not isinstance(path, int) and os.fspath(path) == str(source / "adr"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return really_scan(path)

    monkeypatch.setattr(os, "scandir", guarded)
    results = stage([source], zone)
    assert (source / "adr", RejectionReason.UNREADABLE) in [
        (each.source, each.reason) for each in results
    ]
    assert "a.txt" in [each.copied_to for each in results]
