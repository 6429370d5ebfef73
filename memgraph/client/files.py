"""Files that come from a server: whole, of mode 600, or not at all."""

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
    """A draft beside ``target`` that takes its place when the block ends well.

    What was written has to be made ``durable`` in the block: of a large file that takes its time,
    which the block may spend in a thread.

    Args:
        force: replace a file that is there.

    Raises:
        Conflict: there is a file already.
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
    """Wait until all that was written is on the disk; gives the file."""
    file.flush()
    os.fsync(file.fileno())
    return file
