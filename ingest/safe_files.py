"""Read and write files in a folder that others write to, without following links or blocking."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
import signal
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest.reasons import RejectionReason, refuse
from memgraph.errors import IngestRejected

_CHUNK = 1 << 20
# Without leases a file must have been unchanged for so long.
SETTLE_SECONDS = 1.0
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file; ``sha256`` is the digest of the bytes as lower-case hex."""

    data: bytes
    sha256: str


class StillBeingWritten(Exception):
    """The file is open for writing, or was just changed: try again later."""


class FileVanished(Exception):
    """The name is gone: another worker took it, or it was removed."""


@contextmanager
def _opened(name: str | bytes, flags: int, dir_fd: int | None) -> Iterator[int]:
    """Yield a descriptor; errors of the system become those of this module."""
    try:
        descriptor = os.open(name, flags, dir_fd=dir_fd)
    except OSError as error:
        raise _file_error(error) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_head(name: str | bytes, folder: int, size: int) -> bytes:
    """Return the first bytes of a file; ``b""`` for a link, a special or an unreadable file."""
    with (
        suppress(OSError, FileVanished, IngestRejected),
        _opened(name, _FILE_FLAGS, folder) as file,
    ):
        return os.read(file, size) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    return b""


def open_directory(name: str | bytes, dir_fd: int | None = None) -> AbstractContextManager[int]:
    """Return a context with the descriptor of a folder that is not a link.

    Raises:
        FileVanished, or IngestRejected (link, not_regular_file, unreadable).
    """
    return _opened(name, _DIRECTORY_FLAGS, dir_fd)


def read_safely(name: str | bytes, dir_fd: int, *, max_bytes: int) -> FileContent:
    """Return the content of a regular file that nobody is writing and that has no other hard link.

    With a read lease of the system, writers wait while the file is read; without leases the file
    must have been unchanged for ``SETTLE_SECONDS``. In both cases it must not change while it is
    read.

    Raises:
        StillBeingWritten, FileVanished, or IngestRejected with the reason link, hard_link,
        not_regular_file, too_large or unreadable.
    """
    with _opened(name, _FILE_FLAGS, dir_fd) as descriptor:
        try:
            return _read_open(descriptor, max_bytes)
        except OSError as error:
            raise _file_error(error) from error


def check_safely(name: str | bytes, dir_fd: int) -> None:
    """Check that nobody is writing a file. Files that ``read_safely`` rejects pass.

    Raises:
        StillBeingWritten, FileVanished.
    """
    with suppress(IngestRejected), _opened(name, _FILE_FLAGS, dir_fd) as descriptor:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            _check_at_rest(descriptor, status, keep=False)


def _read_open(descriptor: int, max_bytes: int) -> FileContent:
    before = os.fstat(descriptor)
    _check_shape(before, max_bytes)
    is_leased = _check_at_rest(descriptor, before, keep=True)
    try:
        before = os.fstat(descriptor)
        _check_shape(before, max_bytes)
        data = _read_capped(descriptor, max_bytes)
        after = os.fstat(descriptor)
    finally:
        if is_leased:
            _release_lease(descriptor)
    is_unchanged = (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    if not is_unchanged or len(data) != after.st_size:
        raise StillBeingWritten
    return FileContent(data, hashlib.sha256(data).hexdigest())


def _check_at_rest(descriptor: int, status: os.stat_result, *, keep: bool) -> bool:
    """Check that nobody is writing a file; return True if a lease is kept."""
    is_leased = _take_lease(descriptor)
    if is_leased and not keep:
        _release_lease(descriptor)
    age = time.time() - status.st_mtime
    # A modification time in the future does not show how long the file has been unchanged.
    if not is_leased and 0 <= age < SETTLE_SECONDS:
        raise StillBeingWritten
    return is_leased and keep


def _check_shape(status: os.stat_result, max_bytes: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise refuse(RejectionReason.NOT_REGULAR_FILE, "only regular files are accepted")
    if status.st_nlink == 0:
        raise FileVanished
    if status.st_nlink > 1:
        raise refuse(
            RejectionReason.HARD_LINK,
            "the file has another hard link elsewhere",
            links=status.st_nlink,
        )
    if status.st_size > max_bytes:
        raise refuse(
            RejectionReason.TOO_LARGE,
            f"the file is larger than {max_bytes} bytes",
            size=status.st_size,
            limit=max_bytes,
        )


def _read_capped(descriptor: int, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    remaining = max_bytes + 1
    while remaining > 0:
        part = os.read(descriptor, min(_CHUNK, remaining))
        if not part:
            break
        parts.append(part)
        remaining -= len(part)
    return b"".join(parts)


def _take_lease(descriptor: int) -> bool:
    """Take a read lease; return False if the system has none.

    Raises:
        StillBeingWritten: the file is open for writing.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        # The kernel signals us when a writer opens the file. The default signal, SIGIO, would end
        # the process; SIGURG is ignored by default.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            raise StillBeingWritten from None
        return False
    return True


def _release_lease(descriptor: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _file_error(error: OSError) -> Exception:
    if error.errno == errno.ENOENT:
        return FileVanished()
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return refuse(RejectionReason.LINK, "links are not followed")
    if error.errno in (errno.ENXIO, errno.ENOTDIR, errno.EISDIR, errno.ENODEV):
        return refuse(RejectionReason.NOT_REGULAR_FILE, "only regular files are accepted")
    return refuse(
        RejectionReason.UNREADABLE,
        "the file cannot be read",
        error=errno.errorcode.get(error.errno or 0),
    )


@contextmanager
def open_parent(zone: Path, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Yield a descriptor of the folder of ``path``, and the file's name, without following links.

    Args:
        make: create missing folders.

    Raises:
        FileVanished, IngestRejected: a folder of the path is missing, or is a link.
    """
    *folders, name = path.split("/")
    with ExitStack() as opened:
        descriptor = opened.enter_context(open_directory(os.fspath(zone)))
        for folder in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=descriptor)
            descriptor = opened.enter_context(open_directory(folder, descriptor))
        yield descriptor, name


@contextmanager
def written(folder: Path, text: str) -> Iterator[Path]:
    """Write a text durably to a temporary file, which the caller renames."""
    fresh = folder / f".{secrets.token_hex(8)}.tmp"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        yield fresh
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def json_text(value: Any) -> str:
    """Return a value as readable JSON, ASCII only."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
