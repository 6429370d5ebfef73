"""The interfaces that each database engine implements in its own folder.

An ``Engine`` works on snapshots and transactions, a ``Store`` contains one orchestrator, and a
``Database`` is an open store.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from sqlmodel import Session

from memgraph.errors import DatabaseFull, MemoryDisabled, StorageError
from memgraph.store import journal, whole_tables
from memgraph.store.snapshot import Snapshot, Transaction

if TYPE_CHECKING:
    import sqlalchemy as sa

    from memgraph.config.schema import StorageSettings
    from memgraph.model.erasure import ServerTraces
    from memgraph.paths import Stamp
    from memgraph.store.vector_cache import HeldVectors
    from memgraph.store.vector_index import VectorIndex


class DeadlinePassed(Exception):
    """A statement exceeded its deadline; the snapshot is still usable."""


Deadline = Callable[[int], AbstractContextManager[None]]
"""Return a context manager that interrupts its statements after so many milliseconds, and then
raises DeadlinePassed."""


class EngineDamage(NamedTuple):
    """Damage that an engine finds itself: in its pages, in an index, or in a row of a table.

    Attributes:
        part: the part of ``memgraph rebuild`` that repairs it, or None.
        row: (table, number of the row) of a row with a value of a wrong type, or None.
    """

    message: str
    part: Literal["fts", "indexes"] | None = None
    row: tuple[str, int | None] | None = None


RowChange = tuple[str, int, bytes]
"""(counter name of the table, 1 for an added or -1 for a removed row, digest of the row). A changed
row yields both."""


class PhraseIndex(Protocol):
    """Finds memories by phrases and by combinations of words; see ``text_index.matching``.

    It is updated in the same transaction as a memory's text.
    """

    def expression(self, match: str) -> str:
        """Translate an expression of ``text_index.matching`` to the syntax of the engine."""

    def index_texts(self, transaction: Transaction) -> None:
        """Index the texts that the transaction has changed, unless triggers do."""

    def merge(self, transaction: Transaction) -> bool:
        """Merge a part of the additions; return True if there was anything to merge."""

    def rebuild(self, transaction: Transaction) -> None:
        """Rebuild the index from the memories."""

    @property
    def checks_snapshots(self) -> bool:
        """True if ``check`` takes any snapshot; False: only a write transaction."""

    def check(self, snapshot: Snapshot, /) -> bool:
        """Return True if the index agrees with the memories, word by word."""


class Engine(Protocol):
    """The stateless operations of an engine on snapshots and transactions.

    What an engine does not need to do is a method with a body here.
    """

    @property
    def dialect(self) -> sa.Dialect:
        """The SQLAlchemy dialect, which supports the constructs of ``statements``; it uses named
        parameters."""

    @property
    def placeholder(self) -> str:
        """The placeholder of a positional parameter in the engine's own SQL."""

    @property
    def phrases(self) -> PhraseIndex:
        """The index that matches phrases."""

    def vectors(self, snapshot: Snapshot, cache: HeldVectors | None = None) -> VectorIndex:
        """Return the vector index on a snapshot.

        Args:
            cache: this store's vectors in the process's memory; None: there are none.
        """

    def translated_errors(self) -> AbstractContextManager[None]:
        """Translate the driver's errors in the block to errors of ``memgraph.errors``.

        The driver's message is dropped, because it may contain data.
        """

    def deadlines(self, snapshot: Snapshot) -> AbstractContextManager[Deadline]:
        """Return a function that sets deadlines for statements on a snapshot."""

    def thorough(self, transaction: Transaction) -> AbstractContextManager[None]:  # noqa: ARG002
        """Overwrite data that the block deletes, also in indexes, if the engine can."""
        return nullcontext()

    def row_changes(self, transaction: Transaction) -> list[RowChange]:
        """Return the row changes of the transaction since the last call.

        The list is empty for an unwatched store, such as a draft.
        """

    def columns(self, snapshot: Snapshot, table: str) -> tuple[str, ...]:
        """Return the names of a table's columns in the order of their creation."""

    def read_undecodable(self, snapshot: Snapshot) -> None:  # noqa: ARG002
        """Let a snapshot return texts that cannot be decoded as bytes, instead of failing."""
        return

    def damage(self, snapshot: Snapshot) -> list[EngineDamage]:  # noqa: ARG002
        """Return the damage of the engine's own structures."""
        return []

    def reindex(self, transaction: Transaction) -> int:
        """Rebuild the engine's own indexes from their tables; return their number."""

    def dangling(self, snapshot: Snapshot) -> Iterator[tuple[str, int | None, str]]:
        """Yield the violated foreign keys as (table, row number, referenced table)."""

    def schema(self, snapshot: Snapshot) -> dict[str, str]:
        """Return the definition of each table, index and trigger, by ``kind name``."""

    def expected_schema(self) -> dict[str, str]:
        """Return the same definitions for a new store."""

    def is_schema_fault(self, error: StorageError) -> bool:
        """Return True if a statement failed because a table or column differs from the schema."""


