"""Writing a command's output to a file that a person named."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file beside its place and rename it into it: the whole of it, or nothing.

    A device or pipe that was named is written to as it is.

    Raises:
        OSError: the folder is missing or may not be written, or the disk is full.
    """
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = path.resolve()
    if not target.parent.is_dir():
        # Otherwise the error would name the draft, of which nobody has heard.
        raise FileNotFoundError(errno.ENOENT, "no folder", str(target.parent))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
