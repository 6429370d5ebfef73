"""Copies of everything on their way out: made as a file that has no name when it is handed over.

A copy is made whole before its first byte goes out, so that a slow reader holds no snapshot of the
database. Whoever closes the file, or ends, gives its room back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final

from memgraph.errors import RateLimited, StorageError

FOLDER: Final = ".outgoing"
"""Below the runtime root; no orchestrator has such a name."""
MOST_AT_ONCE: Final = 4
"""Copies that a process makes and sends at the same time."""
RETRY_AFTER_S: Final = 5
STALE_S: Final = 86_400.0
"""What a process that was killed left here goes after so long, seconds."""

_PREFIX: Final = "copy-"


class Copies:
    """Makes copies below a runtime root, so many at a time. Thread-safe."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)

    @contextmanager
    def copied(self, write: Callable[[Path], object]) -> Iterator[BinaryIO]:
        """The copy that ``write`` makes at a path, open for reading; gone after the block.

        Raises:
            RateLimited: too many are made or sent at this moment.
            StorageError: there is no room for it, or the root cannot be written to.
        """
        if not self._free.acquire(blocking=False):
            raise RateLimited(
                "too many copies are being sent; try again soon", retry_after_s=RETRY_AFTER_S
            )
        try:
            with self._made(write) as file:
                yield file
        finally:
            self._free.release()

    def _made(self, write: Callable[[Path], object]) -> BinaryIO:
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._sweep()
            with TemporaryDirectory(prefix=_PREFIX, dir=self._folder) as folder:
                target = Path(folder) / "copy"
                write(target)
                # Its name goes with the folder; the bytes stay for as long as it is open.
                return target.open("rb")
        except OSError as error:
            raise StorageError(f"a copy cannot be made: {error.strerror}") from error

    def _sweep(self) -> None:
        for each in self._folder.glob(f"{_PREFIX}*"):
            # Somebody else may be faster.
            if time.time() - _modified(each) > STALE_S:
                rmtree(each, ignore_errors=True)


def _modified(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return time.time()
