"""A process that stores items for an agent, for tests of stores that are killed.

It writes a line when it begins a batch, and one when the batch is acknowledged.
"""

from __future__ import annotations

import os
from pathlib import Path

from processes import Process

from memgraph import MemoryEntity, MemoryService

ORC, AGENT = "orc-1", "ana"
ITEMS = 60
SETTINGS = {"memory.storage.synchronous": "NORMAL", "memory.embedding.provider": "none"}


def start(root: Path, told: Path, who: str) -> Process:
    """The process, at work until it is killed."""
    return Process(_store, root, told, who)


def texts(who: str, batch: int) -> list[str]:
    return [f"Item {number} of batch {batch} by {who}." for number in range(ITEMS)]


def _store(root: Path, told: Path, who: str) -> None:
    out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    known = {"tier": "SemanticMemory", "scope": "GlobalScope", "source": "UserSource"}
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        ana = MemoryEntity(service, ORC, AGENT)
        for batch in range(100_000):
            os.write(out, f"begun {who} {batch}\n".encode())
            ana.store([{**known, "content": each} for each in texts(who, batch)])
            os.write(out, f"stored {who} {batch}\n".encode())
