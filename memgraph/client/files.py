"""Files from a server: written atomically, of mode 600."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path

from memgraph.errors import Conflict, InvalidInput
from memgraph.paths import take_free_name


@contextmanager
def whole(target: Path, *, force: bool) -> Iterator[BufferedRandom]:
    """Open a draft beside ``target`` that replaces it when the block succeeds.

    Call ``durable`` on it in the block: a large file takes time, which the block may spend in a
    thread.

    Args:
        force: replace an existing file.

    Raises:
        Conflict: the file exists.
        InvalidInput: it is a folder.
        OSError: the folder is missing or may not be written, or the disk is full.
    """
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder; name a file")
    if os.path.lexists(target) and not force:
        raise Conflict(f"there is a file already: {target}", path=str(target))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
        if force:
            draft.replace(target)
        else:
            take_free_name(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def durable(file: BufferedRandom) -> BufferedRandom:
    """Wait until all that was written is on the disk; return the file."""
    file.flush()
    os.fsync(file.fileno())
    return file
