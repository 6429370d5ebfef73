"""An erasure in a process of its own, killed where it is told to be."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from processes import Process

from memgraph import MemoryService
from memgraph.operations.erasure import erase, folder
from memgraph.operations.erasure.plan import PlanFile

PLACES = (
    "planned",
    "hidden",
    "blanking",
    "blanked",
    "rows",
    "files",
    "folded",
    "scanned",
    "signed",
    "reported",
    "journalled",
)


def killed(root: Path, memory_id: str, place: str) -> int:
    """Erase in another process that is killed at a place; gives its exit code."""
    return Process(_erase, root, memory_id, place).wait()


def _erase(root: Path, memory_id: str, place: str) -> None:
    with (
        MemoryService(root, environ={}, background=False) as service,
        patch.object(*dying(place)),
    ):
        service.orchestrator("orc-1").erasure.erase(
            memory_id=memory_id, reason="asked for", dry_run=False
        )


def dying(place: str) -> tuple[Any, str, Callable[..., Any]]:
    """What to replace so that the process dies there: an object, a name, what takes its place."""
    before: dict[str, tuple[Any, str]] = {
        "planned": (erase, "erase_rows"),
        "hidden": (erase, "_blank"),
        "blanking": (erase.erasure, "remove_entities"),
        "blanked": (erase, "_sweep"),
        "files": (erase, "_note_files"),
        "folded": (folder, "scan"),
        "scanned": (erase, "signed"),
        "signed": (erase, "_end"),
        "journalled": (PlanFile, "wipe"),
    }
    if place in before:
        return (*before[place], lambda *_args, **_fields: die())
    # After the rows are durable; after the report is, and before the journal tells of it.
    owner, name = {"rows": (folder, "erase_files"), "reported": (erase, "digest")}[place]
    return owner, name, lambda *_args, **_fields: die()


def die() -> None:
    """As by kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)
