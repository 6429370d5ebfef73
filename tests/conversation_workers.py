"""A process that talks: what tests of killed processes and of several at once start.

It writes a line for each turn that was acknowledged. As ``alone`` every session is its own; as
``together`` all talk in one session.
"""

from __future__ import annotations

import os
from pathlib import Path

from processes import Process

from memgraph import MemoryService

ORC = "orc-1"
TURNS = 3
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

        for number in range(sessions):
            session = "shared" if mode == "together" else f"{name}-{number}"
            for turn in range(TURNS):
                text = f"Turn {turn} of {name} in {number}."
                memory_id = orc.save_episode(text, session_id=session, source_role="user")
                tell("turn", session, memory_id)
