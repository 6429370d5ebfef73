"""Opening untrusted files: links are not followed, pipes do not block."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from ingest.reasons import RejectionReason, refuse

_CHUNK = 1 << 20
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FileContent:
    """``sha256`` is of the bytes, as lower-case hex; ``modified_ns`` of the file."""

    data: bytes
    sha256: str
    modified_ns: int


class _Lease(Enum):
    HELD = "held"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"


class StillBeingWritten(Exception):
    """The file is open for writing, or was changed just now: try again later."""


class FileVanished(Exception):
    """The name is gone: another worker took it, or it was removed."""


def read_head(name: str | bytes, folder: int, size: int) -> bytes:
    """Return the first bytes of a file; none of a link, a special or an unreadable file."""
    try:
        descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
    except OSError:
        return b""
    try:
        return os.read(descriptor, size) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


@contextmanager
def open_directory(name: str | bytes, dir_fd: int | None = None) -> Iterator[int]:
    """Yield a descriptor of a folder that is not a link.

    Raises:
        Vanished, or IngestRejected (link, not_regular_file, unreadable).
    """
    try:
        descriptor = os.open(name, _DIRECTORY_FLAGS, dir_fd=dir_fd)
    except OSError as error:
        raise _told(error) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_safely(
    name: str | bytes, dir_fd: int, *, max_bytes: int, settle_seconds: float = 1.0
) -> FileContent:
    """Return the bytes of a regular file with one name, of at most ``max_bytes``, with no writer.

    With the system's read lease, writers wait while it is read; without one the file must not have
    changed for ``settle_seconds``. In both cases it must not change while it is read.

    Raises:
        StillBeingWritten, Vanished, or IngestRejected with the reason link, hard_link,
        not_regular_file, too_large or unreadable.
    """
    try:
        descriptor = os.open(name, _FILE_FLAGS, dir_fd=dir_fd)
    except OSError as error:
        raise _told(error) from error
    try:
        return _read_open(descriptor, max_bytes, settle_seconds)
    except OSError as error:
        raise _told(error) from error
    finally:
        os.close(descriptor)


def check_safely(name: str | bytes, dir_fd: int, *, settle_seconds: float = 1.0) -> None:
    """Check that ``read_safely`` need not wait for a writer; its rejections are not checked here.

    Raises:
        StillBeingWritten, Vanished.
    """
    try:
        descriptor = os.open(name, _FILE_FLAGS, dir_fd=dir_fd)
    except OSError as error:
        told = _told(error)
        if isinstance(told, FileVanished):
            raise told from error
        return
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            _check_at_rest(descriptor, status, settle_seconds, keep=False)
    finally:
        os.close(descriptor)


def _read_open(descriptor: int, max_bytes: int, settle_seconds: float) -> FileContent:
    before = os.fstat(descriptor)
    _check_shape(before, max_bytes)
    lease = _check_at_rest(descriptor, before, settle_seconds, keep=True)
    try:
        before = os.fstat(descriptor)
        _check_shape(before, max_bytes)
        data = _read_capped(descriptor, max_bytes)
        after = os.fstat(descriptor)
    finally:
        if lease is _Lease.HELD:
            _give_lease_back(descriptor)
    same = (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    if not same or len(data) != after.st_size:
        raise StillBeingWritten
    return FileContent(data, hashlib.sha256(data).hexdigest(), after.st_mtime_ns)


def _check_at_rest(
    descriptor: int, status: os.stat_result, settle_seconds: float, *, keep: bool
) -> _Lease:
    lease = _take_lease(descriptor)
    if lease is _Lease.REFUSED:
        raise StillBeingWritten
    if lease is _Lease.HELD and not keep:
        _give_lease_back(descriptor)
    age = time.time() - status.st_mtime
    # A time in the future tells nothing about how long the file has been at rest.
    if lease is _Lease.UNAVAILABLE and 0 <= age < settle_seconds:
        raise StillBeingWritten
    return lease


def _check_shape(status: os.stat_result, max_bytes: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise refuse(RejectionReason.NOT_REGULAR_FILE, "only regular files are taken")
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
    left = max_bytes + 1
    while left > 0:
        part = os.read(descriptor, min(_CHUNK, left))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _take_lease(descriptor: int) -> _Lease:
    """Take a read lease: refused while anyone has the file open for writing."""
    if not sys.platform.startswith("linux"):
        return _Lease.UNAVAILABLE
    try:
        # A writer that comes while we hold it makes the kernel signal us; the usual SIGIO would
        # end the process, SIGURG is ignored unless somebody asks for it.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return _Lease.REFUSED
        return _Lease.UNAVAILABLE
    return _Lease.HELD


def _give_lease_back(descriptor: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _told(error: OSError) -> Exception:
    if error.errno == errno.ENOENT:
        return FileVanished()
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return refuse(RejectionReason.LINK, "links are not followed")
    if error.errno in (errno.ENXIO, errno.ENOTDIR, errno.EISDIR, errno.ENODEV):
        return refuse(RejectionReason.NOT_REGULAR_FILE, "only regular files are taken")
    return refuse(
        RejectionReason.UNREADABLE,
        "the file cannot be read",
        error=errno.errorcode.get(error.errno or 0),
    )
