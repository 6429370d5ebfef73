"""The files that an engine of this process has open, so that nobody else opens them meanwhile.

POSIX locks belong to a process: whoever in it opens a file in another way and closes it drops all
locks that SQLite holds on it. Another process could then take itself for the last user of the
database, and delete the WAL that this one goes on writing into.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

Identity = tuple[int, int]
ConnectionT = TypeVar("ConnectionT")

_lock = threading.Lock()
_open: Counter[Identity] = Counter()


def connected(
    path: Path, connect: Callable[[], ConnectionT]
) -> tuple[ConnectionT, tuple[Identity, ...]]:
    """Connect to a file, and note which it is; for ``closed`` when the connection is closed."""
    with _lock:
        before = _identity(path)
        connection = connect()
        # Another process may have put another file there: it is one of the two.
        identities = {identity for identity in (before, _identity(path)) if identity is not None}
        _open.update(identities)
        return connection, tuple(identities)


def closed(files: tuple[Identity, ...]) -> None:
    """A connection to them is closed."""
    with _lock:
        _open.subtract(files)
        for identity in files:
            if _open[identity] <= 0:
                del _open[identity]


@contextmanager
def without_sqlite(path: Path) -> Iterator[bool]:
    """Yield True when a file may be opened without SQLite; nothing connects to it meanwhile."""
    with _lock:
        yield _identity(path) not in _open


def _identity(path: Path) -> Identity | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _forked() -> None:
    # A thread that the child has not may have held it; the child's connections are its own.
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forked)