LONGER: Final = 6
"""How many times as long as others the writes of a long job wait for their turn."""
_times: ContextVar[int] = ContextVar("times", default=1)


@contextmanager
def patiently() -> Iterator[None]:
    """Let the writes in the block, which are of a long job, wait ``LONGER`` for their turn."""
    token = _times.set(LONGER)
    try:
        yield
    finally:
        _times.reset(token)


def wait_s(busy_timeout_ms: int) -> float:
    """Return how many seconds a write waits for its turn."""
    return _times.get() * busy_timeout_ms / 1000


class Database(ABC):
    """An open store, with concurrent readers and one writer at a time. Thread-safe.

    Attributes:
        commits: the number of transactions that this process has committed.
        is_full: True if the last write failed because the disk is full.
        journal_key: the key of a keyed journal, or None.
    """

    def __init__(self, store: Store, settings: StorageSettings) -> None:
        self.store = store
        self.engine = store.engine
        self.orchestrator_id = store.orchestrator_id
        self.commits = 0
        self.is_full = False
        self.journal_key: bytes | None = None
        self._lock = threading.Lock()
        self._busy_timeout_ms = settings.busy_timeout_ms
        self._folded_at = 0
        self._closed = False

    @abstractmethod
    def read(self) -> AbstractContextManager[Snapshot]:
        """Open a read-only snapshot. Keep it short, and never hold it across a model call.

        Raises:
            StorageError: or the subclass for the specific problem.
        """

    @abstractmethod
    def write(
        self, after_commit: Callable[[], None] | None = None, *, durable: bool = True
    ) -> AbstractContextManager[Transaction]:
        """Open a write transaction, which is committed when the block ends.

        Its changes are counted and sealed in the journal before the commit.

        Args:
            after_commit: called after the commit, before the next writer gets its turn.
            durable: False for data that can be recomputed: the next writer does not wait for the
                disk. A power failure may undo the whole transaction, a crash of the process cannot.

        Raises:
            DatabaseBusy: another writer held the lock for all of ``storage.busy_timeout_ms``, or
                longer in a block that is run ``patiently``.
            StorageError: or another subclass for the specific problem.
        """

    def require_same_store(self) -> None:
        """Raise DatabaseMissing or DatabaseReplaced if the opened store is gone or replaced."""
        return

    @contextmanager
    def _sealed(self, transaction: Transaction) -> Iterator[Transaction]:
        """Index and seal what the block has written."""
        yield transaction
        self.engine.phrases.index_texts(transaction)
        state = whole_tables.update(transaction)
        if state is not None:
            # Journalled transactions have sealed their state before; this one has not.
            journal.append_seal(transaction, state, key=self.journal_key)

    def _committed(self, after_commit: Callable[[], None] | None) -> None:
        self.commits += 1
        if after_commit is not None:
            after_commit()

    @contextmanager
    def _noting_full(self) -> Iterator[None]:
        try:
            yield
        except DatabaseFull:
            self.is_full = True
            raise
        self.is_full = False

    def _is_fold_due(self, after: int) -> bool:
        """Return True after so many commits since it last did."""
        self._require_open()
        if self.commits - self._folded_at < after:
            return False
        self._folded_at = self.commits
        return True

    def _require_open(self) -> None:
        if self._closed:
            raise MemoryDisabled("the orchestrator was closed")

    @abstractmethod
    def fold(self, *, after: int | None = None) -> None:
        """Do the engine's deferred work, concurrently with readers and a writer.

        Args:
            after: do it only after this many transactions since the last time; None: the engine's
                default.
        """

    @abstractmethod
    def cut(self, *, wait_ms: int) -> bool:
        """Remove the remains of deleted rows: a file's log, or a server's dead rows.

        Args:
            wait_ms: how long to wait for readers of an older state; writers are blocked meanwhile.

        Returns:
            True if it finished; False if a reader prevented it, and the next call continues.
        """

    def rewrite(self) -> None:
        """Rewrite the store without the deleted data in its free space."""
        return

    def contents(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield the name and the bytes of each part that is not one of ``Store.files``."""
        return iter(())

    def copies(self, memory_ids: Collection[str]) -> list[str]:  # noqa: ARG002
        """Return the names of saved earlier states, other than files, with one of the memories."""
        return []

    def remove_copy(self, name: str) -> None:  # noqa: ARG002
        """Remove a saved earlier state by its name."""
        return

    def traces(self) -> ServerTraces | None:
        """Return where deleted rows may remain out of the reach of ``cut``; None if nowhere."""
        return None

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Return the size of each part of the store on disk, in bytes."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection."""


class Store(Protocol):
    """The stored data of one orchestrator, or a draft of it, whether open or not."""

    orchestrator_id: str

    @property
    def engine(self) -> Engine: ...

    def files(self) -> tuple[Path, ...]:
        """Return the paths of its files in the orchestrator's folder, which may not exist."""

    def stamp(self) -> Stamp | None:
        """Return a stamp that changes with every write, without a query.

        Return None if that needs a query, because its server is not watched.
        """

    def exists(self) -> bool:
        """Return True if anything exists at its location."""

    def require_free(self) -> None:
        """Raise OrchestratorExists if anything exists at its location."""

    def create(self, *, dimensions: int, now_ms: int) -> None:
        """Create the store, with all tables and no rows.

        Args:
            dimensions: the length of its vectors.
            now_ms: the time of creation, in milliseconds.

        Raises:
            OrchestratorExists: something exists at its location.
        """

    def open(self, settings: StorageSettings) -> Database:
        """Open the store, after checking that it is intact, of this orchestrator and up to date.

        Raises:
            DatabaseMissing, DatabaseEmpty, DatabaseCorrupt, DatabaseForeign: it is missing, empty,
                damaged, or belongs to something else.
            SchemaUnknown: another version of memgraph made it.
        """

    def session(self, settings: StorageSettings) -> Session:
        """Return a read-only session over the classes of ``memgraph.model.tables``.

        Each statement is a separate transaction, so that an idle session keeps no old state alive.

        Raises:
            StorageError: as for ``open``.
        """

    def locked(self) -> AbstractContextManager[Callable[[], None]]:
        """Hold the lock that creating, restoring and writing share.

        The block gets a function that raises StorageError if the lock was lost.

        Raises:
            DatabaseBusy: another process holds the lock.
        """

    def inspect(self) -> AbstractContextManager[Snapshot]:
        """Open a read-only snapshot without checks; damaged texts are decoded as far as possible.

        Raises:
            StorageError: or the subclass for the specific problem.
        """

    def alone(self) -> AbstractContextManager[Transaction]:
        """Open a write transaction on a draft, which is used by nobody else and not watched."""

    def back_up(
        self,
        file: Path,
        *,
        force: bool = False,
        stamp: Callable[[Transaction], None] | None = None,
        check: Callable[[Snapshot], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Copy a consistent state into a file, concurrently with readers and a writer.

        Args:
            force: replace an existing file.
            stamp: called to write into the copy only.
            check: called to examine the copy; when it raises, no file is left.
            progress: called with the amount copied and the total, in the engine's units.

        Returns:
            The size of the file in bytes.

        Raises:
            Conflict: the file exists.
        """

    def draft(self, folder: Path) -> AbstractContextManager[Store]:
        """Create an empty draft of the store; remove it at the end unless it was published.

        Args:
            folder: the folder for the draft's files, if it consists of files.
        """

    def take(self, file: Path) -> str:
        """Fill this draft from a backup; return the SHA-256 of the file.

        Raises:
            DatabaseMissing, DatabaseForeign: the file does not exist or is not a backup.
        """

    def admit(self) -> str:
        """Check this draft; return the name of its orchestrator, which may be another one.

        Raises:
            DatabaseEmpty, DatabaseCorrupt, DatabaseForeign, SchemaUnknown: the draft is refused.
        """

    def publish(
        self, draft: Store, *, aside: Path | None = None, files: Sequence[str] = ()
    ) -> str | None:
        """Replace this store by a draft, while it is ``locked``.

        An interruption leaves no store at all, never half of one.

        Args:
            aside: a new folder for the old store; None: there is no old store.
            files: names of further files in the store's folder to move with it.

        Returns:
            The location of the old store, a folder or the name of a schema; None if there was none.
        """

    def put_aside(self, folder: Path) -> str | None:
        """Move the store into a new folder, or rename it on its server.

        Returns:
            Its new location, a folder or the name of a schema; None if there was no store.
        """
