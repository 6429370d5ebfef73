"""A ``memgraph.store.engine.Store`` in an SQLite file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from memgraph.errors import DatabaseForeign
from memgraph.paths import Stamp, stamp_of
from memgraph.store.engine import SchemaUpgrade, Store
from memgraph.store.files import draft_beside, publish
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.sqlite import copies, provision
from memgraph.store.sqlite.database import SqliteDatabase
from memgraph.store.sqlite.engine import ENGINE

if TYPE_CHECKING:
    from sqlmodel import Session

    from memgraph.config.schema import StorageSettings


class SqliteStore:
    """The file of one orchestrator, or a draft of it.

    Args:
        path: the path of the file; its WAL and its lock file are in the same folder.
    """

    engine = ENGINE

    def __init__(self, path: Path, orchestrator_id: str) -> None:
        self.path = path
        self.orchestrator_id = orchestrator_id

    def files(self) -> tuple[Path, ...]:
        side_files = (
            self.path.with_name(f"{self.path.name}{suffix}") for suffix in ("-wal", "-shm")
        )
        return self.path, *side_files

    def stamp(self) -> Stamp | None:
        return stamp_of(self.path, self.path.with_name(f"{self.path.name}-wal"))

    def exists(self) -> bool:
        return os.path.lexists(self.path)

    def require_free(self) -> None:
        provision.require_free(self.path)

    def create(self, *, dimensions: int, now_ms: int) -> None:
        provision.create(self.path, self.orchestrator_id, dimensions=dimensions, now_ms=now_ms)

    def open(self, settings: StorageSettings) -> SqliteDatabase:
        return provision.open_database(
            self.path,
            self.orchestrator_id,
            synchronous=settings.synchronous,
            busy_timeout_ms=settings.busy_timeout_ms,
        )

    def session(self, settings: StorageSettings) -> Session:
        return provision.reading_session(
            self.path, self.orchestrator_id, busy_timeout_ms=settings.busy_timeout_ms
        )

    def upgrade(
        self, *, first: Callable[[], None] = lambda: None, key: bytes | None = None
    ) -> SchemaUpgrade:
        return provision.upgrade(self.path, self.orchestrator_id, first=first, key=key)

    @contextmanager
    def locked(self) -> Iterator[Callable[[], None]]:
        with provision.provisioning_lock(self.path):
            # A file lock cannot be lost while the process that holds it lives.
            yield lambda: None

    def inspect(self) -> AbstractContextManager[Snapshot]:
        return provision.inspected(self.path)

    def alone(self) -> AbstractContextManager[Transaction]:
        return provision.alone(self.path)

    def back_up(
        self,
        file: Path,
        *,
        force: bool = False,
        stamp: Callable[[Transaction], None] | None = None,
        check: Callable[[Snapshot], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        return copied(
            lambda draft: copies.copy_online(self.path, draft, progress),
            file,
            force=force,
            stamp=stamp,
            check=check,
        )

    @contextmanager
    def draft(self, folder: Path) -> Iterator[Store]:
        # No orchestrator's name begins with a dot.
        with TemporaryDirectory(prefix=".draft-", dir=folder) as directory:
            yield SqliteStore(Path(directory) / self.path.name, self.orchestrator_id)

    def take(self, file: Path) -> str:
        if file.with_name(file.name + "-wal").exists():
            raise DatabaseForeign(
                f"{file} has a WAL, so it is a database in use, not a backup; run: memgraph backup",
                path=str(file),
            )
        copies.copy_file(file, self.path)
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def admit(self, *, of_any: bool, key: bytes | None) -> str:
        return provision.admit(self.path, None if of_any else self.orchestrator_id, key=key)

    def publish(
        self, draft: Store, *, aside: Path | None = None, files: Sequence[str] = ()
    ) -> str | None:
        assert isinstance(draft, SqliteStore)
        copies.use_wal(draft.path)
        moved = [] if aside is None else copies.move_aside(self.path, aside, files)
        publish(draft.path, self.path, force=False)
        return str(aside) if moved else None

    def put_aside(self, folder: Path) -> str | None:
        return str(folder) if copies.move_aside(self.path, folder) else None


def copied(
    copy: Callable[[Path], None],
    file: Path,
    *,
    force: bool,
    stamp: Callable[[Transaction], None] | None,
    check: Callable[[Snapshot], None] | None,
) -> int:
    """Make a backup file, filled by ``copy``, and return its size; see ``engine.Store.back_up``."""
    with draft_beside(file) as draft:
        try:
            copy(draft)
            if stamp is not None:
                with provision.alone(draft) as transaction:
                    stamp(transaction)
            if check is not None:
                with provision.inspected(draft) as snapshot:
                    check(snapshot)
            size = draft.stat().st_size
            publish(draft, file, force=force)
        finally:
            copies.remove_side_files(draft)
    return size
