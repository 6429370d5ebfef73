"""The service: all orchestrators under one root, and the wiring of their parts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, tzinfo
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from memgraph.clock import Clock, SystemClock
from memgraph.config import Settings, load_settings
from memgraph.config.schema import EmbeddingSettings
from memgraph.errors import (
    MemgraphError,
    MemoryDisabled,
    OrchestratorExists,
    OrchestratorMissing,
    RateLimited,
    StorageError,
)
from memgraph.ids import IdSource, UlidSource
from memgraph.log import EventLog
from memgraph.model.values import ActorReason, validated
from memgraph.operations.ingestion.uploads import DropZoneWorker
from memgraph.paths import (
    OrchestratorPaths,
    Stamp,
    global_config_file,
    naming_full_disk,
    orchestrator_names,
    runtime_root,
    stamp_of,
)
from memgraph.providers.completion import CompletionProvider
from memgraph.providers.embedding import CheckedEmbedding, EmbeddingProvider, embedding_provider
from memgraph.providers.options import options_of
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.service.background import InFlightCalls, SessionCallbacks
from memgraph.service.meters import SILENT, Meters
from memgraph.service.pool import OrchestratorPool, WatchedServers

if TYPE_CHECKING:
    from sqlmodel import Session

    from memgraph.operations.life.models import LanguageModel
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.providers.pair_reader import PairReader
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.service.turns.hooks import CallersHooks
    from memgraph.service.worker import Worker
    from memgraph.store.engine import Store
    from memgraph.store.vector_cache import HeldVectors, VectorCache


# Copies to send: each is a temporary file that is already unlinked when it is yielded.


FOLDER: Final = ".outgoing"
"""A folder below the runtime root; an orchestrator cannot have this name."""
MOST_AT_ONCE: Final = 4
"""The maximum number of copies that a process makes and sends at the same time."""
RETRY_AFTER_S: Final = 5
STALE_S: Final = 86_400.0
"""Seconds after which the leftovers of a killed process are removed."""

_PREFIX: Final = "copy-"


class CopyLimiter:
    """Makes copies below a runtime root, a limited number at a time. Thread-safe."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)

    @contextmanager
    def copied(self, write: Callable[[Path], object]) -> Iterator[BinaryIO]:
        """Yield the copy that ``write`` makes at a path, open for reading; removed after the block.

        Raises:
            RateLimited: too many copies are being made or sent.
            StorageError: there is no room for it, or the root cannot be written to.
        """
        if not self._free.acquire(blocking=False):
            raise RateLimited(
                "too many copies are being sent; try again later", retry_after_s=RETRY_AFTER_S
            )
        try:
            with self._made(write) as file:
                yield file
        finally:
            self._free.release()

    def _made(self, write: Callable[[Path], object]) -> BinaryIO:
        try:
            with naming_full_disk(self._folder.parent):
                self._folder.mkdir(mode=0o700, exist_ok=True)
                self._sweep()
                with TemporaryDirectory(prefix=_PREFIX, dir=self._folder) as folder:
                    target = Path(folder) / "copy"
                    write(target)
                    # The folder is removed, but the data remains while the file is open.
                    return target.open("rb")
        except OSError as error:
            raise StorageError(f"a copy cannot be made: {error.strerror}") from error

    def _sweep(self) -> None:
        for path in self._folder.glob(f"{_PREFIX}*"):
            # Another process may have removed it already.
            with suppress(FileNotFoundError):
                if time.time() - path.lstat().st_mtime > STALE_S:
                    rmtree(path, ignore_errors=True)


class Location(NamedTuple):
    """Where the memory of an orchestrator is.

    Attributes:
        settings_files: the files of its settings, and the stamp that they had.
        url: the server; empty: a file.
    """

    settings_files: tuple[Path, ...]
    settings: Stamp
    url: str
    store: Store


DEFAULT_ACTOR = "user"
FEWEST_TURNS = 2


