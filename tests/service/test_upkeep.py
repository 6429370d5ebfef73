"""The text index is merged beside messages, and stays right and bounded without that."""

from __future__ import annotations

from pathlib import Path

import pytest

from memgraph import MemoryService, Orchestrator
from memgraph.service import open_orchestrator

MESSAGES = 200
# SQLite merges sixteen parts of a size into one of the next.


def parts(orc: Orchestrator) -> int:
    """How many parts the text index has: each holds rows of pages of its own."""
    with orc._service.opened(orc.name) as opened, opened.database.read() as connection:
        found = connection.exec_driver_sql("SELECT count(DISTINCT segid) FROM memory_fts_idx")
        return int(found.scalar_one())


def talk(orc: Orchestrator) -> None:
    for number in range(MESSAGES):
        orc.save_episode(
            f"Message number{number} of the evening.", session_id="s", source_role="user"
        )


def found(orc: Orchestrator, word: str) -> list[str]:
    return [each.memory.content for each in orc.recall(word, top_n=5).items]


def test_what_is_due_is_merged_in_steps(orc: Orchestrator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_orchestrator, "GIVE_WAY_S", 0.0)
    talk(orc)
    before = parts(orc)
    # SQLite merges sixteen parts of a size into one of the next.
    assert 1 < before <= 2 * 16
    with orc._service.opened(orc.name) as opened:
        opened.upkeep.run()
    assert parts(orc) < before
    assert parts(orc) <= 4
    assert found(orc, "number77")[0] == "Message number77 of the evening."
    assert orc.verify().ok
    with orc._service.opened(orc.name) as opened:
        commits = opened.database.commits
        opened.upkeep.run()
        assert opened.database.commits == commits


def test_the_background_merges(tmp_path: Path) -> None:
    with MemoryService(tmp_path, environ={}) as service:
        orc = service.orchestrator("orc-1", create=True)
        talk(orc)
        with service.opened("orc-1") as opened:
            assert opened.background.wait_idle(30.0)
        assert parts(orc) <= 16
        assert found(orc, "number77")[0] == "Message number77 of the evening."
