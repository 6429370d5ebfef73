"""Processes that are killed while they talk."""

from __future__ import annotations

import random
import time
from pathlib import Path

from processes import Process, wait_until

from memgraph import MemoryKind, MemoryService, Orchestrator
from memgraph.model.values import Memory

ORC = "orc-1"
SETTINGS = {"memory.storage.synchronous": "NORMAL", "memory.embedding.provider": "none"}
ROUNDS = 4


def turns(orc: Orchestrator) -> list[Memory]:
    found: list[Memory] = []
    page = orc.memories.list(kinds=[MemoryKind.EPISODE], limit=1_000)
    while page:
        found += page
        page = orc.memories.list(kinds=[MemoryKind.EPISODE], limit=1_000, before=page[-1].memory_id)
    return found


def talk(root: Path, told: Path, name: str) -> None:
    """Runs in a process: talk in session after session, and note each turn once acknowledged."""
    with (
        MemoryService(root, config=SETTINGS, environ={}, background=False) as service,
        told.open("ab", buffering=0) as file,
    ):
        orc = service.orchestrator(ORC)
        for number in range(10_000):
            session = f"{name}-{number}"
            for turn in range(3):
                text = f"Turn {turn} of {session}."
                memory_id = orc.save_episode(text, session_id=session, source_role="user")
                file.write(f"{session} {memory_id}\n".encode())


def acknowledged(told: Path) -> list[list[str]]:
    """Return (session, turn) of every line; one that was cut short was not told."""
    whole = told.read_text().rpartition("\n")[0] if told.exists() else ""
    return [line.split() for line in whole.splitlines()]


def test_a_killed_process_loses_no_turn_and_completes_what_it_left(tmp_path: Path) -> None:
    root, told = tmp_path / "root", tmp_path / "told"
    chance = random.Random(4)
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        service.orchestrator(ORC, create=True)
    for number in range(ROUNDS):
        before = len(acknowledged(told))
        process = Process(talk, root, told, f"p{number}")
        assert wait_until(lambda: len(acknowledged(told)) > before)  # noqa: B023  # called at once
        time.sleep(chance.uniform(0.0, 0.25))
        process.kill()
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        orc = service.orchestrator(ORC)
        stored = {each.memory_id for each in turns(orc)}
        said = acknowledged(told)
        assert len(said) > ROUNDS
        assert {memory_id for _, memory_id in said} <= stored
        # Whoever begins a session completes the one before.
        order = list(dict.fromkeys(session for session, _ in said))
        sessions = orc.sessions.list(limit=1_000)
        completed = {each.session_id for each in sessions if each.completed_at is not None}
        assert completed >= set(order[:-1]) & {each.session_id for each in sessions}
        assert len(sessions) - len(completed) == 1
        assert orc.verify().ok
