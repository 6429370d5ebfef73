"""Processes that retire at the same time, or are killed while they do: the end is the same."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from working import INFERRED

from memgraph import MemoryService
from memgraph.clock import FixedClock
from memgraph.model.enums import MemoryStatus

FACTS, PROTECTED = 600, 20
PROGRAM = """
import sys
from memgraph import MemoryService
from memgraph.clock import FixedClock
from memgraph.service.life import decaying

decaying.BATCH = 10
clock = FixedClock()
clock.advance(days=40)
with MemoryService(sys.argv[1], clock=clock, environ={}, background=False) as service:
    with service.opened("orc-1") as opened:
        print("begun", flush=True)
        print(decaying.decay(opened, now_ms=clock.now_ms(), actor="nightly").counts["retired"])
"""


def begin(root: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(root)],
        env=os.environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


@pytest.fixture
def root(tmp_path: Path) -> Path:
    config = {"memory.storage.synchronous": "NORMAL"}
    with MemoryService(
        tmp_path, clock=FixedClock(), environ={}, background=False, config=config
    ) as service:
        orc = service.orchestrator("orc-1", create=True)
        notes = [{"content": f"Note {number}.", "source": INFERRED} for number in range(FACTS)]
        kept = [{"content": f"Rule {number}.", "decay_rate": 0} for number in range(PROTECTED)]
        orc.remember_many(notes + kept)
    return tmp_path


def require_the_end(root: Path) -> None:
    """Every note was retired just once, nothing else was, and the audit finds nothing."""
    clock = FixedClock()
    clock.advance(days=41)
    with MemoryService(root, clock=clock, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        assert orc.run("decay").counts["retired"] == 0
        active = orc.list_memories(statuses=[MemoryStatus.ACTIVE], limit=1_000)
        assert len(active) == PROTECTED
        assert all(each.content.startswith("Rule") for each in active)
        with service.opened("orc-1") as opened, opened.database.read() as connection:
            [(rows, memories)] = connection.exec_driver_sql(
                "SELECT count(*), count(DISTINCT memory_id) FROM memory_status"
                " WHERE reason = 'decayed'"
            )
        assert (rows, memories) == (FACTS, FACTS)
        assert orc.verify().ok


def test_killed_again_and_again(root: Path) -> None:
    chance = random.Random(7)
    for _ in range(4):
        process = begin(root)
        time.sleep(chance.uniform(0.0, 0.25))
        process.kill()
        process.communicate()
    process = begin(root)
    told, _ = process.communicate()
    assert process.returncode == 0
    assert 0 <= int(told) <= FACTS
    require_the_end(root)


def test_two_at_once(root: Path) -> None:
    both = [begin(root), begin(root)]
    told = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(int(each) for each in told) == FACTS
    require_the_end(root)
