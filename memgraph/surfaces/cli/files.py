"""Writing a command's output to a file that a person named."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from memgraph.errors import Conflict
from memgraph.paths import take_free_name


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically, by renaming a draft beside it.

    A named device or pipe is written to directly.

    Raises:
        OSError: the folder is missing or may not be written, or the disk is full.
    """
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = path.resolve()
    with _draft_of(target) as (file, draft):
        file.write(data)
        file.close()
        draft.replace(target)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that gets its name when the block succeeds, and never replaces another.

    For what cannot be done twice: that the file can be written is checked before the block.

    Raises:
        Conflict: the file exists.
        OSError: the folder is missing or may not be written, or the disk is full.
    """
    if os.path.lexists(path):
        raise Conflict(f"the file already exists: {path}", path=str(path))
    with _draft_of(path) as (file, draft):
        yield file
        file.close()
        take_free_name(draft, path)


@contextmanager
def _draft_of(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    if not target.parent.is_dir():
        # Otherwise the error would name the draft, which the user does not know.
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, draft
    finally:
        draft.unlink(missing_ok=True)
