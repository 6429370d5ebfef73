"""What a run tidies up in the drop zone, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

from ingest_runs import drop

from ingest.drop_zone import remove_emptied
from ingest.pipeline import IngestPipeline
from memgraph import Orchestrator


def test_folders_that_a_run_emptied_are_removed(orc: Orchestrator) -> None:
    zone = orc.paths.ingest
    drop(orc, "a/b/c/1.txt", "We sold the boat in May.")
    drop(orc, "a/d/2.txt", "")
    drop(orc, "kept/3.txt", "We sold the car in June.")
    drop(orc, "kept/.hidden", "Words.")
    (zone / "empty").mkdir()
    outcomes = {each.outcome for each in IngestPipeline(orc).run()}
    assert outcomes == {"processed", "rejected"}
    left = {each.name for each in zone.iterdir()}
    assert left == {".claimed", "empty", "kept", "processed", "rejected"}
    assert (zone / "processed" / "a" / "b" / "c" / "1.txt").exists()
    assert (zone / "kept" / ".hidden").exists()


def test_a_folder_that_became_a_link_stays(tmp_path: Path) -> None:
    zone, elsewhere = tmp_path / "zone", tmp_path / "elsewhere"
    zone.mkdir()
    (elsewhere / "inner").mkdir(parents=True)
    (zone / "a").symlink_to(elsewhere)
    remove_emptied(zone, ["a/inner", "a", "gone/and/gone", ""])
    assert (zone / "a").is_symlink()
    assert (elsewhere / "inner").is_dir()
