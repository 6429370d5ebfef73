"""Copies that a server sends, as files: whole, durable, or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path
from typing import Final

from memgraph.errors import Conflict, InvalidInput, RemoteAnswerInvalid
from memgraph.model.values import Report
from memgraph.paths import take_free_name

_SQLITE: Final = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class ExportFile(Report):
    """A finished export. ``records``: the number of lines of each kind."""

    orchestrator: str
    path: Path
    records: dict[str, int]
    sha256: str


@dataclass(frozen=True, slots=True)
class BackupFile(Report):
    """A finished backup, which the server checked before sending."""

    orchestrator: str
    path: Path
    bytes: int
    sha256: str


@contextmanager
def whole(target: Path, *, force: bool) -> Iterator[BufferedRandom]:
    """Open a temporary file next to ``target``, and replace the target when the block succeeds.

    Call ``durable`` on it inside the block; flushing a large file may be done in a thread.

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
        raise Conflict(f"the file already exists: {target}", path=str(target))
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
    """Flush a file to disk, and return it."""
    file.flush()
    os.fsync(file.fileno())
    return file


def exported(file: BufferedRandom, name: str, path: Path) -> ExportFile:
    """Check an export and return its report.

    Raises:
        RemoteAnswerInvalid: it is not an export, or it is truncated.
    """
    counts: dict[str, int] = {}
    digest, records = hashlib.sha256(), hashlib.sha256()
    kind, last = "", b""
    file.seek(0)
    for number, line in enumerate(file):
        digest.update(line)
        if number > 1:
            records.update(last)
        kind, last = _kind(line), line
        counts[kind] = counts.get(kind, 0) + 1
    if kind != "end" or json.loads(last).get("sha256") != records.hexdigest():
        raise RemoteAnswerInvalid("the received export is incomplete", orchestrator=name)
    for frame in ("header", "end"):
        counts.pop(frame, None)
    return ExportFile(name, path, counts, digest.hexdigest())


def backed_up(file: BufferedRandom, name: str, path: Path) -> BackupFile:
    """Check a backup and return its report. Raises RemoteAnswerInvalid if it is not a database."""
    file.seek(0)
    if file.read(len(_SQLITE)) != _SQLITE:
        raise RemoteAnswerInvalid("the response is not a database", orchestrator=name)
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256")
    return BackupFile(name, path, file.tell(), digest.hexdigest())


def _kind(line: bytes) -> str:
    """Return the kind of record in a line."""
    try:
        result = json.loads(line)
    except (ValueError, RecursionError):
        result = None
    kind = result.get("record") if isinstance(result, dict) else None
    if not isinstance(kind, str):
        raise RemoteAnswerInvalid("the response is not an export")
    return kind
