"""The drop zone: list its files, copy files into it, record their senders, and clean it up.

``processed/``, ``rejected/`` and names that begin with a dot are ignored. Temporary files of
editors and downloads (``*~``, ``*.tmp``, ``*.part``, ``*.partial``, ``*.crdownload``, ``*.swp``,
``~$*``, ``Thumbs.db``) are skipped and reported. A program that writes slowly can use such a name
and rename the file when it is complete.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, Literal

from ingest.claims import claimed_paths, zone_lock
from ingest.parse import SUPPORTED_TYPES
from ingest.reasons import RejectionReason
from ingest.safe_files import (
    MAX_NAME_BYTES,
    FileVanished,
    is_reachable,
    numbered,
    open_directory,
    open_parent,
    write_durably,
)
from memgraph.errors import IngestRejected
from memgraph.paths import naming_full_disk

OWN_FOLDERS = frozenset(("processed", "rejected"))
MAX_DEPTH = 16
MAX_FILES = 100_000
INCOMING = ".incoming-"
_INCOMING_NAME = re.compile(rf"{re.escape(INCOMING)}[0-9a-f]{{16}}")
STALE_SECONDS = 86_400
# ``.uploads/<sha256>.json`` records the sender of a file until the file is finished. A file that
# was dropped by hand has no sender, so no sender's restrictions apply to it.
UPLOADS: Final = ".uploads"
_TEMPORARY = ("~", ".tmp", ".part", ".partial", ".crdownload", ".swp", ".swx")
_UNREADABLE = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ELOOP)
_NOT_REMOVABLE = (
    errno.EACCES,
    errno.EPERM,
    errno.ENOENT,
    errno.ENOTEMPTY,
    errno.EEXIST,
    errno.ENOTDIR,
)

Verdict = Literal["take", "reject", "skip"]


@dataclass(frozen=True, slots=True)
class DropEntry:
    """A name in the drop zone.

    ``path`` is relative to the drop zone, as the file system spells it (undecodable bytes as
    surrogates, as ``os`` functions accept them); ``display`` is its printable form.
    """

    path: str
    display: str
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
    """Yield the entries of the drop zone, folder by folder, sorted by name.

    Only names and types are read; ``read_safely`` checks the content. A missing drop zone yields
    nothing. Files beyond ``max_files`` are left for a later run.

    Raises:
        IngestRejected: the drop zone itself is a link or not a folder.
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
            # Hidden names, such as the pipeline's own, are not reported.
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
        # The folder was just replaced by a link, or it cannot be read.
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


@dataclass(frozen=True, slots=True)
class FileToCopy:
    """A file to copy to ``relative``, or the reason why it is not copied.

    ``copied_to`` is its path in the drop zone, once it is copied.
    """

    source: Path
    relative: Path
    reason: RejectionReason | None = None
    copied_to: str | None = None


def choose(paths: Iterable[Path]) -> Iterator[FileToCopy]:
    """Yield the given files, and the files of given folders with their relative paths.

    A file that is given directly is always copied. In a folder, unsupported types, hidden names and
    links are yielded with the reason why they are not.
    """
    for path in paths:
        if path.is_dir():
            unreadable: list[Path] = []
            for file in _files_in(path, unreadable):
                yield FileToCopy(file, file.relative_to(path), _unfit(file))
            yield from (
                FileToCopy(file, file.relative_to(path), RejectionReason.UNREADABLE)
                for file in unreadable
            )
        else:
            yield FileToCopy(path, Path(path.name))


def stage(paths: Iterable[Path], zone: Path) -> list[FileToCopy]:
    """Copy the files that ``choose`` yields into the drop zone, and report the others.

    Nothing in the drop zone is overwritten: a file whose name is taken gets a number. Each file
    appears under its name only when it is complete. An unreadable file is reported, and the others
    are still copied.

    Raises:
        OSError: a path does not exist, or the drop zone cannot be written to.
        DatabaseFull: the disk is full; files already copied stay.
        IngestRejected: a folder of the drop zone was replaced by a link meanwhile.
    """
    return [_copy(file, zone) if file.reason is None else file for file in choose(paths)]


def _files_in(folder: Path, unreadable: list[Path]) -> Iterator[Path]:
    """Yield the files of a folder, and append folders that cannot be read to ``unreadable``."""

    def note(error: OSError) -> None:
        unreadable.append(Path(os.fsdecode(error.filename)))

    for root, folders, names in os.walk(folder, onerror=note):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(root, name) for name in sorted(names))


def _unfit(path: Path) -> RejectionReason | None:
    if is_hidden_or_temporary(path.name):
        return RejectionReason.HIDDEN_OR_TEMPORARY
    if not path.name.casefold().endswith(SUPPORTED_TYPES):
        return RejectionReason.UNSUPPORTED_TYPE
    if path.is_symlink():
        return RejectionReason.LINK
    return None if path.is_file() else RejectionReason.NOT_REGULAR_FILE


