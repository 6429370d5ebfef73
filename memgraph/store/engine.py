"""The port of a database engine beside SQL; each implements it in its own folder.

An ``Engine`` works on snapshots and transactions of its kind, a ``Store`` is what it keeps of one
orchestrator, a ``Database`` is a store that is open. Its indexes are in ``ports``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from memgraph.errors import InvalidConfig

if TYPE_CHECKING:
    import sqlalchemy as sa
    from sqlmodel import Session

    from memgraph.config.schema import StorageSettings
    from memgraph.errors import StorageError
    from memgraph.model.erasure import ServerTraces
    from memgraph.paths import OrchestratorPaths, Stamp
    from memgraph.store.ports import HeldVectors, PhraseIndex, TextIndex, VectorCache, VectorIndex
    from memgraph.store.snapshot import Snapshot, Transaction
    from memgraph.store.sqlite.delta import Delta


class Constraint(StrEnum):
    """A constraint that a row may violate."""

    UNIQUE = "unique"
    FOREIGN_KEY = "foreign_key"
    CHECK = "check"
    NOT_NULL = "not_null"


class ConstraintViolated(Exception):
    """A row that the database refuses; ``constraint`` None: the engine does not name it."""

    def __init__(self, constraint: Constraint | None) -> None:
        super().__init__(constraint)
        self.constraint = constraint


class DeadlinePassed(Exception):
    """A statement exceeded its deadline; the snapshot can still be read."""


class EngineDamage(NamedTuple):
    """Damage of an engine's own structures. ``of_index``: it can be rebuilt."""

    message: str
    of_index: bool


class SchemaUpgrade(NamedTuple):
    """Schema revisions before and after.

    ``sealed_at`` is the number of the journal's entry that records the state of all tables after
    the upgrade; None: there was no need of one.
    """

    before: str
    after: str
    sealed_at: int | None


RowChange = tuple[str, int, bytes]
"""The name under which a table's rows are counted, 1 for a row that came or -1 for one that went,
and its digest; a changed row did both."""


