"""What is told to those who ask from outside: names below the root, never where it lies.

Over HTTP and MCP; whoever works on the machine itself is told whole paths.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, TypeVar

from memgraph.errors import MemgraphError

T = TypeVar("T")


def outward(error: MemgraphError, root: Path) -> MemgraphError:
    """The same error, whose texts name files as they lie below the root."""
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
    """A JSON value whose texts name files likewise."""
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
