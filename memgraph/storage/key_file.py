"""The file that holds a server's keys: replaced whole, never half written, read by its owner alone.

It holds digests of secrets of 256 bits: who reads it can show none of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from memgraph.errors import InvalidConfig
from memgraph.storage.backup import fsync

VERSION: Final = 1
Stamp = tuple[int, int, int]


def stamp(path: Path) -> Stamp | None:
    """Differs when the file was replaced; None: there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def read(path: Path) -> list[dict[str, Any]]:
    """The keys as JSON; none when there is no file.

    Raises:
        InvalidConfig: it is no file of keys.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidConfig(f"{path} cannot be read as keys", path=str(path)) from error
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise InvalidConfig(f"{path} is of another version", path=str(path))
    keys = found.get("keys")
    if not isinstance(keys, list) or not all(isinstance(each, dict) for each in keys):
        raise InvalidConfig(f"{path} holds no keys", path=str(path))
    return keys


def write(path: Path, keys: Sequence[dict[str, Any]]) -> None:
    """Replace the file; it is durable when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump({"version": VERSION, "keys": list(keys)}, file, indent=1)
    fsync(draft)
    draft.replace(path)
    fsync(path.parent)