class Engine(Protocol):
    """The operations of an engine on snapshots and transactions. It has no state."""

    @property
    def dialect(self) -> sa.Dialect:
        """SQLAlchemy's dialect with the constructs of ``statements``; values are named."""

    @property
    def placeholder(self) -> str:
        """The placeholder of a positional value in the engine's own SQL."""

    @property
    def keeps_temporary_tables(self) -> bool:
        """Return True where a snapshot may fill tables of its session."""

    @property
    def texts(self) -> TextIndex:
        """The index that ranks texts."""

    @property
    def phrases(self) -> PhraseIndex:
        """The index that finds phrases."""

    def vectors(self, snapshot: Snapshot, cache: HeldVectors | None = None) -> VectorIndex:
        """Return the vector index on a snapshot.

        Args:
            cache: the vectors of this store that the process keeps; None: it keeps none.
        """

    def vector_cache(self, capacity: int) -> VectorCache:
        """Return a cache for the vectors of many stores, with a capacity in bytes."""

    def translated_errors(self) -> AbstractContextManager[None]:
        """Raise everything that the driver raises inside as an error of ``memgraph.errors``.

        Its text is not repeated: it may hold data.
        """

    def deadline(self, snapshot: Snapshot, ms: int) -> AbstractContextManager[None]:
        """Interrupt statements inside after ``ms``.

        Raises:
            DeadlinePassed: one was interrupted.
        """

    def insert_each(
        self, transaction: Transaction, statement: str, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Execute a statement for each mapping of values, all of them or none.

        Raises:
            ConstraintViolated: the database refuses one; the transaction goes on.
        """

    def thorough(self, transaction: Transaction) -> AbstractContextManager[None]:
        """Overwrite data that is deleted inside the block, in indexes too, if the engine can."""

    def row_changes(self, transaction: Transaction) -> list[RowChange]:
        """Return the row changes of the transaction since the last call.

        Empty where nothing watches it: in a store that nobody else uses.
        """

    def columns(self, snapshot: Snapshot, table: str) -> tuple[str, ...]:
        """Return the names of a table's columns in the order in which they were made."""

    def damage(self, snapshot: Snapshot) -> list[EngineDamage]:
        """Return damage of the engine's own structures; empty: none."""

    def dangling(self, snapshot: Snapshot) -> Iterator[tuple[str, int | None, str]]:
        """Yield (table, number of the row, the table it refers to) of references to nothing."""

    def schema(self, snapshot: Snapshot) -> dict[str, str]:
        """Return the definition of each table, index and trigger, by ``kind name``."""

    def expected_schema(self) -> dict[str, str]:
        """Return the same of a new store."""

    def is_schema_fault(self, error: StorageError) -> bool:
        """Return whether a statement failed because a table or column is not as expected."""


class Database(Protocol):
    """A store that is open: one writer at a time, readers beside it. Thread-safe.

    Attributes:
        commits: how many transactions this process has written.
        is_full: whether the last write found no room.
        journal_key: of a keyed journal; None: it has none.
    """

    commits: int
    is_full: bool
    journal_key: bytes | None

    @property
    def engine(self) -> Engine: ...

    @property
    def orchestrator_id(self) -> str: ...

    @property
    def store(self) -> Store: ...

    def read(self) -> AbstractContextManager[Snapshot]:
        """Open a read-only snapshot. Keep it short, and never hold it across a model call.

        Raises:
            StorageError: or the subclass that says what is wrong.
        """

    def write(
        self, after_commit: Callable[[], None] | None = None, *, durable: bool = True
    ) -> AbstractContextManager[Transaction]:
        """One transaction: all of it is durable when the block ends, or none of it happened.

        What it changed is counted and sealed in the journal before it is committed.

        Args:
            after_commit: runs once it is committed, before the next writer gets its turn.
            durable: False for what can be made again: the next writer does not wait for the disk;
                a power failure may undo the transaction as a whole, a crash of a process may not.

        Raises:
            DatabaseBusy: another writer held it for all of ``storage.busy_timeout_ms``.
            StorageError: or another subclass that says what is wrong.
        """

    def require_same_store(self) -> None:
        """Raise DatabaseMissing, DatabaseReplaced: the opened store is not there any more."""

    def fold(self, *, after: int | None = None) -> None:
        """Do the engine's deferred work, beside readers and a writer.

        Args:
            after: only when so many transactions were written since; None: a usual number.
        """

    def cut(self, *, wait_ms: int) -> bool:
        """Remove what the store keeps of deleted rows: a file's log, a server's dead rows.

        Args:
            wait_ms: for so long it waits for readers of an older state, with no writer beside it.

        Returns:
            Whether no reader was in the way; if one was, the next call goes on.
        """

    def rewrite(self) -> None:
        """Rewrite the store without the data in its free space."""

    def contents(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield the name and the bytes of each part that is no file of ``Store.files``."""

    def copies(self, memory_ids: Collection[str]) -> list[str]:
        """Return the earlier states that are no files and have one of these memories, by name."""

    def remove_copy(self, name: str) -> None:
        """Remove an earlier state."""

    def traces(self) -> ServerTraces | None:
        """Return where deleted rows may live on beyond the reach of ``cut``; None: nowhere."""

    def sizes(self) -> dict[str, int]:
        """Return the bytes on disk of each part of the store."""

    def close(self) -> None:
        """Close every connection."""


class Store(Protocol):
    """The files of one orchestrator, or of a draft of it; open or not."""

    @property
    def engine(self) -> Engine: ...

    def files(self) -> tuple[Path, ...]:
        """Return the files below the orchestrator's folder that it consists of, there or not."""

    def stamp(self) -> Stamp | None:
        """Return a stamp that changes with every write, without a query.

        None: only a query could say, and its ``Server`` is not watched.
        """

    def exists(self) -> bool:
        """Return whether something exists at its location."""

    def require_free(self) -> None:
        """Raise OrchestratorExists: there is something in its place, whatever it is."""

    def create(self, *, dimensions: int, now_ms: int) -> None:
        """Make it, with all tables and no rows.

        Raises:
            OrchestratorExists: there is something in its place, whatever it is.
        """

    def open(self, settings: StorageSettings) -> Database:
        """Open it, after checking that it is whole, of this orchestrator and at head.

        Raises:
            DatabaseMissing, DatabaseEmpty, DatabaseCorrupt, DatabaseForeign: what is wrong with it.
            SchemaOutdated, SchemaTooNew: made by an older or a newer version of memgraph.
        """

    def session(self, settings: StorageSettings) -> Session:
        """Return a read-only session over the classes of ``memgraph.model.tables``.

        Each statement is a transaction by itself, so that an idle session holds no old state.

        Raises:
            StorageError: as ``open`` does.
        """

    def upgrade(
        self, *, first: Callable[[], None] = lambda: None, key: bytes | None = None
    ) -> SchemaUpgrade:
        """Bring its schema to head.

        Args:
            first: called when there is something to do, before it is done and while nobody writes.
            key: of a keyed journal.

        Raises:
            SchemaTooNew: made by a newer version of memgraph.
        """

    def locked(self) -> AbstractContextManager[Callable[[], None]]:
        """Hold the lock that creating, upgrading, restoring and writing share.

        Yields a function that raises StorageError when the lock was lost meanwhile.

        Raises:
            DatabaseBusy: another process holds it.
        """

    def inspect(self) -> AbstractContextManager[Snapshot]:
        """Open a read-only snapshot of it, damaged or not; damaged texts are shown as they can be.

        Raises:
            StorageError: or the subclass that says what is wrong.
        """

    def alone(self) -> AbstractContextManager[Transaction]:
        """Open a write transaction on a draft, which nobody else uses and nothing watches."""

    def back_up(
        self,
        file: Path,
        *,
        force: bool = False,
        stamp: Callable[[Transaction], None] | None = None,
        check: Callable[[Snapshot], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Copy one state of it into a file, beside readers and a writer.

        Args:
            force: replace an existing file.
            stamp: writes into the copy alone.
            check: looks at the copy; when it raises, no file is left.
            progress: called with what is copied and what there is in all, in the engine's units.

        Returns:
            The size of the file, bytes.

        Raises:
            Conflict: the file exists.
        """

    def position(self) -> int:
        """Return from where ``delta`` has to look in a store whose copy is made after this call."""

    def delta(self, copy: Path, since: int) -> AbstractContextManager[Delta]:
        """Collect what one state of it has that a draft of it has not, beside a writer.

        The copy follows when the block ends without an error.

        Args:
            copy: of the draft.
            since: the ``position`` from before the copy was made, or followed last.

        Raises:
            SchemaOutdated, SchemaTooNew: its schema is not at head.
            DatabaseCorrupt: when the block ends: the rows of the copy would not have the digests
                of the store.
        """

    def draft(self, folder: Path) -> AbstractContextManager[Store]:
        """Give an empty draft of the store, which is removed at the end unless it was published.

        Args:
            folder: for what the draft consists of, where it consists of files.
        """

    def take(self, file: Path) -> str:
        """Fill this draft from a backup; return the SHA-256 of the file.

        Raises:
            DatabaseMissing, DatabaseForeign: there is no file, or it is no backup.
        """

    @property
    def copy(self) -> Path:
        """Return the file that this draft was filled from, or consists of."""

    def follow(self, delta: Delta) -> None:
        """Bring this draft to the state that its copy follows to.

        Raises:
            DatabaseCorrupt: its rows would not have the digests of the store.
        """

    def admit(self, *, of_any: bool, key: bytes | None) -> str:
        """Check this draft and upgrade it to head; return the name of its orchestrator.

        Args:
            of_any: accept a backup of another orchestrator.
            key: of a keyed journal.

        Raises:
            DatabaseEmpty, DatabaseCorrupt, DatabaseForeign, SchemaTooNew: why it is refused.
        """

    def publish(
        self, draft: Store, *, aside: Path | None = None, files: Sequence[str] = ()
    ) -> str | None:
        """Put a draft in the place of this store, while it is ``locked``.

        What is interrupted leaves a store that is missing, never half of one.

        Args:
            aside: a new folder that takes what was there; None: nothing is there.
            files: names of files in the store's folder that belong to it, and go with it.

        Returns:
            Where what was there is now: the folder, or the name of a schema; None: nothing was.
        """

    def put_aside(self, folder: Path) -> str | None:
        """Put what is there into a new folder, or under another name on its server.

        Returns:
            Where it is now: the folder, or the name of a schema; None: nothing was there.
        """


class Server(Protocol):
    """A server's database with the stores of many orchestrators.

    Attributes:
        stamps: of each orchestrator that its user may read, when it was last looked at; what
            ``Store.stamp`` returns meanwhile.
    """

    stamps: dict[str, Stamp]

    def look(self) -> set[str]:
        """Bring the stamps up to date; return the names of those that changed.

        Raises:
            StorageError: the server cannot be asked.
        """

    def close(self) -> None:
        """Give its connections back."""


def server_of(url: str) -> Server:
    """Return the server of a ``memory.storage.url`` that is not empty; nothing is opened.

    Raises:
        InvalidConfig: it is no address of one.
        ExtraMissing: the extra of its engine is not installed.
    """
    from memgraph.store.postgres import checked_url
    from memgraph.store.postgres.stores import PostgresStores

    return PostgresStores(checked_url(url))


def store_of(paths: OrchestratorPaths, url: str = "") -> Store:
    """Return the store of an orchestrator; nothing is opened.

    Args:
        url: ``memory.storage.url``; empty: it is a file.

    Raises:
        InvalidConfig: there is a file, and a server is named.
        ExtraMissing: the extra of the server's engine is not installed.
    """
    if url:
        if paths.database.exists() and not paths.moving.exists():
            raise InvalidConfig(
                f"memory.storage.url names a server, but {paths.name} lies in a file; empty the"
                " setting for it",
                field="memory.storage.url",
            )
        from memgraph.store.postgres import checked_url
        from memgraph.store.postgres.stores import PostgresStore

        return PostgresStore(checked_url(url), paths.name)
    from memgraph.store.sqlite.stores import SqliteStore

    return SqliteStore(paths.database, paths.name)
