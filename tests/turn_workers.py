"""A process that takes messages, for tests of turns that are killed.

It writes a line for each message that was acknowledged: its number and the id of the episode.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from memgraph import MemoryHooks, MemoryService

ORC = "orc-1"
CONVERSATION = "channel-1"
SETTINGS = {"memory.storage.synchronous": "NORMAL", "memory.embedding.provider": "none"}


def start(root: Path, told: Path, first: int) -> subprocess.Popen[bytes]:
    """The process, at work on messages from ``first`` on."""
    script = "import turn_workers as w; w.main()"
    return subprocess.Popen(
        [sys.executable, "-c", script, str(root), str(told), str(first)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    )


def main() -> None:
    root, told, first = sys.argv[1:]
    out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with (
        MemoryService(root, config=SETTINGS, environ={}) as service,
        MemoryHooks(service, ORC, deadline_ms=20_000) as hooks,
    ):
        for number in range(int(first), int(first) + 100_000):
            turn = hooks.on_message(
                f"Message {number} of them all.",
                conversation_id=CONVERSATION,
                turn_id=f"turn-{number}",
            )
            if turn.acknowledged:
                os.write(out, f"{number} {turn.episode_id}\n".encode())
