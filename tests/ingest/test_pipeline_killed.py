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
from memgraph.model.enums import MemoryKind, MemoryType

FILES = 40
KILLS = 12
TODOS = 2_000
PART_KILLS = 12
PROGRAM = Path(__file__).with_name("kill_workers.py")


def work_and_kill(root: Path, *arguments: object) -> None:
    repository = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(root), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([repository, *sys.path])},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_killed_workers_lose_and_repeat_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        zone = service.orchestrator("orc-1", create=True).paths.ingest
    for number in range(FILES):
        text = f"# 8 May 2023\nAnn: This is file {number}.\nBob: I read {number}.\n"
        (zone / f"talk-{number:03d}.txt").write_text(text)
    work_and_kill(root, FILES, KILLS)
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


def test_a_file_in_parts_goes_on_where_it_was(tmp_path: Path) -> None:
    root = tmp_path / "root"
    notes = "\n\n".join(f"- [ ] Ask Ann for the key of room {n}." for n in range(TODOS))
    with MemoryService(root, environ={}, background=False) as service:
        zone = service.orchestrator("orc-1", create=True).paths.ingest
    (zone / "rooms.md").write_text(f"# Rooms\n\n{notes}\n")
    (zone / "same.md").write_text(f"# Rooms\n\n{notes}\n")
    work_and_kill(root, "parts", PART_KILLS)
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        results = [each for _ in range(3) for each in IngestPipeline(orc).run().results]
        assert {each.outcome for each in results} <= {"processed", "duplicate", "skipped"}
        todos = list(orc.list_memories(types=[MemoryType.TODO], limit=1000))
        while page := orc.list_memories(
            types=[MemoryType.TODO], limit=1000, before=todos[-1].memory_id
        ):
            todos += page
        assert orc.verify().totals == {}
    assert sorted(each.content for each in todos) == sorted(
        f"Ask Ann for the key of room {n}." for n in range(TODOS)
    )
    told = {
        name: json.loads((zone / "processed" / (name + MANIFEST_ENDING)).read_bytes())
        for name in ("rooms.md", "same.md")
    }
    assert sorted(each["outcome"] for each in told.values()) == ["duplicate", "processed"]
    (first,) = [each for each in told.values() if each["outcome"] == "processed"]
    assert first["resumed"]
    assert first["memories"] == {"stored": TODOS}
    made = {each["memory_id"] for each in first["items"]["memories"]}
    assert made == {each.memory_id for each in todos}
    assert list((zone / CLAIMS).glob("[!.]*")) == []
