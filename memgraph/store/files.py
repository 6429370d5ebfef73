"""Lock files between processes, and publish files atomically."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import mkstemp

from memgraph.errors import DatabaseBusy, DatabaseMissing, StorageError
from memgraph.paths import naming_full_disk, take_free_name

PROC = Path("/proc")


def process_name() -> str:
    """Return a name of this process for locks and leases: host, pid and its start."""
    return _name_of(os.getpid())


@cache
def _name_of(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}:{_kernel()}.{_start_of(pid)}"


def is_dead(name: str) -> bool:
    """Return True if the process of a ``process_name`` has ended.

    This is known of processes of this boot and pid namespace only. A pid that was given to another
    process is told by the start.
    """
    _, pid, mark = name.split(":") if name.count(":") == 2 else ("", "", "")
    kernel, _, start = mark.partition(".")
    if not start or kernel != _kernel():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # It is another user's.
    return _start_of(int(pid)) not in ("", start)


@cache
def _kernel() -> str:
    """Return a digest of the boot and the pid namespace; empty where they are not known."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text()
        known = f"{boot}{(PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""
    return hashlib.sha256(known.encode()).hexdigest()[:12]


def _start_of(pid: int) -> str:
    """Return when a process started, in the kernel's ticks; empty if unknown, "-" of a zombie."""
    try:
        # The name of the program, in parentheses, may contain anything.
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "-" if fields[0] in "ZX" else fields[19]


LOCK_TIMEOUT_S = 60.0
FIRST_PAUSE_S = 0.0002
LONGEST_PAUSE_S = 0.001


@contextmanager
def held_by_thread(lock: threading.Lock, timeout_s: float) -> Iterator[float]:
    """Hold a lock of this process for the block, which gets the seconds that are left.

    Raises:
        DatabaseBusy: another thread held the lock for all of ``timeout_s`` seconds.
    """
    end = time.monotonic() + timeout_s
    if not lock.acquire(timeout=timeout_s):
        raise DatabaseBusy("another thread of this process holds the database; try again")
    try:
        yield max(end - time.monotonic(), 0.0)
    finally:
        lock.release()


def busy(holder: str, **details: str) -> DatabaseBusy:
    """Return the error for a database that a process holds; its ``process_name``, or ""."""
    host, pid, *_ = [*holder.split(":"), ""]
    if not pid or is_dead(holder):
        return DatabaseBusy("another process holds the database; try again", **details)
    return DatabaseBusy(
        f"process {pid} on {host} holds the database; try again", **details, pid=pid, host=host
    )


class FileLock:
    """An advisory lock on a file, between processes (flock); not re-entrant.

    The file contains the ``process_name`` of its last holder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def held(self, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Hold the lock for the block.

        Raises:
            DatabaseBusy: another process held the lock for all of ``timeout_s`` seconds.
            DatabaseMissing, StorageError: the folder is gone, or the file cannot be created.
        """
        handle = self._open()
        try:
            self._acquire(handle, time.monotonic() + timeout_s)
            self._sign(handle)
            yield
        finally:
            os.close(handle)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            raise DatabaseMissing(f"the folder of {self._path} is gone") from None
        except OSError as error:
            name = errno.errorcode.get(error.errno or 0, "unknown")
            raise StorageError(f"{self._path} cannot be locked ({name})", errno=name) from error

    @staticmethod
    def _sign(handle: int) -> None:
        name = f"{process_name()}\n".encode()
        with suppress(OSError):  # The name is a service only.
            if os.pread(handle, len(name) + 1, 0) != name:
                os.ftruncate(handle, 0)
                os.pwrite(handle, name, 0)

    @staticmethod
    def _holder(handle: int) -> str:
        with suppress(OSError):
            return os.pread(handle, 1_000, 0).decode(errors="replace").strip()
        return ""

    def _acquire(self, handle: int, deadline: float) -> None:
        pause = FIRST_PAUSE_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Poll, because a blocking flock has no timeout: a stopped process would block all.
                if time.monotonic() >= deadline:
                    raise busy(self._holder(handle), lock=str(self._path)) from None
                time.sleep(pause)
                pause = min(pause * 1.5, LONGEST_PAUSE_S)
            else:
                return


@contextmanager
def draft_beside(target: Path) -> Iterator[Path]:
    """Create an empty file of mode 600 in the folder of ``target``; remove it at the end.

    Raises:
        FileNotFoundError: the folder does not exist.
    """
    if not target.parent.is_dir():
        # Otherwise the error would name the draft, which the caller does not know.
        raise FileNotFoundError(errno.ENOENT, "the folder does not exist", str(target.parent))
    with naming_full_disk(target.parent):
        handle, name = mkstemp(prefix=f".{target.name}-", suffix=".draft", dir=target.parent)
        os.close(handle)
    draft = Path(name)
    try:
        with naming_full_disk(target.parent):
            yield draft
    finally:
        draft.unlink(missing_ok=True)


def publish(draft: Path, target: Path, *, force: bool) -> None:
    """Make a finished draft durable, and rename it to ``target``.

    Raises:
        Conflict: ``target`` exists, and ``force`` is not set.
    """
    fsync(draft)
    if force:
        draft.replace(target)
    else:
        take_free_name(draft, target)
        draft.unlink(missing_ok=True)
    fsync(target.parent)


def fsync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
