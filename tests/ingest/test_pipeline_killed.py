"""Real processes, really killed: nothing is lost and nothing is stored twice."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from multiprocessing import parent_process
from pathlib import Path

from processes import Process, wait_until
from sampling import often

from ingest.claims import CLAIMS, MANIFEST_ENDING
from ingest.pipeline import IngestPipeline
from memgraph import MemoryService
from memgraph.model.enums import MemoryKind, MemoryType

KILLS = often(12)
FILES = 3 * KILLS + 4
PART_KILLS = often(12)
TODOS = 150 * PART_KILLS + 200


def work(root: Path) -> None:
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        while (parent := parent_process()) and parent.is_alive():
            IngestPipeline(orc).run()
            time.sleep(0.01)


def kill_while(root: Path, workers: int, kills: int, has_got_on: Callable[[], bool]) -> None:
    """Kill one of some workers and replace it, each time that they have got on, so often."""
    chance = random.Random()
    at_work = [Process(work, root) for _ in range(workers)]
    for _ in range(kills):
        assert wait_until(has_got_on)
        # Anywhere in what comes next.
        time.sleep(chance.random() * 0.03)
        assert at_work.pop(0).kill() == -signal.SIGKILL
        at_work.append(Process(work, root))
    # None has ended by itself.
    assert [each.kill() for each in at_work] == [-signal.SIGKILL] * workers


def test_killed_workers_lose_and_repeat_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        zone = service.orchestrator("orc-1", create=True).paths.ingest
    for number in range(FILES):
        text = f"# 8 May 2023\nAnn: This is file {number}.\nBob: I read {number}.\n"
        (zone / f"talk-{number:03d}.txt").write_text(text)
    processed = zone / "processed"
    done = 0

    def has_got_on() -> bool:
        nonlocal done
        now = len(list(processed.iterdir())) // 2
        if now < min(done + 2, FILES):
            return False
        done = now
        return True

    kill_while(root, 3, KILLS, has_got_on)
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        IngestPipeline(orc).run()
        assert IngestPipeline(orc).run() == []
        turns = orc.memories.list(kinds=[MemoryKind.EPISODE], limit=1000)
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
    database = sqlite3.connect(zone.parent / "memory.db")
    chance = random.Random()
    wanted = chance.randint(1, 3)

    def has_got_on() -> bool:
        nonlocal wanted
        [(now,)] = database.execute("SELECT coalesce(max(part), 0) FROM ingest_parts").fetchall()
        if now < wanted:
            return False
        wanted = now + chance.randint(1, 3)
        return True

    kill_while(root, 2, PART_KILLS, has_got_on)
    database.close()
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        results = [each for _ in range(3) for each in IngestPipeline(orc).run()]
        assert {each.outcome for each in results} <= {"processed", "duplicate", "skipped"}
        todos = list(orc.memories.list(types=[MemoryType.TODO], limit=1000))
        while page := orc.memories.list(
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
