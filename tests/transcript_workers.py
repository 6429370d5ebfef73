"""What other processes do to a transcript in tests."""

from __future__ import annotations

from pathlib import Path

from memgraph import MemoryService
from memgraph.model.conversation import ConversationEntry
from memgraph.operations.tools.transcript import Transcript


def append_numbered(root: Path, worker: int, count: int) -> None:
    """Append ``[worker, 0]``, ``[worker, 1]`` … to the session ``s``, one at a time."""
    with MemoryService(root, environ={}, background=False) as service:
        transcript = Transcript(service.orchestrator("orc"), "s")
        for number in range(count):
            transcript.append([ConversationEntry([worker, number])])
