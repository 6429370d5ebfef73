"""One open orchestrator: its database and its parts. Shared by every handle."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import tzinfo
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from memgraph.audit import anchor
from memgraph.audit.findings import AnchorState
from memgraph.bulletin.board import BulletinBoard
from memgraph.clock import MS_PER_DAY, Clock
from memgraph.config import Settings
from memgraph.config.schema import ReceiptSettings
from memgraph.errors import DatabaseCorrupt, DatabaseReplaced, JournalBroken, MemgraphError
from memgraph.log import EventLog, RotatingFile
from memgraph.operations.read.receipts import ReceiptBook
from memgraph.operations.write import entity_links
from memgraph.operations.write.embedding import EmbeddingWorker, model_mismatch
from memgraph.operations.write.entity_links import EntityLinker, NameFinders
from memgraph.paths import OrchestratorPaths
from memgraph.service.background import BackgroundWork, Stop
from memgraph.store import (
    comparisons,
    embeddings,
    journal,
    metadata,
    postings,
    receipts as receipts_rows,
    whole_tables,
)
from memgraph.store.engine import Database
from memgraph.store.erasure import UNFINISHED_KEY, erased_through
from memgraph.store.journal import JournalHead
from memgraph.store.key_file import journal_key
from memgraph.store.snapshot import JournalledTransaction, Snapshot, Transaction

if TYPE_CHECKING:
    from memgraph.operations.life.models import LanguageModel, ModelMeter
    from memgraph.operations.write.comparisons import ComparisonWorker
    from memgraph.operations.write.writer import Writer
    from memgraph.service.memory_service import MemoryService
    from memgraph.store.vector_cache import HeldVectors

EMBEDDED_AT_ONCE: Final = 2_000
"""The number of memories that are embedded before other background work runs."""
COMPARED_AT_ONCE: Final = 16
"""The number of memories that are compared before other background work runs."""
JUDGED_AT_ONCE: Final = 8
"""The number of facts that a model judges before other background work runs."""


class OpenOrchestrator:
    """The database, workers and caches of one orchestrator, created when it is opened."""

    def __init__(
        self,
        service: MemoryService,
        paths: OrchestratorPaths,
        settings: Settings,
        database: Database,
    ) -> None:
        self._service = service
        self.paths = paths
        self.database = database
        self.settings = settings
        database.journal_key = journal_key(settings.memory.audit.key_file, paths.root)
        self.clock = clock = service.clock
        self.ids = service.ids
        self.callbacks = service.session_callbacks(paths.name)
        self.embedding = embedding = service.embedding(settings)
        self.pair_reader = service.pair_reader(settings)
        self.meters = service.meters
        self.naming = NameFinders(settings, entity_links.find_names, lambda: self.llm)
        self.find_names = self.naming.find
        # Both are shared by all orchestrators of the process: a recall is CPU-bound, and Python
        # runs one thread at a time.
        self.turns = service.recall_turns
        self.recalls = service.recalls
        self._held_vectors: HeldVectors | None = None
        self._held_lock = threading.Lock()
        # Both are the pool's, under its lock.
        self.users = 0
        self.retired = False
        self.worker = EmbeddingWorker(database, embedding, clock)
        self.log = log_of(paths, settings, clock)
        self.upkeep = Housekeeping(database, clock, settings.memory.receipts)
        self.receipts = ReceiptBook(
            database,
            self.recalls,
            self._restore_used,
            with_queries=settings.memory.receipts.query_text,
        )
        self.background = BackgroundWork(
            (
                self.receipts.flush_in_steps,
                lambda _: self.board.flush(),
                self._embed,
                self._compare,
                self.upkeep.run,
                lambda _: self.database.fold(),
                self._judge,
            ),
            self._background_failed,
            threaded=service.embeds_in_background,
        )
        self.board = BulletinBoard(
            database,
            settings.memory.bulletin,
            folder=paths.bulletins,
            log=self.log,
            erased=lambda: paths.erased,
            zone=ZoneInfo(settings.memory.schedule.timezone),
        )
        with database.read() as snapshot:
            self.other_model = model_mismatch(snapshot, embedding)
            self.has_backlog = embeddings.has_pending(snapshot) or comparisons.has_waiting(snapshot)
            through = erased_through(snapshot)
            self.is_erasing = metadata.get(snapshot, UNFINISHED_KEY) is not None
        self.receipts.erased_through = through
        if self.other_model is not None:
            # Until then, recall uses only text.
            rebuild = f"memgraph embed {paths.name} --rebuild"
            self.log.warning("embedding.model_changed", stored=self.other_model, rebuild=rebuild)

    def _embed(self, stop: Stop) -> bool:
        return self.worker.drain(limit=EMBEDDED_AT_ONCE, stop=stop).ready >= EMBEDDED_AT_ONCE

    def _compare(self, stop: Stop) -> bool:
        compared = self.comparer.compare(limit=COMPARED_AT_ONCE, stop=stop).compared
        return compared >= COMPARED_AT_ONCE

    def _judge(self, stop: Stop) -> bool:
        return self.comparer.judge(limit=JUDGED_AT_ONCE, stop=stop).judged >= JUDGED_AT_ONCE

    @cached_property
    def comparer(self) -> ComparisonWorker:
        """The worker that compares the memories in the outbox."""
        # Imported late: a process that only reads does not need it.
        from memgraph.operations.write.comparisons import ComparisonWorker

        return ComparisonWorker(self)

    @cached_property
    def zone(self) -> tzinfo:
        """The time zone of the dates in blocks and contexts."""
        schedule = self.settings.memory.schedule
        is_set = "timezone" in schedule.model_fields_set
        return ZoneInfo(schedule.timezone) if is_set else self._service.zone

    @property
    def held_vectors(self) -> HeldVectors:
        """The vectors kept in memory for recall; loaded on first use."""
        with self._held_lock:
            if self._held_vectors is None:
                self._held_vectors = self._service.hold_vectors()
            return self._held_vectors

    def _require_key(self, snapshot: Snapshot) -> None:
        key = self.database.journal_key
        if key is not None and not journal.is_keyed(snapshot, key):
            raise JournalBroken(
                "the journal's last entry is not sealed with the key of memory.audit.key_file;"
                f" nothing is written until: memgraph repair {self.paths.name} --accept REASON"
            )

    @cached_property
    def _moving(self) -> str:
        # Every write looks for it: building its path would take longer.
        return os.fspath(self.paths.moving)

    @cached_property
    def anchor_file(self) -> Path:
        """The file that holds the journal's head."""
        return anchor.anchor_path(self.paths.database, self.settings.memory.audit.anchor_path)

    @cached_property
    def llm(self) -> LanguageModel | None:
        """The language model of ``memory.llm``; without one, rules and the local model are used."""
        model = self._service.language_model(self.settings)
        return None if model is None else replace(model, meter=self.model_meter)

    @cached_property
    def model_meter(self) -> ModelMeter:
        """The counts of what language models use."""
        # Imported late: a process that only reads does not need it.
        from memgraph.operations.life.models import ModelMeter

        return ModelMeter(
            self.database,
            clock=self.clock,
            log=self.log,
            meters=self.meters,
            monthly_tokens=self.settings.memory.llm.monthly_tokens,
        )

    @cached_property
    def writer(self) -> Writer:
        # Imported late: a process that only reads does not need them.
        from memgraph.operations.write.writer import Writer

        return Writer(
            orchestrator_id=self.database.orchestrator_id,
            ids=self.ids,
            find_names=self.find_names,
            inferred_decay_rate=self.settings.memory.decay.rate,
            linker=EntityLinker(self.ids, self.naming),
            reads_pairs=self.pair_reader is not None,
            asks_model=self.llm is not None,
        )

    @contextmanager
    def transaction(
        self, actor: str, *, accepting: bool = False
    ) -> Iterator[JournalledTransaction]:
        """Open a write transaction, journalled with its entries, and anchored once it is durable.

        Args:
            accepting: accept the current state of the journal and the tables as correct.

        Raises:
            JournalBroken: the journal lacks the entry in its anchor.
        """
        heads: list[JournalHead] = []
        path = self.anchor_file

        def after_commit() -> None:
            if not heads:
                return
            try:
                anchor.write(path, heads[-1])
            except OSError as error:
                # The change is durable; a stale anchor is not damage.
                self.log.failure("journal.anchor", error)

        with self.meters.timed("write"), self._writing(after_commit) as transaction:
            anchored = anchor.read(path)
            if accepting:
                anchor_state = anchor.compare(transaction, anchored, path)
            else:
                anchor_state = anchor.require_held(transaction, anchored, path, self.paths.name)
                self._require_key(transaction)
            transaction = JournalledTransaction(transaction, self.clock.now_ms(), actor)
            yield transaction
            if transaction.entries:
                digest = whole_tables.renew if accepting else whole_tables.update
                head = journal.append(
                    transaction,
                    transaction.entries,
                    at=transaction.at,
                    actor=actor,
                    state=digest(transaction),
                    key=self.database.journal_key,
                )
                if anchor_state is AnchorState.AGREES:
                    heads.append(head)
                elif not accepting:
                    # Advancing the anchor would hide that the journal was manipulated.
                    self.log.failure(
                        "journal.anchor", JournalBroken(f"the anchor is {anchor_state}")
                    )
        self.callbacks.announce(transaction.completed_sessions)

    @contextmanager
    def _writing(self, after_commit: Callable[[], None]) -> Iterator[Transaction]:
        with ExitStack() as stack:
            with self.meters.timed("write", "wait"):
                transaction = stack.enter_context(self.database.write(after_commit))
            # A move that was killed may have left its record, and the old store in its place.
            if os.path.lexists(self._moving) and self._service.is_elsewhere(self):
                raise DatabaseReplaced(f"{self.paths.name} was moved to another store; try again")
            yield transaction

    def _background_failed(self, error: MemgraphError) -> None:
        self.log.failure("background", error)
        if isinstance(error, DatabaseCorrupt):
            self._service.pool.failed(self.paths.name, error)

    def _restore_used(self, used: Mapping[str, int]) -> None:
        # Imported late: a process that only reads does not need it.
        from memgraph.operations.write.changes import restore_used

        with self.transaction("decay") as transaction:
            restore_used(transaction, used, self.settings.memory.decay)

    def require_sound(self) -> None:
        """Check that the database file is the one that was opened and that no damage is known.

        An open orchestrator continues to read a removed file, but does not write to it.

        Raises:
            StorageError: the file is missing or was replaced, or a call found damage in it.
            JournalBroken: acknowledged journal entries are missing.
        """
        self.database.require_same_store()
        # Opening a file does not read all of it: a later call may have found damage.
        if damage := self._service.pool.failure(self.paths.name):
            raise damage
        anchored = anchor.read(self.anchor_file)
        with self.database.read() as snapshot:
            anchor.require_held(snapshot, anchored, self.anchor_file, self.paths.name)
            self._require_key(snapshot)

    def write_down(self) -> None:
        """Flush all buffers to the database; on failure, log it and keep the data."""
        for flush in (self.board.flush, self.receipts.flush):
            self._try(flush)

    def forget_texts(self) -> None:
        """Drop cached texts after an erasure."""
        self.board.forget()
        # Loaded only in processes that recall.
        if texts := sys.modules.get("memgraph.retrieval.texts"):
            texts.forget()

    def _try(self, chore: Callable[[], object]) -> None:
        try:
            chore()
        except (MemgraphError, OSError) as error:
            self.log.failure("close", error)

    def close(self) -> None:
        """Flush all buffers and close the database, even if a flush fails."""
        try:
            self.background.stop()
            self.write_down()
            # A process that only read must not change anything.
            if self.database.commits:
                self._try(self.upkeep.run)
        finally:
            try:
                if self._held_vectors is not None:
                    self._held_vectors.close()
            finally:
                self.database.close()


