"""The bulletin of one open orchestrator, rebuilt only after a change, with a fallback.

A bulletin is requested for every message, before anything else is assembled: a broken database must
not stop that. ``current`` raises; ``bulletin_or_fallback`` returns the last good one instead.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from memgraph.bulletin.generate import composed, view_key
from memgraph.bulletin.snapshots import BulletinFiles
from memgraph.config.schema import BulletinSettings
from memgraph.errors import MemgraphError, MemoryDisabled, StorageError
from memgraph.log import EventLog
from memgraph.model.context import BuiltBulletin, Bulletin
from memgraph.paths import Stamp
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.store.bulletins import journal_head
from memgraph.store.engine import Database
from memgraph.store.erasure import erased_through

MAX_VIEWS = 64

STALE = "bulletin.stale"
EMPTY = "bulletin.empty"
NO_SNAPSHOT = "bulletin.snapshot_failed"


class _Kept(NamedTuple):
    head: tuple[int, int, str]
    bulletin: Bulletin
    erased: Stamp


class BulletinBoard:
    """Builds and caches bulletins, with fallbacks. Thread-safe.

    Args:
        database: of the orchestrator.
        settings: size limits and the number of snapshots.
        folder: of the snapshots; None: none are written or read.
        plain_viewer: whose snapshots are named by ``change_seq`` alone.
        log: records every fallback and every snapshot that could not be written.
        deferred: snapshots wait for ``flush``, which saves a message about 1 ms; else they are
            written as soon as a bulletin is made.
        erased: returns another value after texts were erased, by any process.
    """

    def __init__(
        self,
        database: Database,
        settings: BulletinSettings,
        *,
        folder: Path | None = None,
        plain_viewer: Viewer = DEFAULT_VIEWER,
        log: EventLog | None = None,
        deferred: bool = False,
        erased: Callable[[], Stamp] = tuple,
    ) -> None:
        self._database = database
        self._settings = settings
        self._log = log
        self._deferred = deferred
        self._erased = erased
        self._waiting: dict[str, Bulletin] = {}
        self._lock = threading.Lock()
        # Taken before the other one, around writing and removing files.
        self._files = threading.Lock()
        self._epoch = 0
        self._kept: OrderedDict[Viewer, _Kept] = OrderedDict()
        self._snapshots: BulletinFiles | None = None
        if folder is not None:
            plain_key = view_key(plain_viewer, settings)
            self._snapshots = BulletinFiles(
                folder, keep=settings.keep_snapshots, plain_key=plain_key
            )

    def current(self, viewer: Viewer = DEFAULT_VIEWER) -> Bulletin:
        """Return the bulletin as of the last change.

        Raises:
            StorageError: the database cannot be read.
            MemoryDisabled: it was closed.
        """
        # A process that shows no bulletin does without.
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
            bulletin = generate_in(snapshot, viewer, self._settings)
        with self._lock:
            # Read before an erasure: good for this answer, not for keeping.
            if epoch == self._epoch:
                self._keep(viewer, _Kept(head, bulletin, erased))
        if not self._deferred:
            self.flush()
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
                self._require_unerased(min(entry.change_seq for entry in waiting.values()))
        return len(waiting)

    def bulletin_or_fallback(self, viewer: Viewer = DEFAULT_VIEWER) -> BuiltBulletin:
        """Return the current bulletin, else the last good one of this viewer, else an empty one."""
        try:
            return BuiltBulletin(self.current(viewer))
        except (StorageError, MemoryDisabled, OSError) as error:
            last = self._last_good(viewer)
            warning = EMPTY if last is None else STALE
            self._log_failure(warning, error)
            cause = error.code if isinstance(error, MemgraphError) else "os.error"
            return BuiltBulletin(last or self._empty(viewer), warning, cause)

    def forget(self) -> None:
        """Drop the cache, in memory and as snapshots; to be called after text was erased.

        Raises:
            OSError: a snapshot cannot be removed.
        """
        with self._files:
            with self._lock:
                self._epoch += 1
                self._kept.clear()
                self._waiting.clear()
            if self._snapshots is not None:
                self._snapshots.clear()

    def snapshot_files(self) -> list[Path]:
        """Return the snapshot files that ``forget`` would remove now."""
        return [] if self._snapshots is None else self._snapshots.files()

    def _keep(self, viewer: Viewer, cached: _Kept) -> None:
        # A thread that read an earlier state and was slower does no harm: heads are compared.
        self._kept[viewer] = cached
        self._kept.move_to_end(viewer)
        while len(self._kept) > MAX_VIEWS:
            self._kept.popitem(last=False)
        if self._snapshots is not None:
            # Anew at the end; the oldest views give way, so that what waits is bounded too.
            self._waiting.pop(cached.bulletin.view_key, None)
            self._waiting[cached.bulletin.view_key] = cached.bulletin
            while len(self._waiting) > MAX_VIEWS:
                del self._waiting[next(iter(self._waiting))]

    def _save(self, bulletin: Bulletin) -> None:
        if self._snapshots is None:
            return
        try:
            self._snapshots.save(bulletin)
        except OSError as error:
            # The bulletin itself is good; only the next fallback will be older.
            self._log_failure(NO_SNAPSHOT, error)

    def _require_unerased(self, change_seq: int) -> None:
        """Remove snapshots made before an erasure, maybe by another process.

        Checked after they were written: a later erasure removes them itself.
        """
        with self._database.read() as snapshot:
            if change_seq < erased_through(snapshot) and self._snapshots is not None:
                self._snapshots.clear()

    def _last_good(self, viewer: Viewer) -> Bulletin | None:
        with self._lock:
            cached = self._kept.get(viewer)
        if cached is not None and cached.erased == self._erased():
            return cached.bulletin
        if self._snapshots is None:
            return None
        try:
            return self._snapshots.latest(view_key(viewer, self._settings))
        except OSError as error:
            self._log_failure(NO_SNAPSHOT, error)
            return None

    def _empty(self, viewer: Viewer) -> Bulletin:
        key = view_key(viewer, self._settings)
        return composed({}, self._settings, change_seq=0, key=key)

    def _log_failure(self, event: str, error: BaseException) -> None:
        if self._log is not None:
            self._log.failure(event, error, level="warning")


def without_database(
    folder: Path, settings: BulletinSettings, viewer: Viewer, error: MemgraphError
) -> BuiltBulletin:
    """Return the last good bulletin, else an empty one, when the database cannot even be opened."""
    plain_key = view_key(DEFAULT_VIEWER, settings)
    key = view_key(viewer, settings)
    snapshots = BulletinFiles(folder, keep=settings.keep_snapshots, plain_key=plain_key)
    try:
        last = snapshots.latest(key)
    except OSError:
        last = None
    if last is None:
        return BuiltBulletin(composed({}, settings, change_seq=0, key=key), EMPTY, error.code)
    return BuiltBulletin(last, STALE, error.code)
