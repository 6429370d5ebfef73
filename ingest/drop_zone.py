"""The drop zone: list its files, copy files into it, and remove emptied folders.

``processed/``, ``rejected/`` and names that begin with a dot are ignored. Temporary files of
editors and downloads (``*~``, ``*.tmp``, ``*.part``, ``*.partial``, ``*.crdownload``, ``*.swp``,
``~$*``, ``Thumbs.db``) are skipped and reported. A program that writes slowly can use such a name
and rename the file when it is complete.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ingest.claims import IncomingFile
from ingest.parse import SUPPORTED_TYPES
from ingest.reasons import RejectionReason
from ingest.safe_files import FileVanished, open_directory, open_parent
from memgraph.errors import IngestRejected
from memgraph.paths import naming_full_disk

OWN_FOLDERS = frozenset(("processed", "rejected"))
MAX_DEPTH = 16
MAX_FILES = 100_000
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


class DropEntry(NamedTuple):
    """A name in the drop zone, and the reason why it is skipped, if it is.

    ``path`` is relative to the drop zone, as the file system spells it (undecodable bytes as
    surrogates, as ``os`` functions accept them); ``display_path`` makes it printable.
    """

    path: str
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
                count += entry.reason is None
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
                yield DropEntry(path, RejectionReason.HIDDEN_OR_TEMPORARY)
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
            yield DropEntry(path)


def _walk_folder(descriptor: int, name: str, path: str, depth: int) -> Iterator[DropEntry]:
    if depth <= 0:
        yield DropEntry(path, RejectionReason.TOO_DEEP)
        return
    try:
        with open_directory(name, descriptor) as inner:
            yield from _walk(inner, f"{path}/", depth - 1)
    except FileVanished:
        return
    except IngestRejected as error:
        # The folder was just replaced by a link, or it cannot be read.
        yield DropEntry(path, RejectionReason(error.details["reason"]))


@dataclass(frozen=True, slots=True)
class FileToCopy:
    """A file to copy to ``relative``, or the reason why it is not copied."""

    source: Path
    relative: Path
    reason: RejectionReason | None = None


def choose(paths: Iterable[Path]) -> Iterator[FileToCopy]:
    """Yield the given files, and the files of given folders with their relative paths.

    A file that is given directly is always copied. In a folder, unsupported types, hidden names and
    links are yielded with the reason why they are not.
    """
    for path in paths:
        if not path.is_dir():
            yield FileToCopy(path, Path(path.name))
            continue
        unreadable: list[OSError] = []
        for root, folders, names in os.walk(path, onerror=unreadable.append):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for file in (Path(root, name) for name in sorted(names)):
                yield FileToCopy(file, file.relative_to(path), _unfit(file))
        for folder in (Path(os.fsdecode(error.filename)) for error in unreadable):
            yield FileToCopy(folder, folder.relative_to(path), RejectionReason.UNREADABLE)


def stage(paths: Iterable[Path], zone: Path) -> list[FileToCopy]:
    """Copy the files that ``choose`` yields for the next run; return those that were not copied.

    An unreadable file is reported, and the others are still copied.

    Raises:
        OSError: a path does not exist, or the drop zone cannot be written to.
        DatabaseFull: the disk is full; files already copied stay.
    """
    staged = [replace(file, reason=file.reason or _copy(file, zone)) for file in choose(paths)]
    return [file for file in staged if file.reason is not None]


def _unfit(path: Path) -> RejectionReason | None:
    if is_hidden_or_temporary(path.name):
        return RejectionReason.HIDDEN_OR_TEMPORARY
    if not path.name.casefold().endswith(SUPPORTED_TYPES):
        return RejectionReason.UNSUPPORTED_TYPE
    if path.is_symlink():
        return RejectionReason.LINK
    return None if path.is_file() else RejectionReason.NOT_REGULAR_FILE


def _copy(file: FileToCopy, zone: Path) -> RejectionReason | None:
    """Copy a file; return the reason if it cannot be read."""
    if not file.source.is_file():
        if not file.source.exists():
            raise FileNotFoundError(f"no such file: {file.source}")
        return RejectionReason.NOT_REGULAR_FILE
    try:
        source = file.source.open("rb")
    except OSError as error:
        if error.errno not in _UNREADABLE:
            raise
        return RejectionReason.UNREADABLE
    with source, naming_full_disk(zone), IncomingFile(zone) as incoming:
        shutil.copyfileobj(source, incoming.file)
        incoming.place(str(file.relative))
    return None


def remove_emptied(zone: Path, folders: Iterable[str]) -> None:
    """Remove the folders that are empty, and their parents that become empty.

    Paths are relative to the drop zone. The drop zone itself and links are never removed.
    """
    paths = (PurePosixPath(folder) for folder in folders if folder)
    names = {str(above) for path in paths for above in (path, *path.parents[:-1])}
    for folder in sorted(names, key=lambda path: path.count("/"), reverse=True):
        with suppress(FileVanished, IngestRejected), open_parent(zone, folder) as (above, name):
            try:
                os.rmdir(name, dir_fd=above)
            except OSError as error:
                if error.errno not in _NOT_REMOVABLE:
                    raise
