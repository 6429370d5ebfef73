from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ingest.claims import CLAIMS, FileResult, claims
from ingest.drop_zone import stage
from ingest.pipeline import IngestPipeline
from ingest.reasons import RejectionReason
from memgraph import Orchestrator


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


def copied(zone: Path) -> dict[str, str]:
    return {each.path: each.file.read_text() for each in claims(zone)}


def test_a_folder_is_copied_with_its_paths(zone: Path, source: Path) -> None:
    not_copied = stage([source, source / "adr" / "LICENSE"], zone)
    assert copied(zone) == {"adr/1.md": "adr/1.md", "a.txt": "a.txt", "LICENSE": "adr/LICENSE"}
    assert {each.source.name: each.reason for each in not_copied} == {
        "LICENSE": RejectionReason.UNSUPPORTED_TYPE,
        ".hidden.md": RejectionReason.HIDDEN_OR_TEMPORARY,
        "link.md": RejectionReason.LINK,
    }
    assert (source / "a.txt").exists()


def test_a_folder_that_is_ingested_again_leaves_no_second_copies(
    orc: Orchestrator, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("We sold the boat in May.")
    (tmp_path / "notes" / "b.txt").write_text("We left on \0 May.")
    results: list[FileResult] = []
    for _ in range(2):
        stage([tmp_path / "notes"], orc.paths.ingest)
        results += IngestPipeline(orc).run()
    outcomes = [sorted(each.outcome for each in run) for run in (results[:2], results[2:])]
    assert outcomes == [["processed", "rejected"], ["duplicate", "rejected"]]
    (again,) = (each for each in results if each.outcome == "duplicate")
    assert (again.stored_as, again.manifest) == (
        "processed/a.txt",
        "processed/a.txt.manifest.json",
    )
    reasons = {each.reason for each in results if each.outcome == "rejected"}
    assert reasons == {RejectionReason.NUL_BYTES}
    for folder, name in ((orc.paths.processed, "a.txt"), (orc.paths.rejected, "b.txt")):
        kept = sorted(each.name for each in folder.iterdir())
        assert kept == [name, f"{name}.manifest.json"]
    assert claims(orc.paths.ingest) == []
    (tmp_path / "notes" / "b.txt").write_text("We left on \0 June.")
    stage([tmp_path / "notes" / "b.txt"], orc.paths.ingest)
    assert [each.stored_as for each in IngestPipeline(orc).run()] == ["rejected/b~2.txt"]


def test_what_is_not_there_is_an_error(zone: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        stage([tmp_path / "nowhere.md"], zone)
    assert not (zone / CLAIMS).exists()


def test_what_cannot_be_read_is_told_and_the_rest_goes_on(
    zone: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The superuser may read everything: the refusal has to be made up.
    really_open, really_scan = Path.open, os.scandir

    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    def guarded_open(path: Path, *arguments: str, **options: str) -> object:
        unread = path == source / "a.txt"
        return refuse(path) if unread else really_open(path, *arguments, **options)

    def guarded_scan(path: str | int) -> object:
        # Whatever removes a folder lists it by its descriptor.
        guarded = not isinstance(path, int) and os.fspath(path) == str(source / "adr")
        return refuse(source / "adr") if guarded else really_scan(path)

    (source / "b.txt").write_text("b")
    monkeypatch.setattr(Path, "open", guarded_open)
    monkeypatch.setattr(os, "scandir", guarded_scan)
    not_copied = {each.source.name: each.reason for each in stage([source], zone)}
    assert not_copied["a.txt"] == not_copied["adr"] == RejectionReason.UNREADABLE
    assert copied(zone) == {"b.txt": "b"}
