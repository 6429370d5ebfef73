"""Operations that copy all data: exports and backups."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memgraph.clock import iso
from memgraph.errors import Conflict, DatabaseCorrupt, StorageError
from memgraph.model.operation import F, Progress, local, untold
from memgraph.model.values import Value
from memgraph.operations.handle import Handle
from memgraph.operations.write.embedding import MODEL_KEY
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import embeddings, export, metadata
from memgraph.store.erasure import UNFINISHED_KEY
from memgraph.store.files import draft_beside, publish
from memgraph.store.snapshot import Snapshot

if TYPE_CHECKING:
    from memgraph.operations.maintenance.maintenance import BackupReport

FORMAT = "memgraph-export"
VERSION = 1
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class ExportReport(Value):
    """A finished export.

    Attributes:
        records: the number of lines by kind.
        sha256: the digest of the file.
    """

    orchestrator: str
    path: Path
    records: dict[str, int]
    sha256: str


def _header(opened: OpenOrchestrator, snapshot: Snapshot, with_vectors: bool) -> dict[str, Any]:
    model = metadata.get(snapshot, MODEL_KEY)
    dimensions = embeddings.index(snapshot).dimensions
    embedding = {"model": model, "dimensions": dimensions} if with_vectors else None
    return {
        "record": "header",
        "format": FORMAT,
        "version": VERSION,
        "orchestrator": opened.database.orchestrator_id,
        "schema": metadata.SCHEMA_HEAD,
        "exported_at": iso(opened.clock.now_ms()),
        "embedding": embedding,
    }


def _records(snapshot: Snapshot, with_vectors: bool) -> Iterator[bytes]:
    for record in export.EXPORTED:
        if record == "embedding" and not with_vectors:
            continue
        try:
            for row in export.exported(snapshot, record):
                yield _line({"record": record, **row})
        except ValueError as error:
            raise DatabaseCorrupt(
                f"a stored {record} cannot be exported; run: memgraph verify", what=record
            ) from error


def _line(value: dict[str, Any]) -> bytes:
    return _encode(value).encode() + b"\n"


class Exchange(Handle[F], group="exchange"):
    """Exports and backs up all data: ``orc.exchange``."""

    @local
    def export(
        self,
        target: str | Path,
        *,
        force: bool = False,
        with_vectors: bool = False,
        progress: Progress = untold,
    ) -> ExportReport:
        """Write ``export_lines`` to a file of mode 600, atomically.

        Args:
            force: replace an existing file.
            progress: called with ``lines`` and, twice, their number so far; every thousand lines.

        Raises:
            Conflict: the file exists, or an erasure is unfinished.
        """
        target = Path(target).expanduser().absolute()
        counts: dict[str, int] = {}
        digest = hashlib.sha256()
        with draft_beside(target) as draft:
            with draft.open("wb") as file:
                for place, line in enumerate(self.export_lines(with_vectors=with_vectors)):
                    file.write(line)
                    digest.update(line)
                    kind = line[11 : line.index(b'"', 11)].decode()
                    counts[kind] = counts.get(kind, 0) + 1
                    if place % 1_000 == 0:
                        progress("lines", place, place)
            publish(draft, target, force=force)
        for frame in ("header", "end"):
            del counts[frame]
        return ExportReport(
            orchestrator=self.name, path=target, records=counts, sha256=digest.hexdigest()
        )

    def export_lines(self, *, with_vectors: bool = False) -> Iterator[bytes]:
        """Yield all data of every sensitivity as JSON Lines, from one snapshot.

        A line is a JSON object: ``record`` names its kind, every other field is a column of its
        table. Times are milliseconds since 1970. Ids stand for internal keys.

        The snapshot stays open until the last line is read, so do not pause between lines for long.

        Args:
            with_vectors: include embeddings.

        Raises:
            Conflict: an erasure is unfinished.
            DatabaseCorrupt: a row has a value that cannot be exported.
        """
        with self._service.opened(self.name) as opened:
            try:
                opened.receipts.flush()
            except StorageError as error:
                # An export must also work for a database that cannot be written to.
                opened.log.failure("export.receipts", error)
            with opened.database.read() as snapshot:
                if metadata.get(snapshot, UNFINISHED_KEY) is not None:
                    raise Conflict("an erasure is unfinished; run it again, then export")
                yield _line(_header(opened, snapshot, with_vectors))
                digest, number = hashlib.sha256(), 0
                for line in _records(snapshot, with_vectors):
                    digest.update(line)
                    number += 1
                    yield line
                yield _line({"record": "end", "records": number, "sha256": digest.hexdigest()})

    @local
    def backup(
        self,
        target: str | Path,
        *,
        force: bool = False,
        accept_findings: bool = False,
        progress: Progress = untold,
    ) -> BackupReport:
        """Copy the database to a file while it is in use, and audit the copy.

        Args:
            force: replace an existing file.
            accept_findings: accept findings of the audit, except damaged pages.
            progress: called with ``pages``, the number of copied ones and the total.

        Raises:
            Conflict: the file exists.
            DatabaseCorrupt, JournalBroken: the copy does not pass the audit.
        """
        from memgraph.operations.maintenance.maintenance import backup

        with self._service.opened(self.name) as opened:
            return backup(
                opened,
                Path(target),
                force=force,
                accept_findings=accept_findings,
                progress=progress,
            )
