"""What other processes do with items in tests."""

from __future__ import annotations

from pathlib import Path

from item_worlds import item
from processes import Process

from memgraph import MemoryService, Viewer
from memgraph.model.enums import Scope
from memgraph.operations.context.database_backend import DatabaseBackend

NAME = "orc-1"
PROJECT = "web"
GRANTED = Viewer(project_ids=frozenset({PROJECT}))
ROUNDS = 8
MAX_ITEMS = 12


def started(root: Path, who: str) -> Process:
    """A process that adds items of its own and one that all of them write."""
    return Process(_add, root, who)


def _add(root: Path, who: str) -> None:
    with MemoryService(root, environ={}, background=False) as service:
        backend = DatabaseBackend(
            service.orchestrator(NAME, viewer=GRANTED), Scope.PROJECT, PROJECT
        )
        for number in range(ROUNDS):
            backend.add(item("shared", payload={"text": f"{who} wrote the {number}th"}))
            backend.add_bounded(item(f"{who}-{number}"), MAX_ITEMS)