class MemoryService:
    """Long-term memory for orchestrators, each in a database of its own.

    Thread-safe; several processes may work on the same root, each with its own service: a service
    that was created before a fork refuses to work in the child. Use it as a context manager, or
    call ``close``.

    Args:
        root: the runtime root; by default ``MEMGRAPH_ROOT`` or the platform's data folder.
        config: settings from code, by dotted key or nested; they override files and environment.
        clock, ids: sources of time and ids; fixed ones make runs repeatable.
        embedding, completion, pair_reader, llm: providers to use instead of the configured ones.
        environ: the environment to read settings from; by default the process's.
        background: embed new memories in a thread; without it call ``orc.settle``.
        meters: receives durations and counts of work; by default none.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        embedding: EmbeddingProvider | None = None,
        completion: CompletionProvider | None = None,
        pair_reader: PairReader | None = None,
        llm: LanguageModel | None = None,
        environ: Mapping[str, str] | None = None,
        background: bool = True,
        meters: Meters = SILENT,
    ) -> None:
        self.environ = environ
        self.completion = completion
        self.root = runtime_root(root, environ=environ)
        self._config = config
        self.clock = clock or SystemClock()
        # Of the dates in blocks and contexts, where memory.schedule.timezone is not set.
        self.zone: tzinfo = UTC
        self.ids = ids or UlidSource(self.clock)
        self._embedding = embedding
        self._pair_reader = pair_reader
        self._llm = llm
        self._providers: dict[EmbeddingSettings, EmbeddingProvider] = {}
        self.embeds_in_background = background
        self.meters = meters
        self.pool = OrchestratorPool(self._open, self.log_of, self.is_elsewhere)
        self._callbacks: dict[str, SessionCallbacks] = {}
        self.stores = WatchedServers(self.clock)
        self._located: dict[str, Location] = {}
        self.copies = CopyLimiter(self.root)
        self.intake = DropZoneWorker(self)
        # More concurrent recalls than processors are not faster, and each needs a snapshot's cache.
        self.recall_turns = threading.BoundedSemaphore(max(os.cpu_count() or 1, FEWEST_TURNS))
        self.recalls = InFlightCalls()
        self._vector_cache: VectorCache | None = None
        self._vector_cache_lock = threading.Lock()

    def orchestrator(
        self,
        name: str,
        *,
        create: bool = False,
        viewer: Viewer = DEFAULT_VIEWER,
        actor: str = DEFAULT_ACTOR,
    ) -> Orchestrator:
        """Return the handle of an orchestrator; cheap, because it is opened on first use.

        Args:
            create: create it if it is missing. A damaged or incomplete one is never recreated.
            viewer: what the holder of the handle may see.
            actor: the name in the journal for changes made through it.

        Raises:
            OrchestratorMissing: it does not exist, and ``create`` is not set.
            InvalidInput: an invalid name of an orchestrator or an actor.
        """
        validated(ActorReason, {"actor": actor})
        paths = OrchestratorPaths(self.root, name)
        if create and _never_made(paths):
            # Another thread or process may be creating it at the same time.
            with suppress(OrchestratorExists):
                self.create(name)
        else:
            self._existing(name)
        # Imported here, so that SQLAlchemy is loaded only with the first database.
        from memgraph.operations.orchestrator import Orchestrator

        return Orchestrator(self, name, viewer=viewer, actor=actor)

    def create(self, name: str) -> None:
        """Create a new orchestrator.

        Raises:
            OrchestratorExists: it exists already.
            DatabaseFull: there is no room for it.
        """
        from memgraph.audit import anchor
        from memgraph.store.journal import JournalHead
        from memgraph.store.stores import store_of

        paths = OrchestratorPaths(self.root, name)
        settings = self.settings(name)
        is_new_here = not paths.logs.exists()
        with naming_full_disk(paths.root):
            paths.make_folders()
            provider, wanted = self.embedding(settings), settings.memory.embedding.dimensions
            dimensions = wanted if provider is None else provider.dimensions
            store = store_of(paths, settings.memory.storage.url)
            try:
                store.create(dimensions=dimensions, now_ms=self.clock.now_ms())
            except OrchestratorExists:
                if is_new_here and settings.memory.storage.url:
                    self._adopt(paths, settings)
                raise
            anchors = settings.memory.audit.anchor_path
            anchor.write(anchor.anchor_path(paths.database, anchors), JournalHead(0, ""))

    def orchestrators(self) -> list[str]:
        """Return the names of all orchestrators, under the root or on its server, sorted.

        Raises:
            StorageError: the server cannot be reached.
        """
        names = set(orchestrator_names(self.root))
        storage = self.settings().memory.storage
        for url in storage.urls:
            server_names = self.stores.names(url)
            if storage.placement:
                # A server may also have orchestrators that are placed elsewhere, such as the
                # remains of a move.
                new = (name for name in server_names if name not in names)
                server_names = [
                    name for name in new if self.settings(name).memory.storage.url == url
                ]
            names.update(server_names)
        return sorted(names)

    def names_known(self, before: Iterable[str]) -> list[str]:
        """Return the names of all orchestrators; if they cannot be listed, those known before.

        Each one that cannot be read reports its own error.
        """
        with suppress(OSError, StorageError):
            if not self.stores.is_any_away:
                return self.orchestrators()
        with suppress(OSError):
            return sorted({*before, *orchestrator_names(self.root)})
        return sorted(before)

    def paths(self, name: str) -> OrchestratorPaths:
        """Return the paths of an orchestrator's files."""
        return OrchestratorPaths(self.root, name)

    def settings(self, name: str | None = None) -> Settings:
        """Return the settings in force, global or for one orchestrator."""
        return load_settings(
            self.root, orchestrator=name, environ=self.environ, overrides=self._config
        )

    def located(self, name: str) -> Location:
        """Return where an orchestrator is by its current settings, which are read if they changed.

        Raises:
            InvalidConfig: its settings cannot be read.
        """
        from memgraph.store.stores import store_of

        # Building a thousand paths takes longer than checking the files.
        known = self._located.get(name)
        if known is not None and known.settings == stamp_of(*known.settings_files):
            return known
        paths = self.paths(name)
        files = (global_config_file(self.root), paths.config_file)
        settings = stamp_of(*files)
        url = self.settings(name).memory.storage.url
        self._located[name] = Location(files, settings, url, store_of(paths, url))
        return self._located[name]

    def health(self, name: str) -> dict[str, Any]:
        """Return the state of an orchestrator's memory: ``{"status": "ready" | "disabled", …}``.

        A database that is missing, damaged or foreign disables the memory of its orchestrator and
        of no other; ``code`` and ``message`` describe the problem. A ready one has ``degraded``,
        the codes of its current problems; ``REMEDIES`` in ``readiness.py`` explains them.
        """
        from memgraph.service.readiness import shortcomings

        try:
            with self.opened(name) as opened:
                opened.require_sound()
                degraded = shortcomings(opened)
        except MemgraphError as error:
            return {"orchestrator": name, "status": "disabled", **error.as_dict()}
        return {"orchestrator": name, "status": "ready", "degraded": degraded}

    def session(self, name: str) -> Session:
        """Open a read-only SQLModel session on an orchestrator's database, for its operator.

        It reads the classes of ``memgraph.model.tables`` and hides nothing, whatever the scope,
        sensitivity or agent; it opens no orchestrator, writes nothing and leaves no receipt. Use
        it as a context manager, or close it. A statement that fails raises SQLAlchemy's errors.

        Raises:
            OrchestratorMissing: it does not exist.
            StorageError: the database is missing, damaged or of another schema.
        """
        from memgraph.store.stores import store_of

        chosen = self.settings(name).memory.storage
        return store_of(self._existing(name), chosen.url).session(chosen)

    def opened(self, name: str) -> AbstractContextManager[OpenOrchestrator]:
        """Yield the open orchestrator for one call; idle ones are closed, oldest first."""
        return self.pool.use(name)

    def worker(self, names: Sequence[str] = ()) -> Worker:
        """Return a worker that runs the jobs of all orchestrators, or of some.

        ``with service.worker():`` works in a thread for as long as the block lasts; see
        ``Worker.run`` for a process of its own.
        """
        from memgraph.service.worker import Worker

        return Worker(self, names=names)

    def session_callbacks(self, name: str) -> SessionCallbacks:
        """Return an orchestrator's callbacks; they stay when it is idle and closed."""
        new = SessionCallbacks(
            lambda error: self.log_of(name).failure("event.callback", error),
            threaded=self.embeds_in_background,
        )
        return self._callbacks.setdefault(name, new)

    def forget(self, name: str) -> None:
        """Close an orchestrator, so that its next use opens the file again.

        Calls in other threads are not disturbed; the last one closes it.
        """
        self.pool.forget(name)

    def write_down(self) -> None:
        """Write pending receipts and refusals while calls go on; ``close`` does so as well."""
        self.pool.write_down()

    def close(self) -> None:
        """Close all open orchestrators. Pending embeddings stay in their outbox.

        Calls in other threads finish and close what they use.
        """
        if "turns" in vars(self):
            self.turns.close()
        self.intake.stop()
        self.stores.close()
        self.pool.close()

    def __enter__(self) -> MemoryService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def turns(self) -> CallersHooks:
        """The hooks of the callers of this service."""
        from memgraph.service.turns.hooks import CallersHooks

        return CallersHooks(self)

    def log_of(self, name: str) -> EventLog:
        """Return the log of an orchestrator; it works even if the orchestrator cannot be opened."""
        from memgraph.service.open_orchestrator import log_of

        return log_of(self.paths(name), self.settings(name), self.clock)

    def _open(self, name: str) -> OpenOrchestrator:
        from memgraph.service.open_orchestrator import OpenOrchestrator
        from memgraph.store.stores import store_of

        settings = self.settings(name)
        if not settings.memory.enabled:
            raise MemoryDisabled(f"memory is disabled for {name!r}: memory.enabled = false")
        paths, chosen = self._existing(name), settings.memory.storage
        database = store_of(paths, chosen.url).open(chosen)
        try:
            opened = OpenOrchestrator(self, paths, settings, database)
            if opened.is_erasing:
                self._finish_erasure(opened)
        except BaseException:
            database.close()
            raise
        if opened.has_backlog:
            opened.background.wake()
        return opened

    def _finish_erasure(self, opened: OpenOrchestrator) -> None:
        """Finish an erasure whose process was killed; on failure it is left to the next open."""
        from memgraph.operations.erasure.erase import finish_on_open

        try:
            finish_on_open(opened)
        except (MemgraphError, OSError) as error:
            opened.log.failure("erasure", error)

    def is_elsewhere(self, opened: OpenOrchestrator) -> bool:
        """Return True if the settings name another store than the open one: it was moved."""
        return self.located(opened.paths.name).url != opened.settings.memory.storage.url

    def _existing(self, name: str) -> OrchestratorPaths:
        paths = OrchestratorPaths(self.root, name)
        if not paths.logs.exists():
            settings = self.settings(name)
            if settings.memory.storage.url:
                self._adopt(paths, settings)
        if not paths.memory.exists():
            raise OrchestratorMissing(
                f"no orchestrator {name!r} here; run: memgraph init {name}", orchestrator=name
            )
        return paths

    def _adopt(self, paths: OrchestratorPaths, settings: Settings) -> None:
        """Create the local folder of an orchestrator that another machine created on the server.

        Do nothing if there is none. The journal's current head becomes its anchor on this machine,
        which detects later changes to entries up to it.
        """
        from memgraph.audit import anchor
        from memgraph.audit.findings import AnchorState
        from memgraph.store import journal
        from memgraph.store.stores import store_of

        store = store_of(paths, settings.memory.storage.url)
        if not store.exists():
            return
        with store.inspect() as snapshot:
            head = journal.head(snapshot)
        paths.make_folders()
        file = anchor.anchor_path(paths.database, settings.memory.audit.anchor_path)
        if anchor.read(file) is AnchorState.MISSING:
            anchor.write(file, head)

    def hold_vectors(self) -> HeldVectors:
        """Return a hold on the vectors that this process keeps in memory."""
        from memgraph.store.vector_cache import VectorCache  # loads numpy

        with self._vector_cache_lock:
            if self._vector_cache is None:
                megabytes = self.settings().memory.storage.vector_cache_mb
                self._vector_cache = VectorCache(megabytes * 1_000_000)
        return self._vector_cache.hold()

    def pair_reader(self, settings: Settings) -> PairReader | None:
        """Return the reader of pairs of an orchestrator's settings."""
        if self._pair_reader is None and settings.memory.comparison.reader == "local":
            from memgraph.providers.pair_reader import LocalPairReader

            self._pair_reader = LocalPairReader()
        return self._pair_reader

    def language_model(self, settings: Settings) -> LanguageModel | None:
        """Return the language model of an orchestrator's settings."""
        from memgraph.operations.life.models import configured_llm

        return self._llm or configured_llm(settings, self.environ)

    def asks_outside(self, name: str) -> bool:
        """Return True if a recall may wait for a model other than the built-in one.

        Raises:
            InvalidInput: an invalid name; InvalidConfig: its settings cannot be read.
        """
        chosen = self.settings(name).memory
        local = chosen.embedding.provider in ("none", "local", "fake")
        return self._embedding is not None or not local

    def embedding(self, settings: Settings) -> EmbeddingProvider | None:
        """Return the embedding model of an orchestrator's settings."""
        if self._embedding is not None:
            from memgraph.providers.local import LocalEmbedding

            own = isinstance(self._embedding, LocalEmbedding)
            return self._embedding if own else CheckedEmbedding(self._embedding)
        chosen = settings.memory.embedding
        if chosen.provider == "none":
            return None
        if chosen not in self._providers:
            self._providers[chosen] = embedding_provider(
                chosen.provider,
                dimensions=chosen.dimensions,
                **options_of(chosen, self.environ),
            )
        return self._providers[chosen]


def _never_made(paths: OrchestratorPaths) -> bool:
    """Return True when there is nothing yet, or only the remains of an unfinished creation.

    Any other file shows that there was a database, which must not be recreated silently.
    """
    if os.path.lexists(paths.database):
        return False
    begun = (paths.config_file.name, "memory.lock", f".{paths.database.name}-")
    return all(
        path.is_dir()
        or path.name.startswith(begun)
        # The log is made with the folders.
        or (path == paths.log_file and not path.stat().st_size)
        for path in paths.memory.rglob("*")
    )
