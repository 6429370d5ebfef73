"""Validation of copies from a server: exports and backups."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from io import BufferedRandom
from pathlib import Path
from typing import Any, Final

from memgraph.errors import RemoteAnswerInvalid

_SQLITE: Final = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class Exported:
    """A finished export. ``records``: the number of lines of each kind."""

    orchestrator: str
    path: Path
    records: dict[str, int]
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"path": str(self.path)}


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A finished backup; the server checked it before it sent it."""

    orchestrator: str
    path: Path
    bytes: int
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"path": str(self.path)}


def exported(file: BufferedRandom, name: str, path: Path) -> Exported:
    """Check an export and return its report.

    Raises:
        RemoteAnswerInvalid: it is none, or it was truncated.
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
        raise RemoteAnswerInvalid("what came is not a whole export", orchestrator=name)
    for frame in ("header", "end"):
        counts.pop(frame, None)
    return Exported(name, path, counts, digest.hexdigest())


def backed_up(file: BufferedRandom, name: str, path: Path) -> BackedUp:
    """Check a backup. Raises RemoteAnswerInvalid: it is no database."""
    file.seek(0)
    if file.read(len(_SQLITE)) != _SQLITE:
        raise RemoteAnswerInvalid("what came is not a database", orchestrator=name)
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256")
    return BackedUp(name, path, file.tell(), digest.hexdigest())


def _kind(line: bytes) -> str:
    """Return the kind of record in a line."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    kind = found.get("record") if isinstance(found, dict) else None
    if not isinstance(kind, str):
        raise RemoteAnswerInvalid("what came is not an export")
    return kind
