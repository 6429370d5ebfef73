"""Sanitise output for remote callers: paths become relative to the root, whose location is hidden.

Used for HTTP and MCP; local users see full paths.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, TypeVar

from memgraph.errors import MemgraphError

T = TypeVar("T")


def sanitized_error(error: MemgraphError, root: Path) -> MemgraphError:
    """Return the same error with paths relative to the root."""
    texts = [value for value in error.details.values() if isinstance(value, str)]
    paths = [text for text in texts if Path(text).is_absolute()]
    elsewhere = {path for path in paths if not Path(path).is_relative_to(root)}
    message, details = error.message, error.details
    # Longest first, because one path may be a prefix of another.
    for path in sorted(elsewhere, key=len, reverse=True):
        message = message.replace(path, Path(path).name)
        details = {k: Path(v).name if v == path else v for k, v in details.items()}
    sanitized = type(error)(without_root(message, root), **without_root(details, root))
    sanitized.logged = error.logged
    return sanitized


def without_root(value: T, root: Path) -> T:
    """Return a JSON value with paths relative to the root."""
    converted: Any = value
    if isinstance(value, str):
        converted = re.sub(
            f"{re.escape(str(root))}(?:{re.escape(os.sep)}|$|(?=[:;,\\s]))", "", value
        )
    elif isinstance(value, dict):
        converted = {name: without_root(item, root) for name, item in value.items()}
    elif isinstance(value, list | tuple):
        converted = type(value)(without_root(item, root) for item in value)
    result: T = converted
    return result
