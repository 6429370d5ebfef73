from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ingest.claims import (
    CLAIMS,
    FileClaim,
    IncomingFile,
    claim,
    claims,
    exclusive_run,
    remove_stale,
)
from ingest.pipeline import IngestPipeline
from memgraph import Orchestrator
from memgraph.errors import DatabaseBusy, IngestRejected


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("words")
    return tmp_path


def taken(zone: Path, path: str = "notes/a.md") -> FileClaim:
    made = claim(zone, path, at=1_000)
    assert made is not None
    return made


def test_a_claim_owns_the_file_and_a_later_run_finds_what_it_knew(zone: Path) -> None:
    made = taken(zone)
    assert not (zone / "notes" / "a.md").exists()
    assert claim(zone, "notes/a.md", at=1_000) is None
    made.begin(at=1_001)
    made.reserve("processed")
    (adopted,) = claims(zone)
    assert adopted.adopted
    assert (adopted.path, adopted.claim_id) == (made.path, made.claim_id)
    assert (adopted.attempts, adopted.target, adopted.started_at) == (1, made.target, 1_000)
    adopted.finish()
    assert (zone / "processed" / "notes" / "a.md").read_text() == "words"
    assert list((zone / CLAIMS).iterdir()) == []


def test_what_a_killed_run_or_upload_left_is_removed(zone: Path) -> None:
    made = taken(zone)
    made.file.unlink()
    fresh, stale = IncomingFile(zone), IncomingFile(zone)
    stale.file.close()
    os.utime(zone / CLAIMS / f".incoming-{stale._id}", (0, 0))
    assert claims(zone) == []
    remove_stale(zone)
    assert [each.name for each in (zone / CLAIMS).iterdir()] == [f".incoming-{fresh._id}"]
    fresh.discard()


def test_a_run_waits_for_another_within_its_limit_and_until_it_is_stopped(
    orc: Orchestrator,
) -> None:
    zone = orc.paths.ingest
    zone.mkdir(parents=True, exist_ok=True)
    (zone / "a.md").write_text("The lamp is green.")
    told: list[str] = []
    with exclusive_run(zone, lambda: False, 0.0):
        with pytest.raises(DatabaseBusy, match="another run is ingesting"):
            IngestPipeline(orc, wait_s=0.2, waits=lambda: told.append("waits")).run()
        assert told == ["waits"]
        with pytest.raises(DatabaseBusy):
            IngestPipeline(orc, stop=lambda: True).run()
    (result,) = IngestPipeline(orc, wait_s=0.0).run()
    assert result.outcome == "processed"


def test_a_claim_whose_state_cannot_be_read_now_stops_the_run(
    zone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = taken(zone)

    def refused(*_: object, **__: object) -> str:
        raise OSError(24, "too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", refused)
        with pytest.raises(OSError, match="too many open files"):
            claims(zone)
    assert [each.path for each in claims(zone)] == [made.path]


@pytest.mark.parametrize("rubbish", ["{", '{"path": 3}', "\udcff"])
def test_a_claim_that_cannot_be_read_keeps_its_file(zone: Path, rubbish: str) -> None:
    made = taken(zone)
    (made.directory / "claim.json").write_bytes(rubbish.encode("utf-8", "surrogateescape"))
    (adopted,) = claims(zone)
    assert adopted.file.read_text() == "words"
    assert adopted.path.startswith("recovered-")


def test_targets_do_not_collide(zone: Path) -> None:
    made = []
    for words in ("words", "other words", "third"):
        (zone / "notes" / "a.md").write_text(words)
        made.append(taken(zone))
        made[-1].reserve("processed", made)
    assert [each.target for each in made] == [
        *("processed/notes/a.md", "processed/notes/a~2.md", "processed/notes/a~3.md")
    ]
    for each in made:
        each.finish()
    assert (zone / "processed" / "notes" / "a~2.md").read_text() == "other words"


def test_a_name_is_kept_and_made_to_fit(zone: Path) -> None:
    for name in ("n" * 252 + ".md", "\u00e9" * 126 + ".md", "two\nlines.md", "\udcff.md"):
        (zone / name).write_text("words")
        made = taken(zone, name)
        made.reserve("rejected")
        made.write_manifest({"reason": "test"})
        made.finish()
        place = made.stored_file
        assert place.read_text() == "words"
        assert place.suffix == ".md"
        assert len(os.fsencode(made.manifest_file.name)) <= 255
        assert json.loads(made.manifest_file.read_bytes()) == {"reason": "test"}


def test_a_folder_that_became_a_link_is_not_entered(zone: Path) -> None:
    (zone / "link").symlink_to(zone / "notes")
    with pytest.raises(IngestRejected):
        claim(zone, "link/a.md", at=1)
    assert (zone / "notes" / "a.md").exists()
