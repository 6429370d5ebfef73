"""A process that talks: what tests of killed processes and of several at once start.

It writes a line for each turn that was acknowledged. As ``listen`` every session is its own, and it
delivers events and writes a line for each that it takes; as ``together`` all talk in one session.
"""

from __future__ import annotations

import os
from pathlib import Path

from processes import Process

from memgraph import MemoryService
from memgraph.model.events import DeliveredEvent, SessionCompleted

ORC = "orc-1"
TURNS = 3
CLAIM_S = 1.0
SETTINGS = {"memory.storage.synchronous": "NORMAL", "memory.embedding.provider": "none"}


def start(root: Path, told: Path, name: str, mode: str, sessions: int) -> Process:
    """The process, at work."""
    return Process(_talk, root, told, name, mode, sessions)


def _talk(root: Path, told: Path, name: str, mode: str, sessions: int) -> None:
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        orc = service.orchestrator(ORC)

        def tell(*words: object) -> None:
            os.write(out, (" ".join(map(str, words)) + "\n").encode())

        def take(given: DeliveredEvent) -> None:
            if isinstance(given.event, SessionCompleted):
                tell("event", given.seq, given.event.session_id)

        if mode == "listen":
            orc.events.subscribe("listener", take, claim_s=CLAIM_S)
        for number in range(sessions):
            session = "shared" if mode == "together" else f"{name}-{number}"
            for turn in range(TURNS):
                text = f"Turn {turn} of {name} in {number}."
                memory_id = orc.save_episode(text, session_id=session, source_role="user")
                tell("turn", session, memory_id)
            if mode == "listen":
                orc.events.deliver()
