"""Writing a command's output to a file that a person named."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place and rename it into it: the whole text, or nothing of it.

    A device or pipe that was named is written to as it is.

    Raises:
        OSError: the folder is missing or may not be written, or the disk is full.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    target = path.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
