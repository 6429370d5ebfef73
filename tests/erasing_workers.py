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
from memgraph.operations.erasure import erase, files

PLACES = (
    *("planned", "rows", "noted", "committed", "files", "overwriting", "emptied", "cut"),
    *("search", "reported"),
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
        "planned": (erase.Erasing, "redact"),
        "rows": (erase, "sealed"),
        "noted": (erase.metadata, "put"),
        "committed": (erase.Erasing, "finish"),
        "files": (files, "erase_files"),
        "overwriting": (files, "_overwrite"),
        "emptied": (erase.OpenOrchestrator, "forget_texts"),
        "cut": (erase, "_fold_and_cut"),
        "search": (files, "search"),
        "reported": (erase.metadata, "drop"),
    }
    return (*before[place], lambda *_args, **_fields: die())


def write_on(root: Path, number: int) -> None:
    """Store memories in a process of its own."""
    with MemoryService(root, environ={}, background=False) as service:
        for count in range(number):
            service.orchestrator("orc-1").remember(f"The kettle of room {count} is new.")


def die() -> None:
    """As by kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)
