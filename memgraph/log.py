"""The log of an orchestrator: JSON lines of bounded size, set up on demand.

A line is one ASCII JSON object with escaped control and format characters. Errors are logged only
by class and code, because a provider's message may contain a key or the text that was sent to it.
"""

from __future__ import annotations

import fcntl
import os
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from json import JSONEncoder
from math import isfinite
from pathlib import Path, PurePath
from typing import Any, Final, Literal, Protocol

from memgraph.clock import Clock, iso
from memgraph.errors import MemgraphError

Level = Literal["debug", "info", "warning", "error"]

MAX_VALUE_CHARS: Final = 2_000
_MAX_DEPTH: Final = 3
_MAX_ITEMS: Final = 50
_MAX_BITS: Final = 256
_PLACES: Final = 5
_LEVELS: Final[tuple[Level, ...]] = ("debug", "info", "warning", "error")
_json: Final = JSONEncoder(allow_nan=False).encode


class LineSink(Protocol):
    """A destination for finished lines."""

    def write(self, line: str) -> None:
        """Write a line, given without its line end. Never raises for a full or missing disk."""
        ...


class MemorySink:
    """Keeps the lines in a list, for tests."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        self.lines.append(line)


class RotatingFile:
    """Appends lines to a file, and rotates it above ``max_bytes`` to ``<name>.1``, ``<name>.2`` …

    Several processes may write to the same file: each line is one append, and a lock file next to
    it guards the rotation. The ``keep_files`` + 1 files have at most ``max_bytes`` plus one line
    each.

    A logging error must not fail the work that is logged: a line that cannot be written is counted
    in ``dropped``.
    """

    def __init__(self, path: Path, *, max_bytes: int = 5_000_000, keep_files: int = 3) -> None:
        self.path = path
        self.dropped = 0
        self._max_bytes = max_bytes
        self._keep_files = keep_files
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        data = line.encode("ascii", "backslashreplace") + b"\n"
        with self._lock:
            try:
                if self._append(data) > self._max_bytes:
                    self._rotate()
            except OSError:
                self.dropped += 1

    def _append(self, data: bytes) -> int:
        """Write a line and return the new size of the file.

        The file is opened each time, since another process may have rotated or removed it.
        """
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        # Without O_NONBLOCK, opening a FIFO in place of the log would block.
        descriptor = os.open(self.path, flags | os.O_NONBLOCK, 0o600)
        try:
            if os.write(descriptor, data) < len(data):
                raise OSError("the line was written only partly")
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def _rotate(self) -> None:
        with self._rotation_lock():
            # Another process may have rotated the file while this one waited for the lock.
            if self.path.stat().st_size <= self._max_bytes:
                return
            for number in range(self._keep_files - 1, 0, -1):
                older = self._numbered(number)
                if older.exists():
                    older.replace(self._numbered(number + 1))
            self.path.replace(self._numbered(1))

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    @contextmanager
    def _rotation_lock(self) -> Iterator[None]:
        lock = self.path.with_name(f"{self.path.name}.lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


class EventLog:
    """Writes events with fields.

    Args:
        sink: receives the finished lines.
        clock: provides the ``time`` of a line.
        level: events of a lower level are dropped.
        fields: added to every line, e.g. ``orchestrator="orc-1"``.
    """

    def __init__(
        self, sink: LineSink, clock: Clock, *, level: Level = "info", **fields: Any
    ) -> None:
        self.sink = sink
        self._clock = clock
        self._level = level
        self._fields = fields

    def info(self, event: str, **fields: Any) -> None:
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write("error", event, fields)

    def failure(
        self, event: str, error: BaseException, *, level: Level = "error", **fields: Any
    ) -> None:
        """Log an error by its class and stable code, without its text and details."""
        self._write(level, event, fields | error_fields(error))

    def _write(self, level: Level, event: str, fields: dict[str, Any]) -> None:
        if _LEVELS.index(level) < _LEVELS.index(self._level):
            return
        values = {**self._fields, **fields, "event": event, "level": level}
        line = {str(key): _clip(value, _MAX_DEPTH) for key, value in values.items()}
        self.sink.write(_json({**line, "time": iso(self._clock.now_ms())}))


def error_fields(error: BaseException) -> dict[str, str]:
    """Return the class of an error as ``error``, and for a MemgraphError its ``code``."""
    fields = {"error": type(error).__name__}
    if isinstance(error, MemgraphError):
        fields["code"] = error.code
    return fields


def bug_fields(error: BaseException) -> dict[str, Any]:
    """Return ``error_fields`` of an unexpected error and its last frames, innermost last."""
    places = traceback.extract_tb(error.__traceback__)[-_PLACES:]
    return {
        **error_fields(error),
        "at": [f"{Path(frame.filename).name}:{frame.lineno}" for frame in places],
    }


def _clip(value: Any, depth: int) -> Any:
    """Return a JSON value, limited in length, number of items and depth."""
    if isinstance(value, str):
        return value if len(value) <= MAX_VALUE_CHARS else value[:MAX_VALUE_CHARS] + "…"
    if value is None or (isinstance(value, float) and isfinite(value)):
        return value
    # Python refuses to convert integers of more than 4,300 digits to text.
    if isinstance(value, int) and value.bit_length() <= _MAX_BITS:
        return value
    if depth > 0 and isinstance(value, Mapping):
        items = islice(value.items(), _MAX_ITEMS)
        return {str(key)[:MAX_VALUE_CHARS]: _clip(item, depth - 1) for key, item in items}
    if depth > 0 and isinstance(value, list | tuple | set | frozenset):
        return [_clip(item, depth - 1) for item in islice(value, _MAX_ITEMS)]
    if isinstance(value, PurePath):
        return _clip(str(value), depth)
    # Not its repr, which might contain anything.
    return f"<{type(value).__name__}>"