def log_of(paths: OrchestratorPaths, settings: Settings, clock: Clock) -> EventLog:
    """Return the log of an orchestrator; it works even if the orchestrator cannot be opened."""
    level, file = settings.memory.log.level, RotatingFile(paths.log_file)
    return EventLog(file, clock, level=level, orchestrator=paths.name)


# Each commit leaves a segment of the text index; SQLite itself merges sixteen of equal size.
COMMITS_BETWEEN_MERGES: Final = 64
# The pause between merges, for other writers; one merge takes about 2 ms.
GIVE_WAY_S: Final = 0.004
MOST_MERGES: Final = 32

REMOVE_EVERY_MS: Final = 10 * 60 * 1_000
# With about twenty items each, this takes some milliseconds.
RECEIPTS_AT_ONCE: Final = 100
KEEP_RECEIPTS: Final = 50_000
"""The number of receipts kept, the newest ones."""


class Housekeeping:
    """Does periodic upkeep in small steps, each in a short transaction."""

    def __init__(self, database: Database, clock: Clock, receipts: ReceiptSettings) -> None:
        self._database = database
        self._receipts = receipts
        self._clock = clock
        self._merged_at = database.commits
        # The first run merges, because other processes may have written before.
        self._postings_at = self._merged_at
        self._removes_at = 0

    def run(self, stop: Stop = lambda: False) -> None:
        """Do all upkeep that is due.

        Raises:
            StorageError: the database failed.
        """
        self._merge(stop)
        if self._database.commits >= self._postings_at:
            self._postings_at = self._database.commits + COMMITS_BETWEEN_MERGES
            postings.merge(self._database, stop)
        now = self._clock.now_ms()
        if now >= self._removes_at:
            self._removes_at = now + REMOVE_EVERY_MS
            self._remove_receipts(now, stop)

    def _merge(self, stop: Stop) -> None:
        if self._database.commits - self._merged_at < COMMITS_BETWEEN_MERGES:
            return
        for _ in range(MOST_MERGES):
            with self._database.write(durable=False) as transaction:
                more = transaction.engine.phrases.merge(transaction)
            if not more:
                self._merged_at = self._database.commits
                return
            if stop():
                return
            time.sleep(GIVE_WAY_S)

    def _remove_receipts(self, now: int, stop: Stop) -> None:
        since = max(now - int(self._receipts.keep_days * MS_PER_DAY), 0)
        while not stop():
            with self._database.read() as snapshot:
                if not receipts_rows.has_old(snapshot, keep=KEEP_RECEIPTS, since=since):
                    return
            with self._database.write(durable=False) as transaction:
                receipts_rows.remove_old(
                    transaction, keep=KEEP_RECEIPTS, since=since, limit=RECEIPTS_AT_ONCE
                )
                receipts_rows.remove_bulletins(transaction, RECEIPTS_AT_ONCE)
            time.sleep(GIVE_WAY_S)
