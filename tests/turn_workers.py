"""A process that takes messages, for tests of turns that are killed.

It writes a line for each message that was acknowledged: its number and the id of the episode.
"""

from __future__ import annotations

import os
from pathlib import Path

from processes import Process

from memgraph import MemoryHooks, MemoryService

ORC = "orc-1"
CONVERSATION = "channel-1"
SETTINGS = {"memory.storage.synchronous": "NORMAL", "memory.embedding.provider": "none"}


def start(root: Path, told: Path, first: int) -> Process:
    """The process, at work on messages from ``first`` on."""
    return Process(_take, root, told, first)


def _take(root: Path, told: Path, first: int) -> None:
    out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with (
        MemoryService(root, config=SETTINGS, environ={}) as service,
        MemoryHooks(service, ORC, deadline_ms=20_000) as hooks,
    ):
        for number in range(first, first + 100_000):
            turn = hooks.on_message(
                f"Message {number} of them all.",
                conversation_id=CONVERSATION,
                turn_id=f"turn-{number}",
            )
            if turn.acknowledged:
                os.write(out, f"{number} {turn.episode_id}\n".encode())
