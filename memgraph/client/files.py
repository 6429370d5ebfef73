"""Files, copies and places over HTTP."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from io import BufferedRandom
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic_core import PydanticSerializationError, to_jsonable_python

from memgraph.client.calls import Call, Read, Repeat, body, nothing, orchestrator_path
from memgraph.client.words import Speaker
from memgraph.clock import iso, parse_time
from memgraph.errors import Conflict, InvalidInput, RemoteAnswerInvalid
from memgraph.model.access import Narrowing
from memgraph.model.values import Value
from memgraph.paths import take_free_name


@contextmanager
def whole(target: Path, *, force: bool) -> Iterator[BufferedRandom]:
    """Open a draft beside ``target`` that replaces it when the block succeeds.

    Call ``durable`` on it in the block: a large file takes time, which the block may spend in a
    thread.

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
        raise Conflict(f"there is a file already: {target}", path=str(target))
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
    """Wait until all that was written is on the disk; return the file."""
    file.flush()
    os.fsync(file.fileno())
    return file


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


T = TypeVar("T")

Time = str | int | datetime


class Place(Speaker):
    """The target of a handle's methods: an orchestrator and a narrowing."""

    name: str
    narrowing: Narrowing

    def _set_place(self, name: str, narrowing: Narrowing) -> None:
        self.name = name
        self.narrowing = narrowing
        self._root = orchestrator_path(name)
        self._view: dict[str, Any] = {
            "project": _named(narrowing.project_ids),
            "session": _named(narrowing.session_ids),
            "agent": narrowing.agent_id,
            "clearance": narrowing.clearance,
        }

    def _get(self, path: str, read: Read[T], **params: Any) -> Call[T]:
        """Return a read."""
        return Call("GET", self._root + path, read, self._view | params)

    def _look(self, path: str, fields: Mapping[str, Any] | Value, read: Read[T]) -> Call[T]:
        """Return a read whose parameters are too long for an address."""
        return Call("POST", self._root + path, read, self._view, body(fields))

    def _write(self, path: str, fields: Mapping[str, Any] | Value, read: Read[T]) -> Call[T]:
        """Return a change, which is done once however often it is sent."""
        return replace(self._look(path, fields, read), repeat=Repeat.KEYED)

    def _done(self, path: str, fields: Mapping[str, Any]) -> Call[None]:
        """Return a change with an empty answer."""
        return replace(self._write(path, fields, nothing), accepts=None)


def _named(names: Sequence[str] | None) -> Sequence[str] | None:
    """Return names as a query has them. An empty list is an empty name: omitted, it would mean
    all.
    """
    return ("",) if names is not None and not names else names


def plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as plain JSON: enums, times and values as they are sent; None is left out.

    Raises:
        InvalidInput: one of them cannot be sent.
    """
    given = {name: each for name, each in fields.items() if each is not None}
    try:
        found: dict[str, Any] = to_jsonable_python(given)
    except (PydanticSerializationError, ValueError, RecursionError):
        raise InvalidInput("a field holds what is not plain JSON") from None
    return found


def moment(time: Time | None) -> str | None:
    """Return a time as it is sent. Raises InvalidInput."""
    return None if time is None else iso(parse_time(time))
