"""Copy a database while it is in use, and replace one database file by another.

The backup runs inside a read transaction of its own connection. The copy is therefore one
snapshot; it does not block writers, and writes do not restart it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from memgraph.errors import DatabaseForeign, DatabaseMissing
from memgraph.store import sqlite
from memgraph.store.files import fsync

PAGES_PER_STEP = 2_048
SIDE_FILES = ("-wal", "-shm", "-journal")


def copy_online(
    source: Path, target: Path, progress: Callable[[int, int], None] | None = None
) -> None:
    """Copy a database into the empty file ``target``, as a single file without a WAL.

    Args:
        progress: called with the number of copied pages and the total.
    """

    def told(_status: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    with (
        sqlite.translated_errors(),
        closing(sqlite.connect(source, busy_timeout_ms=30_000)) as reader,
        closing(sqlite.connect(target, busy_timeout_ms=5_000)) as writer,
    ):
        # The first read opens the snapshot, which stays until the connection is closed.
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        reader.backup(writer, pages=PAGES_PER_STEP, progress=told)
        writer.execute("PRAGMA journal_mode = DELETE")


def copy_file(source: Path, target: Path) -> None:
    """Copy the bytes of a regular file; refuse a FIFO or a device instead of blocking on it.

    Raises:
        DatabaseMissing: there is no file.
        DatabaseForeign: it is not a regular file.
    """
    try:
        handle = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise DatabaseMissing(f"there is no file {source}", path=str(source)) from None
    except OSError as error:
        raise DatabaseForeign(f"{source} cannot be read", path=str(source)) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DatabaseForeign(f"{source} is not a regular file", path=str(source))
    with os.fdopen(handle, "rb") as file:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(target, flags, 0o600), "wb") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)


def move_aside(path: Path, folder: Path, others: Sequence[str] = ()) -> list[str]:
    """Move a database and its side files into a new folder; return the moved names.

    The database is moved first: a crash leaves it missing, but never without its own WAL.
    """
    names = [path.name, *(path.name + suffix for suffix in SIDE_FILES), *others]
    existing = [name for name in names if os.path.lexists(path.with_name(name))]
    if existing:
        folder.mkdir(parents=True, mode=0o700)
    for name in existing:
        path.with_name(name).rename(folder / name)
    if existing:
        fsync(folder)
        fsync(path.parent)
    return existing


def remove_side_files(path: Path) -> None:
    """Remove the side files that SQLite leaves behind after a failure."""
    for suffix in SIDE_FILES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def use_wal(path: Path) -> None:
    """Turn a single file into a database in WAL mode."""
    with (
        sqlite.translated_errors(),
        closing(sqlite.connect(path, busy_timeout_ms=5_000)) as connection,
    ):
        connection.execute("PRAGMA journal_mode = WAL")
