"""Real processes, really killed: nothing is lost and nothing is stored twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ingest.claims import CLAIMS, MANIFEST_ENDING
from ingest.pipeline import IngestPipeline
from memgraph import MemoryService
from memgraph.model.enums import MemoryKind

FILES = 40
KILLS = 12
PROGRAM = Path(__file__).with_name("kill_workers.py")


def test_killed_workers_lose_and_repeat_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        zone = service.orchestrator("orc-1", create=True).paths.ingest
    for number in range(FILES):
        text = f"# 8 May 2023\nAnn: This is file {number}.\nBob: I read {number}.\n"
        (zone / f"talk-{number:03d}.txt").write_text(text)
    repository = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(root), str(FILES), str(KILLS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([repository, *sys.path])},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        IngestPipeline(orc).run()
        assert IngestPipeline(orc).run().results == ()
        turns = orc.list_memories(kinds=[MemoryKind.EPISODE], limit=1000)
    expected = {f"This is file {n}." for n in range(FILES)} | {f"I read {n}." for n in range(FILES)}
    assert sorted(each.content for each in turns) == sorted(expected)
    kept = {each.name for each in (zone / "processed").iterdir()}
    names = {f"talk-{number:03d}.txt" for number in range(FILES)}
    assert kept == names | {name + MANIFEST_ENDING for name in names}
    told = [json.loads((zone / "processed" / (n + MANIFEST_ENDING)).read_bytes()) for n in names]
    made = [each["memory_id"] for one in told for each in one["items"]["memories"]]
    assert sorted(made) == sorted(each.memory_id for each in turns)
    assert list((zone / CLAIMS).glob("[!.]*")) == []
    assert list((zone / "rejected").iterdir()) == []
