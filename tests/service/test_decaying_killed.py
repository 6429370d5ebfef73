"""Processes that retire at the same time, or are killed while they do: the end is the same."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from processes import Process, wait_until
from working import INFERRED

from memgraph import MemoryService
from memgraph.clock import FixedClock
from memgraph.model.enums import MemoryStatus
from memgraph.operations.life import decay as decaying
from memgraph.store import decay as decay_rows

FACTS, PROTECTED = 300, 20


def retire(root: Path, begun: Path, retired: Path) -> None:
    decay_rows.PAGE = 10
    clock = FixedClock()
    clock.advance(days=40)
    with (
        MemoryService(root, clock=clock, environ={}, background=False) as service,
        service.opened("orc-1") as opened,
    ):
        begun.touch()
        report = decaying.decay(opened, now_ms=clock.now_ms(), actor="nightly")
        retired.write_text(str(report.counts["retired"]))


def begin(root: Path, number: int) -> tuple[Process, Path]:
    """A process that retires, and the file that it ends with."""
    begun, retired = root / f"begun-{number}", root / f"retired-{number}"
    process = Process(retire, root, begun, retired)
    assert wait_until(begun.exists)
    return process, retired


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
        assert orc.jobs.run("decay").counts["retired"] == 0
        active = orc.memories.list(statuses=[MemoryStatus.ACTIVE], limit=1_000)
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
    for number in range(3):
        process, _ = begin(root, number)
        time.sleep(chance.uniform(0.0, 0.12))
        process.kill()
    process, retired = begin(root, 3)
    assert process.wait() == 0
    assert 0 <= int(retired.read_text()) <= FACTS
    require_the_end(root)


def test_two_at_once(root: Path) -> None:
    both = [begin(root, 0), begin(root, 1)]
    assert [process.wait() for process, _ in both] == [0, 0]
    assert sum(int(retired.read_text()) for _, retired in both) == FACTS
    require_the_end(root)
