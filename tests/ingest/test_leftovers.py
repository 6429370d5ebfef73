"""What a run tidies up in the drop zone, and what it leaves alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ingest.drop_zone import STALE_SECONDS, remove_emptied, remove_stale, stage
from ingest.pipeline import IngestPipeline
from memgraph import Orchestrator


@pytest.fixture
def zone(orc: Orchestrator) -> Path:
    return orc.paths.ingest


def fill(path: Path, text: str = "We sold the boat in May.") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_folders_that_a_run_emptied_are_removed(orc: Orchestrator, zone: Path) -> None:
    fill(zone / "a" / "b" / "c" / "1.txt")
    fill(zone / "a" / "d" / "2.txt", "")
    fill(zone / "kept" / "3.txt", "We sold the car in June.")
    fill(zone / "kept" / ".hidden")
    (zone / "empty").mkdir()
    outcomes = {each.outcome for each in IngestPipeline(orc).run().results}
    assert outcomes == {"processed", "rejected"}
    assert {each.name for each in zone.iterdir()} == {
        ".claimed",
        "empty",
        "kept",
        "processed",
        "rejected",
    }
    assert (zone / "processed" / "a" / "b" / "c" / "1.txt").exists()
    assert (zone / "kept" / ".hidden").exists()


def test_a_folder_that_became_a_link_stays(zone: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "inner").mkdir(parents=True)
    (zone / "a").symlink_to(elsewhere)
    remove_emptied(zone, ["a/inner", "a", "gone/and/gone", ""])
    assert (zone / "a").is_symlink()
    assert (elsewhere / "inner").is_dir()


def test_copies_that_were_never_ended_are_removed_after_a_day(
    orc: Orchestrator, zone: Path
) -> None:
    old = time.time() - STALE_SECONDS - 60
    left = fill(zone / f".incoming-{'0' * 16}")
    others = [zone / ".incoming-mine", zone / "sub" / f".incoming-{'1' * 16}"]
    for path in (left, *map(fill, others)):
        os.utime(path, (old, old))
    young = fill(zone / f".incoming-{'2' * 16}")
    IngestPipeline(orc).run()
    assert not left.exists()
    assert [each.exists() for each in (*others, young)] == [True, True, True]


def test_a_drop_zone_that_is_not_there(tmp_path: Path) -> None:
    remove_stale(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_staging_ends_without_leftovers(orc: Orchestrator, zone: Path, tmp_path: Path) -> None:
    source = fill(tmp_path / "source" / "sub" / "1.txt")
    stage([source.parents[1]], zone)
    assert (zone / "sub" / "1.txt").exists()
    IngestPipeline(orc).run()
    assert not (zone / "sub").exists()
    assert source.exists()
