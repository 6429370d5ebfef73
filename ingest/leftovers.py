"""Cleaning up the drop zone: emptied folders, unfinished copies."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ingest.claims import open_parent, zone_lock
from ingest.safe_files import FileVanished
from memgraph.errors import IngestRejected

INCOMING = ".incoming-"
_INCOMING_NAME = re.compile(rf"{re.escape(INCOMING)}[0-9a-f]{{16}}")
STALE_SECONDS = 86_400
_STAYS = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM)


def remove_emptied(zone: Path, folders: Iterable[str]) -> None:
    """Remove empty folders, relative to the drop zone, and empty ones above them.

    The drop zone itself stays, and so do links.
    """
    chosen = {
        "/".join(parts[:end]) for parts in _split(folders) for end in range(1, len(parts) + 1)
    }
    if not chosen:
        return
    # Who copies files in makes a folder and fills it under the same lock.
    with zone_lock(zone):
        for folder in sorted(chosen, key=lambda each: each.count("/"), reverse=True):
            with suppress(FileVanished, IngestRejected), open_parent(zone, folder) as (above, name):
                _remove_if_empty(name, above)


def remove_stale(zone: Path, *, older_than_seconds: float = STALE_SECONDS) -> None:
    """Remove the hidden copies of a killed ``stage``.

    The original files are unchanged.
    """
    try:
        names = [each for each in os.listdir(zone) if _INCOMING_NAME.fullmatch(each)]  # noqa: PTH208 - names alone are needed
    except FileNotFoundError:
        return
    for name in names:
        with suppress(FileNotFoundError):
            status = (zone / name).lstat()
            if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > older_than_seconds:
                (zone / name).unlink()


def _split(folders: Iterable[str]) -> list[list[str]]:
    return [folder.split("/") for folder in folders if folder]


def _remove_if_empty(name: str, above: int) -> None:
    try:
        os.rmdir(name, dir_fd=above)
    except OSError as error:
        if error.errno not in _STAYS:
            raise
