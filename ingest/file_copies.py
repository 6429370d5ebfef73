"""Copying named files into the drop zone."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ingest.claims import MAX_NAME_BYTES, is_reachable, numbered, open_parent, zone_lock
from ingest.discover import is_hidden_or_temporary
from ingest.leftovers import INCOMING
from ingest.parse import SUPPORTED_TYPES
from ingest.reasons import RejectionReason
from memgraph.paths import naming_full_disk

_NOT_OURS = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ELOOP)


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A named file: ``copied_to`` is relative to the drop zone, or None with a reason."""

    source: Path
    copied_to: str | None = None
    reason: RejectionReason | None = None


@dataclass(frozen=True, slots=True)
class FileToCopy:
    """A file to copy to ``relative``, or the reason why it is not copied."""

    source: Path
    relative: Path
    reason: RejectionReason | None = None


def choose(paths: Iterable[Path]) -> Iterator[FileToCopy]:
    """Yield named files, and the files of named folders with their relative paths.

    A named file is chosen whatever its name; in a folder, other types, hidden names and links are
    not.
    """
    for path in paths:
        if path.is_dir():
            closed: list[Path] = []
            for each in _walk(path, closed):
                yield FileToCopy(each, each.relative_to(path), _unfit(each))
            yield from (
                FileToCopy(each, each.relative_to(path), RejectionReason.UNREADABLE)
                for each in closed
            )
        else:
            yield FileToCopy(path, Path(path.name))


def stage(paths: Iterable[Path], zone: Path) -> list[StagedFile]:
    """Copy the files that ``choose`` yields into the drop zone, and report the others.

    Nothing in the drop zone is overwritten: a name that is taken gets a number. Each
    file appears under its name when it is complete. Unreadable files are reported, and the rest
    goes on.

    Raises:
        OSError: a path does not exist, or the drop zone cannot be written to.
        DatabaseFull: there is no room in it; the files that were copied stay.
        IngestRejected: a folder of the drop zone is replaced by a link meanwhile.
    """
    return [
        _copy(each.source, each.relative, zone)
        if each.reason is None
        else StagedFile(each.source, reason=each.reason)
        for each in choose(paths)
    ]


def _walk(folder: Path, closed: list[Path]) -> Iterator[Path]:
    """Yield the files of a folder; unreadable folders go to ``closed``."""

    def unreadable(error: OSError) -> None:
        closed.append(Path(os.fsdecode(error.filename)))

    for root, folders, names in os.walk(folder, onerror=unreadable):
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


def _copy(path: Path, relative: Path, zone: Path) -> StagedFile:
    if not path.is_file():
        if not path.exists():
            raise FileNotFoundError(f"no such file: {path}")
        return StagedFile(path, reason=RejectionReason.NOT_REGULAR_FILE)
    try:
        source = path.open("rb")
    except OSError as error:
        if error.errno not in _NOT_OURS:
            raise
        return StagedFile(path, reason=RejectionReason.UNREADABLE)
    with source, naming_full_disk(zone):
        return StagedFile(path, copied_to=str(_copy_open(source, relative, zone)))


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
    """Return the name, numbered if it is taken; under the lock of the drop zone.

    When a part of the path is no folder, such as a link, the name has no folder.
    """
    # At the top of the drop zone these names belong to the pipeline.
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
