"""Processes that are killed while they talk, and several that talk at once."""

from __future__ import annotations

import random
import time
from pathlib import Path

from conversation_workers import ORC, SETTINGS, TURNS, start

from memgraph import MemoryKind, MemoryService, Orchestrator
from memgraph.model.values import Memory

ROUNDS = 6
PATIENCE_S = 60.0


def words(told: Path, kind: str) -> list[list[str]]:
    """What processes told of one kind; a line that was cut short was not told."""
    whole = told.read_text().rpartition("\n")[0].splitlines() if told.exists() else []
    return [line.split()[1:] for line in whole if line.startswith(f"{kind} ")]


def turns(orc: Orchestrator) -> list[Memory]:
    found: list[Memory] = []
    page = orc.memories.list(kinds=[MemoryKind.EPISODE], limit=1_000)
    while page:
        found += page
        page = orc.memories.list(kinds=[MemoryKind.EPISODE], limit=1_000, before=page[-1].memory_id)
    return found


def test_a_killed_process_loses_no_turn_and_completes_what_it_left(tmp_path: Path) -> None:
    root, told = tmp_path / "root", tmp_path / "told"
    chance = random.Random(4)
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        service.orchestrator(ORC, create=True)
    for number in range(ROUNDS):
        process = start(root, told, f"p{number}", "alone", 10_000)
        before = len(words(told, "turn"))
        deadline = time.monotonic() + PATIENCE_S
        while len(words(told, "turn")) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.25))
        process.kill()
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        orc = service.orchestrator(ORC)
        stored = {each.memory_id for each in turns(orc)}
        said = words(told, "turn")
        assert len(said) > ROUNDS
        assert {memory_id for _, memory_id in said} <= stored
        # Whoever begins a session completes the one before.
        order = list(dict.fromkeys(session for session, _ in said))
        sessions = orc.sessions.list(limit=1_000)
        completed = {each.session_id for each in sessions if each.completed_at is not None}
        assert completed >= set(order[:-1]) & {each.session_id for each in sessions}
        assert len(sessions) - len(completed) == 1
        assert orc.verify().ok


def test_turns_of_several_processes_keep_one_sequence(tmp_path: Path) -> None:
    root, told = tmp_path / "root", tmp_path / "told"
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        service.orchestrator(ORC, create=True)
    processes = [start(root, told, f"p{number}", "together", 20) for number in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        found = turns(service.orchestrator(ORC))
        said = words(told, "turn")
        assert len(said) == 3 * 20 * TURNS
        assert sorted(each.sequence or 0 for each in found) == list(range(len(said)))
        by_id = {each.memory_id: each.sequence or 0 for each in found}
        for name in ("p0", "p1", "p2"):
            mine = [each for each in reversed(found) if f"of {name} in" in each.content]
            places = [each.sequence or 0 for each in mine]
            assert places == sorted(places)
        assert {memory_id for _, memory_id in said} == set(by_id)
