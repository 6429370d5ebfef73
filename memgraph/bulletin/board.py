"""The bulletin of one open orchestrator, rebuilt only after a change, with a fallback.

A bulletin is requested for every message, before anything else is assembled: a broken database must
not stop that. ``current`` raises; ``bulletin_or_fallback`` returns the last good one instead.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from datetime import UTC, tzinfo
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from memgraph.bulletin.generate import composed, view_key
from memgraph.config.schema import BulletinSettings
from memgraph.errors import MemgraphError, MemoryDisabled, StorageError
from memgraph.log import EventLog
from memgraph.model.context import BuiltBulletin, Bulletin
from memgraph.paths import Stamp
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.store.bulletins import journal_head
from memgraph.store.engine import Database
from memgraph.store.erasure import erased_through
from memgraph.store.snapshot import despite_damage

MAX_VIEWS = 64
KEEP_SNAPSHOTS = 20
"""The number of snapshots kept in ``bulletins/``; older ones are removed."""

STALE = "bulletin.stale"
EMPTY = "bulletin.empty"
NO_SNAPSHOT = "bulletin.snapshot_failed"


class _CachedBulletin(NamedTuple):
    head: tuple[int, int, str]
    bulletin: Bulletin
    erased: Stamp


class BulletinBoard:
    """Builds and caches bulletins, with fallbacks. Thread-safe.

    Args:
        database: the orchestrator's database.
        settings: size limits and the number of snapshots.
        folder: the folder of the snapshots, which wait for ``flush``: that saves about 1 ms per
            message.
        log: records every fallback and every snapshot that could not be written.
        erased: returns a value that changes when any process erases texts.
        zone: the time zone of the dates.
    """

    def __init__(
        self,
        database: Database,
        settings: BulletinSettings,
        *,
        folder: Path,
        log: EventLog,
        erased: Callable[[], Stamp] = tuple,
        zone: tzinfo = UTC,
    ) -> None:
        self._database = database
        self._settings = settings
        self._log = log
        self._erased = erased
        self._zone = zone
        self._waiting: dict[str, Bulletin] = {}
        self._lock = threading.Lock()
        # Guards writing and removing files; acquired before ``_lock``.
        self._files = threading.Lock()
        self._epoch = 0
        self._kept: OrderedDict[Viewer, _CachedBulletin] = OrderedDict()
        self._snapshots = _files(folder, settings, zone)

    def current(self, viewer: Viewer = DEFAULT_VIEWER) -> Bulletin:
        """Return the bulletin as of the last change.

        Raises:
            StorageError: the database cannot be read.
            MemoryDisabled: the database was closed.
        """
        # Imported here, because a process that shows no bulletin does not need it.
        from memgraph.bulletin.generate import generate_in

        with self._lock:
            epoch = self._epoch
        erased = self._erased()
        with self._database.read() as snapshot:
            head = journal_head(snapshot)
            with self._lock:
                cached = self._kept.get(viewer)
                if cached is not None and cached.head == head:
                    if cached.erased != erased:
                        self._kept[viewer] = cached._replace(erased=erased)
                    return cached.bulletin
            bulletin = generate_in(snapshot, viewer, self._settings, None, self._zone)
        with self._lock:
            # A bulletin that was read before an erasure may be returned now, but not cached.
            if epoch == self._epoch:
                self._keep(viewer, _CachedBulletin(head, bulletin, erased))
        return bulletin

    @property
    def waiting(self) -> int:
        """The number of snapshots that wait for ``flush``."""
        return len(self._waiting)

    def flush(self) -> int:
        """Write the waiting snapshots, the last one of each view; return their number.

        Raises:
            StorageError: the database cannot be read.
            OSError: a snapshot from before an erasure cannot be removed.
        """
        with self._files:
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            for bulletin in waiting.values():
                self._save(bulletin)
            if waiting:
                self._remove_outdated(waiting.values())
        return len(waiting)

    def bulletin_or_fallback(self, viewer: Viewer = DEFAULT_VIEWER) -> BuiltBulletin:
        """Return the current bulletin, else the last good one of this viewer, else an empty one."""
        try:
            bulletin, damaged = despite_damage(lambda: self.current(viewer))
            if damaged:
                self._log.warning("storage.damaged_rows", rows=damaged)
            return BuiltBulletin(bulletin)
        except (StorageError, MemoryDisabled, OSError) as error:
            last = self._last_good(viewer)
            cause = error.code if isinstance(error, MemgraphError) else "os.error"
            fallback = _fallback(last, viewer, self._settings, self._zone, cause)
            self._log.failure(str(fallback.warning), error, level="warning")
            return fallback

    def forget(self) -> None:
        """Clear the cache, and what waits for ``flush``. Call this after texts were erased."""
        # A flush that has begun removes by itself what it writes from before the erasure.
        with self._lock:
            self._epoch += 1
            self._kept.clear()
            self._waiting.clear()

    def _keep(self, viewer: Viewer, cached: _CachedBulletin) -> None:
        # A slower thread may store an older bulletin here, which does no harm: heads are compared.
        self._kept[viewer] = cached
        self._kept.move_to_end(viewer)
        while len(self._kept) > MAX_VIEWS:
            self._kept.popitem(last=False)
        # Move the view to the end, and drop the oldest ones, so that the queue is limited too.
        self._waiting.pop(cached.bulletin.view_key, None)
        self._waiting[cached.bulletin.view_key] = cached.bulletin
        while len(self._waiting) > MAX_VIEWS:
            del self._waiting[next(iter(self._waiting))]

    def _save(self, bulletin: Bulletin) -> None:
        try:
            self._snapshots.save(bulletin)
        except OSError as error:
            # The bulletin itself is good; only the next fallback will be older.
            self._log.failure(NO_SNAPSHOT, error, level="warning")

    def _remove_outdated(self, written: Collection[Bulletin]) -> None:
        """Remove those of the snapshots just written that are from before an erasure.

        It may be another process's, and its texts are not known here. A later erasure finds them.
        """
        with self._database.read() as snapshot:
            through = erased_through(snapshot)
        for bulletin in written:
            if bulletin.change_seq < through:
                self._snapshots.remove(bulletin)

    def _last_good(self, viewer: Viewer) -> Bulletin | None:
        with self._lock:
            cached = self._kept.get(viewer)
        if cached is not None and cached.erased == self._erased():
            return cached.bulletin
        try:
            return self._snapshots.latest(view_key(viewer, self._settings, self._zone))
        except OSError as error:
            self._log.failure(NO_SNAPSHOT, error, level="warning")
            return None


def without_database(
    folder: Path,
    settings: BulletinSettings,
    viewer: Viewer,
    error: MemgraphError,
    zone: tzinfo = UTC,
) -> BuiltBulletin:
    """Return the last good bulletin, else an empty one, when the database cannot even be opened."""
    try:
        last = _files(folder, settings, zone).latest(view_key(viewer, settings, zone))
    except OSError:
        last = None
    return _fallback(last, viewer, settings, zone, error.code)


def _files(folder: Path, settings: BulletinSettings, zone: tzinfo) -> BulletinFiles:
    plain_key = view_key(DEFAULT_VIEWER, settings, zone)
    return BulletinFiles(folder, keep=KEEP_SNAPSHOTS, plain_key=plain_key)


def _fallback(
    last: Bulletin | None, viewer: Viewer, settings: BulletinSettings, zone: tzinfo, cause: str
) -> BuiltBulletin:
    if last is not None:
        return BuiltBulletin(last, STALE, cause)
    empty = composed({}, settings, change_seq=0, key=view_key(viewer, settings, zone))
    return BuiltBulletin(empty, EMPTY, cause)


_NAME = re.compile(r"(?P<seq>[0-9]{1,18})(?:-(?P<key>[0-9a-f]{16}))?\.json")
# Far above any bulletin that the settings allow.
_MAX_BYTES = 4_000_000


class BulletinFiles:
    """The snapshot files of one orchestrator.

    Args:
        folder: created with the first snapshot; its parent must exist.
        keep: the number of snapshots (pairs of files) to keep, >= 1: the last ones written.
        plain_key: the view whose files are named by ``change_seq`` alone.
    """

    def __init__(self, folder: Path, *, keep: int, plain_key: str) -> None:
        self._folder = folder
        self._keep = keep
        self._plain_key = plain_key

    def save(self, bulletin: Bulletin) -> Path:
        """Write both files, each atomically, remove the oldest ones, and return the .md file.

        Raises:
            OSError: the folder or a file cannot be written.
        """
        # Do not create its parents: the folder of a removed orchestrator must not come back.
        self._folder.mkdir(exist_ok=True, mode=0o700)
        path = self._path(bulletin)
        text = path.with_suffix(".md")
        _replace(text, bulletin.text)
        # Written last, because snapshots are found by their .json file.
        _replace(path, bulletin.model_dump_json(indent=2) + "\n")
        for path in self._found()[self._keep :]:
            _remove(path)
        return text

    def latest(self, view_key: str) -> Bulletin | None:
        """Return the newest readable snapshot of this view; None if there is none."""
        for path in self._found(view_key):
            bulletin = _read(path)
            if bulletin is not None and bulletin.view_key == view_key:
                return bulletin
        return None

    def remove(self, bulletin: Bulletin) -> None:
        """Remove the snapshot of a bulletin, if there is one. Raises OSError."""
        _remove(self._path(bulletin))

    def _path(self, bulletin: Bulletin) -> Path:
        suffix = "" if bulletin.view_key == self._plain_key else f"-{bulletin.view_key}"
        return self._folder / f"{bulletin.change_seq}{suffix}.json"

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
                # Sort by time, because after the restore of a backup the numbers are lower.
                existing.append((_modified(path), int(match["seq"]), path.name, path))
        return [path for *_, path in sorted(existing, reverse=True)]


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
    # Remove the text first: without its .json file it would never be found again.
    path.with_suffix(".md").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically, without syncing: reads skip a file damaged by a power cut."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
