"""Discovery of files in the drop zone: to take, to reject unread, or to ignore.

Ignored without a report: ``processed/``, ``rejected/`` and everything else whose name begins with a
dot; temporary files of editors and downloads (``*~``, ``*.tmp``, ``*.part``, ``*.partial``,
``*.crdownload``, ``*.swp``, ``~$*``, ``Thumbs.db``). A program that writes slowly can use such a
name and rename the file when it is complete.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ingest.parse import SUPPORTED_TYPES
from ingest.reasons import RejectionReason
from ingest.safe_files import FileVanished, open_directory
from memgraph.errors import IngestRejected

OWN_FOLDERS = frozenset(("processed", "rejected"))
MAX_DEPTH = 16
MAX_FILES = 100_000
_TEMPORARY = ("~", ".tmp", ".part", ".partial", ".crdownload", ".swp", ".swx")

Verdict = Literal["take", "reject", "skip"]


@dataclass(frozen=True, slots=True)
class DropEntry:
    """A name in the drop zone.

    ``path`` is relative to the drop zone as the file system has it (undecodable bytes as
    surrogates, fit for ``os`` functions); ``shown`` is the same for people, logs and the
    database.
    """

    path: str
    shown: str
    verdict: Verdict
    reason: RejectionReason | None = None


def display_path(path: str) -> str:
    """Return a printable name: control characters and undecodable bytes are escaped."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def is_hidden_or_temporary(name: str) -> bool:
    """Return True when a name marks a file that should not be read (yet)."""
    lowered = name.casefold()
    if lowered.startswith((".", "~$")) or lowered == "thumbs.db":
        return True
    return lowered.endswith(_TEMPORARY) or (name.startswith("#") and name.endswith("#"))


def discover(
    drop_zone: Path, *, max_depth: int = MAX_DEPTH, max_files: int = MAX_FILES
) -> Iterator[DropEntry]:
    """Yield everything in the drop zone, folder by folder in the order of names.

    Only names and types are read; ``read_safely`` checks the content. A missing drop zone yields
    nothing. Files beyond ``max_files`` are left for a later run.

    Raises:
        IngestRejected: the drop zone itself is a link or no folder.
    """
    try:
        with open_directory(os.fspath(drop_zone)) as descriptor:
            count = 0
            for entry in _walk(descriptor, "", max_depth):
                count += entry.verdict != "skip"
                if count > max_files:
                    return
                yield entry
    except FileVanished:
        return


def _walk(descriptor: int, prefix: str, depth: int) -> Iterator[DropEntry]:
    for name in sorted(os.listdir(descriptor), key=os.fsencode):
        path = f"{prefix}{name}"
        if is_hidden_or_temporary(name):
            # The pipeline's own claims are hidden names too: nothing to report.
            if not name.startswith("."):
                yield _entry(path, "skip", RejectionReason.HIDDEN_OR_TEMPORARY)
            continue
        if not prefix and name in OWN_FOLDERS:
            continue
        try:
            mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(mode):
            yield from _walk_folder(descriptor, name, path, depth)
        else:
            yield _judge(path, name, mode)


def _walk_folder(descriptor: int, name: str, path: str, depth: int) -> Iterator[DropEntry]:
    if depth <= 0:
        yield _entry(path, "skip", RejectionReason.TOO_DEEP)
        return
    try:
        with open_directory(name, descriptor) as inner:
            yield from _walk(inner, f"{path}/", depth - 1)
    except FileVanished:
        return
    except IngestRejected as error:
        # It was a folder a moment ago: exchanged for a link, or not ours to read.
        yield _entry(path, "skip", RejectionReason(error.details["reason"]))


def _judge(path: str, name: str, mode: int) -> DropEntry:
    if stat.S_ISLNK(mode):
        return _entry(path, "reject", RejectionReason.LINK)
    if not stat.S_ISREG(mode):
        return _entry(path, "reject", RejectionReason.NOT_REGULAR_FILE)
    if not name.casefold().endswith(SUPPORTED_TYPES):
        return _entry(path, "reject", RejectionReason.UNSUPPORTED_TYPE)
    return _entry(path, "take")


def _entry(path: str, verdict: Verdict, reason: RejectionReason | None = None) -> DropEntry:
    return DropEntry(path, display_path(path), verdict, reason)