def _copy(file: FileToCopy, zone: Path) -> FileToCopy:
    if not file.source.is_file():
        if not file.source.exists():
            raise FileNotFoundError(f"no such file: {file.source}")
        return replace(file, reason=RejectionReason.NOT_REGULAR_FILE)
    try:
        source = file.source.open("rb")
    except OSError as error:
        if error.errno not in _UNREADABLE:
            raise
        return replace(file, reason=RejectionReason.UNREADABLE)
    with source, naming_full_disk(zone):
        return replace(file, copied_to=str(_copy_open(source, file.relative, zone)))


def _copy_open(source: BinaryIO, relative: Path, zone: Path) -> Path:
    fresh = zone / f"{INCOMING}{secrets.token_hex(8)}"
    try:
        with fresh.open("xb") as file:
            shutil.copyfileobj(source, file)
        with zone_lock(zone):
            target = free_name(zone, relative)
            with open_parent(zone, str(target), make=True) as (folder, name):
                os.rename(fresh, name, dst_dir_fd=folder)
    finally:
        fresh.unlink(missing_ok=True)
    return target


def free_name(zone: Path, relative: Path) -> Path:
    """Return a free path for a file, numbered if its name is taken; call it under ``zone_lock``.

    If a part of the path is not a folder, such as a link, only the file's name is used.
    """
    # These top-level folders of the drop zone belong to the pipeline.
    if len(relative.parts) > 1 and relative.parts[0] in ("processed", "rejected"):
        relative = Path(f"{relative.parts[0]}-1", *relative.parts[1:])
    if not is_reachable(zone, str(relative)):
        relative = Path(relative.name)
    target = relative
    number = 1
    while os.path.lexists(zone / target):
        number += 1
        target = relative.with_name(numbered(relative.name, number, MAX_NAME_BYTES))
    return target


def remove_emptied(zone: Path, folders: Iterable[str]) -> None:
    """Remove the folders that are empty, and their parents that become empty.

    Paths are relative to the drop zone. The drop zone itself and links are never removed.
    """
    names = {str(path) for folder in folders if folder for path in _with_parents(folder)}
    if not names:
        return
    # ``stage`` creates and fills a folder under the same lock.
    with zone_lock(zone):
        for folder in sorted(names, key=lambda path: path.count("/"), reverse=True):
            with suppress(FileVanished, IngestRejected), open_parent(zone, folder) as (above, name):
                try:
                    os.rmdir(name, dir_fd=above)
                except OSError as error:
                    if error.errno not in _NOT_REMOVABLE:
                        raise


def _with_parents(folder: str) -> Iterator[PurePosixPath]:
    path = PurePosixPath(folder)
    yield path
    yield from path.parents[:-1]


def remove_stale(zone: Path, *, older_than_seconds: float = STALE_SECONDS) -> None:
    """Remove the incomplete files that a killed copy or upload left in the drop zone.

    Args:
        older_than_seconds: how long a file must be unchanged, in seconds.
    """
    try:
        names = [entry for entry in os.listdir(zone) if _INCOMING_NAME.fullmatch(entry)]  # noqa: PTH208 - names alone are needed
    except FileNotFoundError:
        return
    for name in names:
        with suppress(FileNotFoundError):
            status = (zone / name).lstat()
            if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > older_than_seconds:
                (zone / name).unlink()


def note_sender(zone: Path, sha256: str, *, path: str, sender: Mapping[str, Any]) -> None:
    """Record the sender of a file that will be dropped at ``path``, relative to the drop zone."""
    write_durably(_note_of(zone, sha256), {"path": path, "sender": dict(sender)})


def sender_of(zone: Path, sha256: str) -> Mapping[str, Any] | None:
    """Return the sender of the file with this digest; None if it was dropped by hand."""
    note = _read(_note_of(zone, sha256))
    return None if note is None else note["sender"]


def waiting(zone: Path, sha256: str, *, include_held: bool = True) -> Mapping[str, Any] | None:
    """Return the sender of a file that is still dropped or claimed; None if there is none.

    Args:
        sha256: the digest of its content.
        include_held: also count files that wait for an operator.
    """
    note = _read(_note_of(zone, sha256))
    if note is None:
        return None
    # An upload that was killed midway leaves a note without a file.
    exists = os.path.lexists(zone / note["path"]) or note["path"] in claimed_paths(
        zone, include_held=include_held
    )
    sender: Mapping[str, Any] = note["sender"]
    return sender if exists else None


def any_waiting(zone: Path) -> bool:
    """Return True when an uploaded file waits for a run."""
    return any(waiting(zone, note.stem, include_held=False) is not None for note in _notes(zone))


def forget_sender(zone: Path, sha256: str) -> None:
    """Remove the record of a sender, unless a file with this content still waits.

    The same content may have been dropped twice, or may just have been sent again.
    """
    if not _note_of(zone, sha256).exists():
        return
    with zone_lock(zone):
        if waiting(zone, sha256) is None:
            _note_of(zone, sha256).unlink(missing_ok=True)


def sent_digest(zone: Path, path: str) -> str | None:
    """Return the digest of the file that was sent as ``path``; None if none was."""
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
