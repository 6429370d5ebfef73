from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ingest.claims import (
    CLAIMS,
    MANIFEST_ENDING,
    FileClaim,
    adopt,
    claim,
)
from ingest.safe_files import (
    write_durably,
)
from memgraph.errors import IngestRejected


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("words")
    return tmp_path


def taken(zone: Path, path: str = "notes/a.md") -> FileClaim:
    made = claim(zone, path, at=1_000)
    assert made is not None
    return made


def test_a_claim_owns_the_file(zone: Path) -> None:
    made = taken(zone)
    assert not (zone / "notes" / "a.md").exists()
    assert made.file.read_text() == "words"
    assert list(adopt(zone)) == []
    made.release()


def test_only_one_of_two_gets_it(zone: Path) -> None:
    made = taken(zone)
    assert claim(zone, "notes/a.md", at=1_000) is None
    assert claim(zone, "gone/a.md", at=1_000) is None
    assert len(list((zone / CLAIMS).iterdir())) == 1
    made.release()


def test_a_claim_left_behind_is_adopted_with_what_it_knew(zone: Path) -> None:
    made = taken(zone)
    made.begin()
    made.reserve("processed")
    made.release()
    (adopted,) = adopt(zone)
    assert adopted.adopted
    assert (adopted.path, adopted.claim_id) == (made.path, made.claim_id)
    assert (adopted.attempts, adopted.target, adopted.started_at) == (1, made.target, 1_000)
    adopted.finish()
    assert (zone / "processed" / "notes" / "a.md").read_text() == "words"
    assert list(adopt(zone)) == []


def test_a_claim_without_its_file_is_swept(zone: Path) -> None:
    made = taken(zone)
    made.file.unlink()
    made.release()
    assert list(adopt(zone)) == []
    assert not made.directory.exists()


@pytest.mark.parametrize("rubbish", ["{", "[]", '{"path": 3}', "\udcff"])
def test_a_claim_that_cannot_be_read_keeps_its_file(zone: Path, rubbish: str) -> None:
    made = taken(zone)
    (made.directory / "claim.json").write_bytes(rubbish.encode("utf-8", "surrogateescape"))
    made.release()
    (adopted,) = adopt(zone)
    assert adopted.file.read_text() == "words"
    assert adopted.path.startswith("recovered-")
    adopted.release()


def test_targets_do_not_collide(zone: Path) -> None:
    first = taken(zone)
    first.reserve("processed")
    (zone / "notes" / "a.md").write_text("other words")
    second = taken(zone)
    second.reserve("processed")
    assert (first.target, second.target) == ("processed/notes/a.md", "processed/notes/a~2.md")
    first.finish()
    (zone / "notes" / "a.md").write_text("third")
    third = taken(zone)
    third.reserve("processed")
    assert third.target == "processed/notes/a~3.md"
    second.finish()
    third.finish()
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


def test_a_folder_that_became_a_link_is_not_entered(zone: Path, tmp_path: Path) -> None:
    (zone / "link").symlink_to(zone / "notes")
    with pytest.raises(IngestRejected):
        claim(zone, "link/a.md", at=1)
    assert (zone / "notes" / "a.md").exists()


def test_a_durable_write_replaces_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / f"a{MANIFEST_ENDING}"
    write_durably(path, {"b": "\udcff", "a": 1})
    write_durably(path, {"b": 2})
    assert json.loads(path.read_bytes()) == {"b": 2}
    assert list(path.parent.iterdir()) == [path]
