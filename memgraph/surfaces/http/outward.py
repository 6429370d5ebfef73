"""What is told to those who ask from outside: names below the root, never where it lies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from memgraph.errors import MemgraphError


def outward(error: MemgraphError, root: Path) -> MemgraphError:
    """The same error, whose texts name files as they lie below the root."""
    return type(error)(_below(root, error.message), **_below(root, error.details))


def outward_health(told: dict[str, Any], root: Path) -> dict[str, Any]:
    """What ``MemoryService.health`` tells, likewise."""
    return {name: _below(root, value) for name, value in told.items()}


def _below(root: Path, value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(f"{root}{os.sep}", "")
    if isinstance(value, dict):
        return {name: _below(root, each) for name, each in value.items()}
    return value
