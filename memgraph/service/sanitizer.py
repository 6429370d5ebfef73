"""Sanitising output for remote callers: paths below the root, never its location.

Used over HTTP and MCP; local users see whole paths.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, TypeVar

from memgraph.errors import MemgraphError

T = TypeVar("T")


def outward(error: MemgraphError, root: Path) -> MemgraphError:
    """Return the same error with paths relative to the root."""
    elsewhere = {each for each in error.details.values() if _lies_elsewhere(each, root)}
    message, details = error.message, error.details
    # The longest first: one may begin as another does.
    for path in sorted(elsewhere, key=len, reverse=True):
        message = message.replace(path, Path(path).name)
        details = {k: Path(v).name if v == path else v for k, v in details.items()}
    told = type(error)(below(message, root), **below(details, root))
    told.journalled = error.journalled
    return told


def below(value: T, root: Path) -> T:
    """Return a JSON value with paths relative to the root."""
    told: Any = value
    if isinstance(value, str):
        told = re.sub(f"{re.escape(str(root))}(?:{re.escape(os.sep)}|$|(?=[:;,\\s]))", "", value)
    elif isinstance(value, dict):
        told = {name: below(each, root) for name, each in value.items()}
    elif isinstance(value, list | tuple):
        told = type(value)(below(each, root) for each in value)
    result: T = told
    return result


def _lies_elsewhere(value: Any, root: Path) -> bool:
    return (
        isinstance(value, str)
        and Path(value).is_absolute()
        and not Path(value).is_relative_to(root)
    )
