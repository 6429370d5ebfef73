"""What a run tidies up in the drop zone, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.drop_zone import remove_emptied
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
