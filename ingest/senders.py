"""Senders of files: a file is stored within its sender's bounds, whoever processes it.

::

    ingest/.uploads/<sha256>.json     from before the file has its name until it is finished

A file that was dropped by hand has no sender, and no bounds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ingest.claims import claimed_paths, write_durably, zone_lock

UPLOADS: Final = ".uploads"


def note_sender(zone: Path, sha256: str, *, path: str, sender: Mapping[str, Any]) -> None:
    """Record the sender of a content that will be dropped at ``path``, relative to the drop
    zone.
    """
    write_durably(_note_of(zone, sha256), {"path": path, "sender": dict(sender)})


def sender_of(zone: Path, sha256: str) -> Mapping[str, Any] | None:
    """Return the sender of a content; None: it was dropped by hand."""
    note = _read(_note_of(zone, sha256))
    return None if note is None else note["sender"]


def waiting(zone: Path, sha256: str, *, held: bool = True) -> Mapping[str, Any] | None:
    """Return the sender of a content whose file is dropped or claimed; None: no file of it waits.

    Args:
        held: count files that wait for an operator.
    """
    note = _read(_note_of(zone, sha256))
    if note is None:
        return None
    # A sender who was killed in between left a note without its file.
    exists = os.path.lexists(zone / note["path"]) or note["path"] in claimed_paths(zone, held=held)
    sender: Mapping[str, Any] = note["sender"]
    return sender if exists else None


def some_wait(zone: Path) -> bool:
    """Return True when a sent file waits for a run."""
    return any(waiting(zone, note.stem, held=False) is not None for note in _notes(zone))


def done_with(zone: Path, sha256: str) -> None:
    """Remove the sender of a finished content.

    Not while a file of it waits: the same content may be there twice, or be sent again just now.
    """
    if not _note_of(zone, sha256).exists():
        return
    with zone_lock(zone):
        if waiting(zone, sha256) is None:
            _note_of(zone, sha256).unlink(missing_ok=True)


def sent_as(zone: Path, path: str) -> str | None:
    """Return the digest of what was sent as ``path``; None: nothing was."""
    for path_of_note in _notes(zone):
        note = _read(path_of_note)
        if note is not None and note["path"] == path:
            return path_of_note.stem
    return None


def _note_of(zone: Path, sha256: str) -> Path:
    return zone / UPLOADS / f"{sha256}.json"


def _notes(zone: Path) -> list[Path]:
    return sorted((zone / UPLOADS).glob("[0-9a-f]*.json"))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_text(encoding="ascii")))
    except FileNotFoundError:
        return None
