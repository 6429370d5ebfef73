"""What other processes do with items in tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from item_worlds import item

from memgraph import MemoryService, Viewer
from memgraph.model.context import Tier
from memgraph.service.context.database_backend import DatabaseBackend

NAME = "orc-1"
PROJECT = "web"
GRANTED = Viewer(project_ids=frozenset({PROJECT}))
ROUNDS = 8
MAX_ITEMS = 12


def started(root: Path, who: str) -> subprocess.Popen[bytes]:
    """A process that adds items of its own and one that all of them write."""
    return subprocess.Popen(
        [sys.executable, "-c", "import item_workers as w; w.main()", str(root), who],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    )


def main() -> None:
    root, who = Path(sys.argv[1]), sys.argv[2]
    with MemoryService(root, environ={}, background=False) as service:
        backend = DatabaseBackend(service.orchestrator(NAME, viewer=GRANTED), Tier.PROJECT, PROJECT)
        for number in range(ROUNDS):
            backend.add(item("shared", payload={"text": f"{who} wrote the {number}th"}))
            backend.add_bounded(item(f"{who}-{number}"), MAX_ITEMS)
