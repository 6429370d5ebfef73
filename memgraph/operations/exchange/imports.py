"""Import an export: every line is validated as untrusted input, and all or nothing is stored.

The target is a new or empty orchestrator. Ids, times and the journal are restored; under the same
name the next export has the same bytes. Under another name ``orchestrator_id`` is the new name,
which an ``import`` entry in the journal records.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from memgraph.audit import anchor, journal
from memgraph.audit.journal import JournalHead, append
from memgraph.audit.redactions import accepted
from memgraph.audit.verify import check_copy
from memgraph.clock import Clock, iso
from memgraph.errors import Conflict, ImportRejected, InvalidInput
from memgraph.model.entities import METADATA
from memgraph.model.values import Report
from memgraph.operations.exchange.operations import FORMAT, VERSION
from memgraph.operations.exchange.records import RECORDS, RecordMapping, loads, refused
from memgraph.operations.write.embedding import MODEL_KEY
from memgraph.paths import OrchestratorPaths, check_orchestrator_name, naming_full_disk
from memgraph.rules.erasure import is_redacted
from memgraph.rules.similarity import content_hash
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import embeddings, memories, metadata, postings, text_index, whole_tables
from memgraph.store.engine import Constraint, ConstraintViolated
from memgraph.store.journal import append_seal, chain_hash, is_keyed
from memgraph.store.rows import compact_json
from memgraph.store.snapshot import NewEntry, Transaction
from memgraph.store.statements import CompiledStatement, row_count
from memgraph.store.stores import store_of

MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_DIMENSIONS = 65_536
BATCH = 500
IMPORTED_KEY = "imported"

_BY_NAME = {record.name: (place, record) for place, record in enumerate(RECORDS)}


@dataclass(frozen=True, slots=True)
class ImportReport(Report):
    """A finished import.

    Attributes:
        renamed_from: the name in the export, if it is different.
        records: the number of lines by kind.
    """

    orchestrator: str
    renamed_from: str | None
    records: dict[str, int]


def import_into(
    opened: OpenOrchestrator,
    source: BinaryIO,
    *,
    actor: str,
    progress: Callable[[int], None] = lambda _lines: None,
) -> ImportReport:
    """Import into an open and empty orchestrator, in one transaction.

    Raises:
        ImportRejected: the export is invalid; ``details`` has the ``reason`` and the ``line``.
            Nothing was written.
        Conflict: the orchestrator is not empty.
    """
    heads: list[JournalHead] = []

    def after_commit() -> None:
        try:
            anchor.write(opened.anchor_file, heads[-1])
        except OSError as error:
            # The import is durable; an outdated anchor does no harm.
            opened.log.failure("journal.anchor", error)

    with opened.database.write(after_commit) as transaction:
        loader = ExportLoader(
            transaction, opened.database.orchestrator_id, progress, opened.database.journal_key
        )
        at, key = opened.clock.now_ms(), opened.database.journal_key
        report = loader.load(source, at=at, actor=actor)
        entries = accepted(transaction, opened.paths.root, "imported")
        heads.append(append(transaction, entries, at=at, actor=actor, key=key))
    return report


def import_new(
    paths: OrchestratorPaths,
    source: BinaryIO,
    *,
    dimensions: int,
    clock: Clock,
    actor: str,
    anchor_folder: str = "",
    key: bytes | None = None,
    url: str = "",
    progress: Callable[[int], None] = lambda _lines: None,
) -> ImportReport:
    """Create an orchestrator from an export; if the export is rejected, nothing is created.

    Args:
        dimensions: the dimensions of the vectors, if the export has none.
        anchor_folder: the folder of the anchors; empty: next to the database.
        key: the key of a keyed journal.
        url: the database server to store it on; empty: a file.

    Raises:
        ImportRejected: the export is invalid; ``details`` has the ``reason`` and the ``line``.
        OrchestratorExists: there is a database already.
    """
    store = store_of(paths, url)
    store.require_free()
    paths.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with naming_full_disk(paths.root), store.draft(paths.root) as draft:
        draft.create(dimensions=dimensions, now_ms=clock.now_ms())
        with draft.alone() as transaction:
            loader = ExportLoader(transaction, paths.name, progress, key)
            report = loader.load(source, at=clock.now_ms(), actor=actor)
            entries = accepted(transaction, paths.root, "imported")
            head = append(transaction, entries, at=clock.now_ms(), actor=actor, key=key)
        paths.make_folders()
        with store.locked():
            store.require_free()
            store.publish(draft)
            anchor.write(anchor.anchor_path(paths.database, anchor_folder), head)
    return report


@dataclass(slots=True)
class ExportLoader:
    """Reads the lines of an export into an open transaction; on an error the caller rolls back.

    ``key``: the key of a keyed journal; entries may be sealed with or without it.
    """

    transaction: Transaction
    name: str
    progress: Callable[[int], None]
    key: bytes | None = None
    line: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    _place: int = 0
    _pending: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    _head: JournalHead = field(default_factory=lambda: JournalHead(0, ""))
    _dimensions: int = 0

    def load(self, source: BinaryIO, *, at: int, actor: str) -> ImportReport:
        self._require_empty()
        try:
            header, digest = self._read(source)
        except ImportRejected as error:
            details = {"line": self.line} | error.details
            raise ImportRejected(
                f"line {details['line']}: {error.message} ({details['reason']})", **details
            ) from error
        self._finish_vectors(header)
        last = memories.last_pk(self.transaction)
        postings.add(self.transaction, 1, last)
        state = whole_tables.renew(self.transaction)
        self._audit()
        origin = str(header["orchestrator"])
        details = {"at": iso(at), "from_orchestrator": origin, "sha256": digest}
        metadata.put(self.transaction, IMPORTED_KEY, compact_json(details))
        if origin != self.name:
            entry = NewEntry("import", None, {**details, "at": at})
            journal.append(self.transaction, [entry], at=at, actor=actor, state=state, key=self.key)
        if self.key is not None and not is_keyed(self.transaction, self.key):
            # From this entry on, only entries sealed with the key are valid.
            append_seal(self.transaction, state, key=self.key)
        return ImportReport(self.name, origin if origin != self.name else None, self.counts)

    def _require_empty(self) -> None:
        for table in ("memories", "audit_log", "ingest_files"):
            if row_count(self.transaction, table):
                raise Conflict("an import needs a new or empty orchestrator; choose another name")

    def _read(self, source: BinaryIO) -> tuple[dict[str, Any], str]:
        lines = self._lines(source)
        header = self._header(next(lines, b""))
        digest = hashlib.sha256()
        for number, raw in enumerate(lines):
            line = self._parsed(raw)
            if line.get("record") == "end":
                self._flush()
                self._end(line, number, digest.hexdigest(), next(lines, None))
                return header, digest.hexdigest()
            digest.update(raw)
            self._take(line, header)
            if number % 1_000 == 0:
                self.progress(number)
        raise refused("truncated", "the end line is missing")

    def _lines(self, source: BinaryIO) -> Iterator[bytes]:
        while raw := source.readline(MAX_LINE_BYTES + 1):
            self.line += 1
            if len(raw) > MAX_LINE_BYTES:
                raise refused("line_too_long", f"longer than {MAX_LINE_BYTES} bytes")
            yield raw

    def _parsed(self, raw: bytes) -> dict[str, Any]:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise refused("encoding", "not UTF-8") from None
        return loads(text)

    def _header(self, raw: bytes) -> dict[str, Any]:
        if not raw:
            raise refused("header", "the file is empty")
        header = self._parsed(raw)
        if header.get("record") != "header" or header.get("format") != FORMAT:
            raise refused("header", "not an export of memgraph")
        if header.get("version") != VERSION:
            raise refused("version", f"this memgraph reads version {VERSION}")
        expected_fields = {"record", "format", "version", "orchestrator", "schema", "exported_at"}
        if header.keys() != expected_fields | {"embedding"}:
            raise refused("fields", "missing or unknown fields")
        if header["schema"] != metadata.SCHEMA_HEAD:
            raise refused(
                "version",
                f"the export is not of schema {metadata.SCHEMA_HEAD}, the one that this memgraph"
                " reads: import it with the version that made it",
            )
        try:
            check_orchestrator_name(header["orchestrator"])
        except InvalidInput as error:
            raise refused("value", error.message) from None
        self._check_embedding(header["embedding"])
        return header

    def _check_embedding(self, embedding: Any) -> None:
        if embedding is None:
            return
        if not isinstance(embedding, dict) or embedding.keys() != {"model", "dimensions"}:
            raise refused("fields", "embedding must have a model and dimensions")
        model, dimensions = embedding["model"], embedding["dimensions"]
        if not (model is None or isinstance(model, str)) or type(dimensions) is not int:
            raise refused("value", "embedding must have a name and a number")
        if not 1 <= dimensions <= MAX_DIMENSIONS:
            raise refused("value", f"dimensions must be between 1 and {MAX_DIMENSIONS}")
        self._dimensions = dimensions

    def _take(self, line: dict[str, Any], header: Mapping[str, Any]) -> None:
        name = line.get("record")
        entry = _BY_NAME.get(name) if isinstance(name, str) else None
        if entry is None or (name == "embedding" and header["embedding"] is None):
            raise refused("record", "an unknown kind of record")
        place, record = entry
        if place < self._place:
            raise refused("order", f"a record of kind {name} is not allowed here")
        if place > self._place:
            self._flush()
            self._place = place
        values = record.read(line)
        self._check(record, values)
        self.counts[record.name] = self.counts.get(record.name, 0) + 1
        self._pending.append((self.line, values))
        if len(self._pending) >= BATCH:
            self._flush()

    def _check(self, record: RecordMapping, values: dict[str, Any]) -> None:
        """Validate the values of a line, and add computed ones."""
        if record.name == "memory":
            content = values["content"]
            if content and content_hash(content) != values["content_hash"]:
                raise refused("content_hash", "the content does not match its hash")
            values["pk"] = self.counts.get("memory", 0) + 1
            values["orchestrator_id"] = self.name
            added = json.loads(values["attributes"]).get(METADATA)
            values["search_terms"] = text_index.search_terms(content, added)
        elif record.name == "journal":
            self._check_entry(values)
            self._head = JournalHead(values["seq"], values["hash"])
        elif record.name == "embedding":
            has_its_dimensions = len(values["vector"]) == values["dimensions"]
            if not has_its_dimensions or values["dimensions"] != self._dimensions:
                raise refused("value", "the dimensions of a vector differ from those in the header")
            if embeddings.damaged([(values["vector"], values["dimensions"])]):
                raise refused("value", "a vector is damaged")

    def _check_entry(self, values: dict[str, Any]) -> None:
        names = ("at", "actor", "action", "subject", "details", "state")
        rest = [values[name] for name in names]
        sealed = values["hash"] in {
            chain_hash(self._head.hash, values["seq"], *rest, key=key) for key in (None, self.key)
        }
        # A redacted entry does not match its hash. The audit checks it against a later entry, which
        # has the hash of its redacted details.
        if values["seq"] != self._head.seq + 1 or not (sealed or _is_redacted(values["details"])):
            raise refused("journal", "the journal's chain breaks here")

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        if not pending:
            return
        statement = RECORDS[self._place].insert
        try:
            whole_tables.insert(self.transaction, statement, [values for _, values in pending])
        except ConstraintViolated:
            # Insert one at a time to find the line that violates the constraint.
            for line, values in pending:
                self._insert_one(statement, line, values)

    def _insert_one(self, statement: CompiledStatement, line: int, values: dict[str, Any]) -> None:
        try:
            whole_tables.insert(self.transaction, statement, [values])
        except ConstraintViolated as error:
            reason, message = _REASONS.get(error.constraint, _OUT_OF_BOUNDS)
            raise ImportRejected(message, reason=reason, line=line) from error

    def _end(self, line: dict[str, Any], number: int, digest: str, more: bytes | None) -> None:
        if line.keys() != {"record", "records", "sha256"}:
            raise refused("fields", "missing or unknown fields")
        if line["records"] != number:
            raise refused("truncated", f"{number} records, but the end line has another number")
        if line["sha256"] != digest:
            raise refused("digest", "the records have been changed since the export")
        if more is not None:
            raise refused("trailing", "there is data after the end line")

    def _finish_vectors(self, header: Mapping[str, Any]) -> None:
        embedding = header["embedding"]
        if embedding is not None:
            if embedding["model"] is not None:
                metadata.put(self.transaction, MODEL_KEY, embedding["model"])
            embeddings.index(self.transaction).rebuild(embedding["dimensions"])
        embeddings.enqueue_missing(self.transaction)

    def _audit(self) -> None:
        report = check_copy(self.transaction, key=self.key)
        if not report.ok:
            counts = ", ".join(f"{count} x {code}" for code, count in sorted(report.totals.items()))
            raise ImportRejected(
                f"the export does not match its journal: {counts} (audit)",
                reason="audit",
                findings=dict(report.totals),
            )


_OUT_OF_BOUNDS = ("constraint", "a value is out of range")
_REASONS: Mapping[Constraint | None, tuple[str, str]] = {
    Constraint.FOREIGN_KEY: ("dangling", "it refers to a record that does not exist"),
    Constraint.UNIQUE: ("duplicate", "it is a duplicate"),
}


def _is_redacted(details: str) -> bool:
    parsed = loads(details)
    return isinstance(parsed, dict) and is_redacted(parsed)
