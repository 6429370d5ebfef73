"""Snapshots of bulletins: ``<change_seq>.md`` to read, ``<change_seq>.json`` as a fallback.

Bulletins of one journal head for different viewers differ: all but the plain one have the key of
their view in the name, and only one for the same view is read back.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic import ValidationError

from memgraph.model.context import Bulletin

_NAME = re.compile(r"(?P<seq>[0-9]{1,18})(?:-(?P<key>[0-9a-f]{16}))?\.json")
# Far above any bulletin that the settings allow.
_MAX_BYTES = 4_000_000


class BulletinFiles:
    """The snapshot files of one orchestrator.

    Args:
        folder: made when the first snapshot is written; its parent has to exist.
        keep: >= 1; how many snapshots (pairs of files) remain: the last ones written.
        plain_key: the view whose files are named by ``change_seq`` alone.
    """

    def __init__(self, folder: Path, *, keep: int, plain_key: str) -> None:
        self._folder = folder
        self._keep = keep
        self._plain_key = plain_key

    def save(self, bulletin: Bulletin) -> Path:
        """Write both files, each atomically, and remove the oldest; return the .md.

        Raises:
            OSError: the folder or a file cannot be written.
        """
        # Without its parents: an orchestrator that was removed must not come back as a folder.
        self._folder.mkdir(exist_ok=True, mode=0o700)
        suffix = "" if bulletin.view_key == self._plain_key else f"-{bulletin.view_key}"
        stem = f"{bulletin.change_seq}{suffix}"
        text = self._folder / f"{stem}.md"
        _replace(text, bulletin.text)
        # Last, because it is what the others are found by.
        _replace(self._folder / f"{stem}.json", bulletin.model_dump_json(indent=2) + "\n")
        self._prune()
        return text

    def latest(self, view_key: str) -> Bulletin | None:
        """Return the newest readable snapshot of this view; None: there is none."""
        for path in self._found(view_key):
            bulletin = _read(path)
            if bulletin is not None and bulletin.view_key == view_key:
                return bulletin
        return None

    def clear(self) -> None:
        """Remove every snapshot: erased text must not remain here.

        Raises:
            OSError: a file cannot be removed.
        """
        for path in self._found():
            _remove(path)

    def files(self) -> list[Path]:
        """Return the files that ``clear`` would remove."""
        pairs = ((path, path.with_suffix(".md")) for path in self._found())
        return sorted(file for pair in pairs for file in pair if file.is_file())

    def _found(self, view_key: str | None = None) -> list[Path]:
        """Return the .json files, of one view or of all, newest first."""
        try:
            paths = list(self._folder.iterdir())
        except FileNotFoundError:
            return []
        existing = []
        for path in paths:
            match = _NAME.fullmatch(path.name)
            if match is not None and view_key in (None, match["key"] or self._plain_key):
                # By time, since a restored backup goes on counting from a lower number.
                existing.append((_modified(path), int(match["seq"]), path.name, path))
        return [path for *_, path in sorted(existing, reverse=True)]

    def _prune(self) -> None:
        for path in self._found()[self._keep :]:
            _remove(path)


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0  # another process removed it just now


def _read(path: Path) -> Bulletin | None:
    """Return the bulletin in a file; None when it is gone, truncated or invalid."""
    try:
        with path.open("rb") as file:
            return Bulletin.model_validate_json(file.read(_MAX_BYTES))
    except (OSError, ValidationError):
        return None


def _remove(path: Path) -> None:
    # The text first: without its .json it would never be found again.
    path.with_suffix(".md").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically, without syncing: one that a power cut garbled is skipped when
    read.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
