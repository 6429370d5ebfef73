"""A process that talks: what tests of killed processes and of several at once start.

It writes a line for each turn that was acknowledged. As ``listen`` every session is its own, and it
delivers events and writes a line for each that it takes; as ``together`` all talk in one session.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from memgraph import MemoryService
from memgraph.model.events import Delivered, SessionCompleted

ORC = "orc-1"
TURNS = 3
CLAIM_S = 1.0
SETTINGS = {"memory.storage.synchronous": "NORMAL", "memory.embedding.provider": "none"}


def start(root: Path, told: Path, name: str, mode: str, sessions: int) -> subprocess.Popen[bytes]:
    """The process, at work."""
    script = "import conversation_workers as w; w.main()"
    arguments = [str(root), str(told), name, mode, str(sessions)]
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    )


def main() -> None:
    root, told, name, mode, sessions = sys.argv[1:]
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        orc = service.orchestrator(ORC)

        def tell(*words: object) -> None:
            os.write(out, (" ".join(map(str, words)) + "\n").encode())

        def take(given: Delivered) -> None:
            if isinstance(given.event, SessionCompleted):
                tell("event", given.seq, given.event.session_id)

        if mode == "listen":
            orc.subscribe("listener", take, claim_s=CLAIM_S)
        for number in range(int(sessions)):
            session = "shared" if mode == "together" else f"{name}-{number}"
            for turn in range(TURNS):
                text = f"Turn {turn} of {name} in {number}."
                memory_id = orc.save_episode(text, session_id=session, source_role="user")
                tell("turn", session, memory_id)
            if mode == "listen":
                orc.deliver_events()
