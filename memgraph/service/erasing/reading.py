"""The bytes of files, the database's own ones read by another process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from memgraph.storage import open_files

_CHUNK: Final = 1 << 24
_COPY: Final = (
    "import shutil, sys; shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer, 1 << 20)"
)


def pieces(path: Path, overlap: int, *, aside: bool = False) -> Iterator[bytes]:
    """The bytes of a file, each piece beginning with the end of the one before.

    Args:
        overlap: how many bytes of it.
        aside: another process reads it: whoever closes a file drops all locks that SQLite in the
            same process has on it, see ``storage.open_files``.

    Raises:
        OSError: it cannot be read.
    """
    with open_files.otherwise(path) as may_be_read:
        free = may_be_read and not aside
    with _opened(path) if free else _aside(path) as file:
        tail = b""
        while piece := file.read(_CHUNK):
            yield tail + piece
            tail = (tail + piece)[-overlap:] if overlap else b""


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        yield file


@contextmanager
def _aside(path: Path) -> Iterator[IO[bytes]]:
    command = [sys.executable, "-I", "-S", "-c", _COPY, os.fspath(path)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as reader:
        if reader.stdout is None:  # it was asked for
            raise OSError(f"{path} cannot be read")
        yield reader.stdout
    if reader.returncode:
        # What SQLite keeps beside a database comes and goes.
        kind = OSError if path.exists() else FileNotFoundError
        raise kind(f"{path} cannot be read")
