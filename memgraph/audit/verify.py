"""Audit a database: pages, journal, memories, tables and indexes. Nothing is changed.

The audit runs on one snapshot while others write. Only the comparison of the full-text index with
the texts takes the write lock, because FTS5 implements it as an INSERT.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memgraph.audit import anchor
from memgraph.audit.findings import AnchorState, FindingCode, VerifyReport
from memgraph.audit.redactions import Redaction, redactions
from memgraph.errors import DatabaseCorrupt, StorageError
from memgraph.model.operation import Progress, untold
from memgraph.rules.similarity import content_hash
from memgraph.store import embeddings, integrity, journal, postings, text_index, whole_tables
from memgraph.store.journal import SEALED_FIELDS, JournalHead, chain_hash, memory_seal
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import row_count
from memgraph.store.vector_index import VectorFault

if TYPE_CHECKING:
    from memgraph.store.engine import Database, Engine

Check = Callable[[Snapshot, VerifyReport], object]
_FAULTS = {
    VectorFault.DAMAGED: (FindingCode.VECTOR_DAMAGED, "the vector has a wrong length or value"),
    VectorFault.VISIBILITY: (
        FindingCode.VECTOR_INDEX_STRAY,
        "the index has an outdated scope, status or sensitivity",
    ),
}
_DAMAGE = {
    None: FindingCode.DATABASE_DAMAGED,
    "fts": FindingCode.TEXT_INDEX_DRIFT,
}


def verify(
    database: Database,
    anchor_file: Path,
    progress: Progress = untold,
    stop: Callable[[], bool] = lambda: False,
    *,
    secrets: Sequence[bytes] = (),
    key: bytes | None = None,
) -> VerifyReport:
    """Check everything that can be checked; problems are reported, not raised.

    Memories are compared with their journal entries: the text and the other sealed fields
    (`SEALED_FIELDS`), and the times of their statuses. All values are compared by the digest of
    their table, except for `whole_tables.UNCOUNTED`.

    If an index is damaged, the audit ends with that: all else is read through indexes. Rebuild them
    and verify again.

    Args:
        anchor_file: the path of the anchor.
        stop: called before each check; True ends the audit with the findings so far.
        secrets: those that may have sealed redactions.
        key: the key of a keyed journal; None if it has none.

    It takes about 16 seconds of processor time for 100,000 memories, and the write lock for the
    last half second.

    Raises:
        StorageError: the database is busy or the disk fails, so that there is no result.
    """
    report = VerifyReport()
    # Read before the snapshot begins, so that the snapshot must contain the anchored entry.
    anchored = anchor.read(anchor_file)

    def check_journal(snapshot: Snapshot, into: VerifyReport) -> None:
        head = check_chain(snapshot, into, anchored, secrets, key)
        _check_anchor(snapshot, into, anchored, anchor_file, head)

    checks: list[tuple[str, Check]] = [
        ("pages", check_pages),
        ("schema", check_schema),
        ("references", check_references),
        ("journal", check_journal),
        *CONTENT_CHECKS,
        ("vectors", check_vectors),
        ("entities", check_entities),
        ("postings", check_postings),
    ]
    with database.store.inspect() as snapshot:
        for place, (stage, check) in enumerate(checks):
            if stop() or FindingCode.INDEX_DAMAGED in report.totals:
                return report
            progress(stage, place, len(checks) + 1)
            with _as_findings(database.engine, report, stage):
                check(snapshot, report)
    progress("text index", len(checks), len(checks) + 1)
    phrases = database.engine.phrases
    opened = database.read() if phrases.checks_snapshots else database.write()
    with _as_findings(database.engine, report, "text index"), opened as checked:
        if not phrases.check(checked):
            report.add(
                FindingCode.TEXT_INDEX_DRIFT, "the full-text index differs from the memories"
            )
    progress("done", len(checks) + 1, len(checks) + 1)
    return report


def check_vectors(snapshot: Snapshot, report: VerifyReport) -> None:
    """Report vectors that are damaged or missing, or whose visibility is outdated."""
    report.checked["vectors"] = snapshot.scalar(integrity.vectors())
    for faulty in embeddings.index(snapshot).check():
        report.add(*_FAULTS[faulty.fault], faulty.memory_id)
    for memory_id in snapshot.column(integrity.without_vector()):
        message = "the memory has no vector and is not queued for embedding"
        report.add(FindingCode.VECTOR_MISSING, message, memory_id)


def check_pages(snapshot: Snapshot, report: VerifyReport) -> None:
    """Run the engine's own check of its pages and of the types of stored values."""
    for damage in snapshot.engine.damage(snapshot):
        if damage.part == "indexes":
            message = f"{damage.message}; rebuild, then verify again: the rest is not checked yet"
            report.add(FindingCode.INDEX_DAMAGED, message)
        elif damage.row is None:
            report.add(_DAMAGE[damage.part], damage.message)
        else:
            table, number = damage.row
            report.add(FindingCode.ROW_DAMAGED, damage.message, table, row=number)


def check_schema(snapshot: Snapshot, report: VerifyReport) -> None:
    """Check that tables, indexes and triggers are those that the migrations create."""
    expected = snapshot.engine.expected_schema()
    current = snapshot.engine.schema(snapshot)
    report.checked["schema_objects"] = len(current)
    for name in sorted(expected.keys() | current.keys()):
        if expected.get(name) != current.get(name):
            state = (
                "missing" if name not in current else "changed" if name in expected else "foreign"
            )
            report.add(FindingCode.SCHEMA_CHANGED, f"the {name} of the schema is {state}", name)


def check_postings(snapshot: Snapshot, report: VerifyReport) -> None:
    """Check that the postings for ranking texts match the memories."""
    if not postings.check(snapshot):
        report.add(FindingCode.TEXT_INDEX_DRIFT, "the postings differ from the memories")


def check_references(snapshot: Snapshot, report: VerifyReport) -> None:
    """Check that no row refers to a missing row."""
    for table, rowid, parent in snapshot.engine.dangling(snapshot):
        message = f"a row of {table} refers to a row of {parent} that does not exist"
        report.add(FindingCode.REFERENCE_DANGLING, message, table, rowid=rowid)


def check_memories(snapshot: Snapshot, report: VerifyReport) -> None:
    """Check contents against their hash, and immutable fields against the journal."""
    width = len(SEALED_FIELDS)
    number, last = 0, None
    for row in snapshot.cursor(integrity.memories()):
        memory_id, content = row[0], row[3]
        if memory_id == last:
            report.add(FindingCode.MEMORY_EDITED, "the memory was journalled twice", memory_id)
            continue
        number, last = number + 1, memory_id
        stored_hash, terms, metadata, seq, at, details, erased = row[width:]
        if not isinstance(content, str):
            report.add(FindingCode.MEMORY_CONTENT_DAMAGED, "the content is not text", memory_id)
            continue
        if seq is None:
            report.add(
                FindingCode.MEMORY_UNJOURNALLED, "the memory has no journal entry", memory_id
            )
        # An erased memory keeps its row, but not its text.
        if not (erased and content == ""):
            if content_hash(content) != stored_hash:
                message = "the content does not match its hash"
                report.add(FindingCode.MEMORY_CONTENT_DAMAGED, message, memory_id)
            elif seq is not None and not _as_journalled(
                row[:width], stored_hash, at, _object(details)
            ):
                message = "the memory differs from the journal entry of its creation"
                report.add(FindingCode.MEMORY_EDITED, message, memory_id, seq=seq)
        if terms != text_index.search_terms(content, metadata):
            message = "the search terms do not match the content"
            report.add(FindingCode.TEXT_INDEX_DRIFT, message, memory_id)
    report.checked["memories"] = number
    for subject, seq in snapshot.cursor(integrity.lost_memories()):
        report.add(
            FindingCode.MEMORY_MISSING,
            "the journal has an entry for the memory, which does not exist",
            subject,
            seq=seq,
        )


def check_statuses(snapshot: Snapshot, report: VerifyReport) -> None:
    """Check that the status of a memory, its history and the journal agree."""
    for memory_id, status, last in snapshot.cursor(integrity.status_mismatches()):
        message = f"the memory is {status}, but its history ends with {last}"
        report.add(FindingCode.STATUS_MISMATCH, message, memory_id)
    for memory_id, status_id in snapshot.cursor(integrity.broken_histories()):
        message = "the periods of the memory's history do not join"
        report.add(FindingCode.STATUS_HISTORY_BROKEN, message, memory_id, status_id=status_id)
    for memory_id, status, since in snapshot.cursor(integrity.unjournalled_statuses()):
        message = f"the journal has no entry for the memory's change to {status}"
        report.add(FindingCode.STATUS_UNJOURNALLED, message, memory_id, since=since)
    report.checked["status_periods"] = row_count(snapshot, "memory_status")


def check_tables(snapshot: Snapshot, report: VerifyReport) -> None:
    """Check the rows of every table against its digest, and the digests against the journal."""
    for name, then, now in whole_tables.differing(snapshot):
        rows = f"{now.rows:,} rows, not {then.rows:,}" if now.rows != then.rows else "other rows"
        message = f"{name} was changed by something other than memgraph: it has {rows}"
        report.add(FindingCode.TABLE_EDITED, message, name, rows=now.rows, written=then.rows)
    sealed = journal.sealed_state(snapshot)
    if sealed is not None and sealed != whole_tables.state(snapshot):
        message = "the digests of the tables differ from those in the journal"
        report.add(FindingCode.TABLE_UNSEALED, message)


def check_entities(snapshot: Snapshot, report: VerifyReport) -> None:
    """Check that the mention count of each entity matches the number of its links."""
    report.checked["entities"] = row_count(snapshot, "entities")
    for entity_id, stored, actual in snapshot.cursor(integrity.miscounted_entities()):
        message = f"the entity counts {stored} mentions but has {actual}"
        report.add(FindingCode.ENTITY_COUNT_WRONG, message, entity_id)


CONTENT_CHECKS: Sequence[tuple[str, Check]] = (
    ("memories", check_memories),
    ("statuses", check_statuses),
    ("tables", check_tables),
)


def check_copy(
    snapshot: Snapshot,
    expected_head: JournalHead | None = None,
    *,
    secrets: Sequence[bytes] = (),
    key: bytes | None = None,
) -> VerifyReport:
    """Check a backup: pages, references, journal and contents.

    Indexes are left out: they can be rebuilt from what is checked here.
    """
    report = VerifyReport()
    checks: list[tuple[str, Check]] = [
        ("pages", check_pages),
        ("references", check_references),
        ("journal", lambda view, into: check_chain(view, into, expected_head, secrets, key)),
        *CONTENT_CHECKS,
    ]
    for stage, check in checks:
        with _as_findings(snapshot.engine, report, stage):
            check(snapshot, report)
    return report


def _check_anchor(
    snapshot: Snapshot,
    report: VerifyReport,
    anchored: JournalHead | AnchorState,
    anchor_file: Path,
    head: JournalHead,
) -> None:
    state = anchor.compare(snapshot, anchored, anchor_file)
    if state is AnchorState.MISSING:
        report.add(FindingCode.JOURNAL_ANCHOR_MISSING, "the journal has no anchor")
    if state is AnchorState.DAMAGED:
        message = "the anchor cannot be read, or was set back behind entries anchored before"
        report.add(FindingCode.JOURNAL_ANCHOR_DAMAGED, message)
    lost = {FindingCode.JOURNAL_TRUNCATED, FindingCode.JOURNAL_REWRITTEN} & report.totals.keys()
    if state is AnchorState.BEHIND and not lost:
        message = "the journal lacks an entry that the last nightly audit saw"
        report.add(FindingCode.JOURNAL_TRUNCATED, message, head.seq + 1)


def _as_journalled(
    fields: Sequence[Any], stored_hash: str, at: int, details: Mapping[str, Any]
) -> bool:
    if details.get("content_hash") != stored_hash:
        return False
    row = dict(zip(SEALED_FIELDS, fields, strict=True))
    try:
        return (row["created_at"], memory_seal(row)) == (at, details.get("seal"))
    except TypeError:  # a column contains bytes, which memgraph never writes
        return False


def _object(text: Any) -> dict[str, Any]:
    if not isinstance(text, str):
        return {}
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


@contextmanager
def _as_findings(engine: Engine, report: VerifyReport, stage: str) -> Iterator[None]:
    """Report damage that interrupts a check as a finding; raise other storage errors."""
    try:
        with engine.translated_errors():
            yield
    except DatabaseCorrupt:
        report.add(
            FindingCode.DATABASE_DAMAGED, f"damaged pages interrupted the check: {stage}", stage
        )
    except StorageError as error:
        if not engine.is_schema_fault(error):
            raise
        report.add(
            FindingCode.SCHEMA_CHANGED, f"a changed schema interrupted the check: {stage}", stage
        )


def check_chain(
    snapshot: Snapshot,
    report: VerifyReport,
    anchored: JournalHead | AnchorState | None,
    secrets: Sequence[bytes] = (),
    key: bytes | None = None,
) -> JournalHead:
    """Recompute every seal and compare the anchored entry; return the journal's head.

    Args:
        anchored: the anchor as it was before the snapshot began; otherwise there is none to
            compare with (not a finding here).
        secrets: those that may have sealed redactions.
        key: the key of a keyed journal; entries from before it are sealed without a key.
    """
    head = JournalHead(0, "")
    number = 0
    with_key = False
    redacted = redactions(snapshot, secrets)
    keyed = False
    for entry in snapshot.cursor(integrity.entries()):
        seq, sealed = entry[0], str(entry[-1])
        number += 1
        if seq != head.seq + 1:
            report.add(
                FindingCode.JOURNAL_ENTRY_MISSING,
                f"journal entries {head.seq + 1} to {seq - 1} are missing",
                head.seq + 1,
                until=seq - 1,
            )
        with_key = key is not None and _seal(head.hash, entry, key) == sealed
        keyed = keyed or with_key
        # After the first entry with the key, every entry must be sealed with it.
        if not with_key and (keyed or _seal(head.hash, entry) != sealed):
            _check_changed(entry, redacted.get(seq), report)
        if isinstance(anchored, JournalHead) and seq == anchored.seq and sealed != anchored.hash:
            report.add(
                FindingCode.JOURNAL_REWRITTEN,
                f"journal entry {seq} differs from the anchored one",
                seq,
            )
        head = JournalHead(int(seq), sealed)
        report.last_at = entry[1] if isinstance(entry[1], int) else None
    if isinstance(anchored, JournalHead) and anchored.seq > head.seq:
        report.add(
            FindingCode.JOURNAL_TRUNCATED,
            f"the journal ends at entry {head.seq}, but entry {anchored.seq} is anchored",
            head.seq + 1,
            until=anchored.seq,
        )
    if key is not None and number and not with_key:
        message = "the journal's last entry is not sealed with the key of memory.audit.key_file"
        report.add(FindingCode.JOURNAL_UNKEYED, message, head.seq)
    report.checked["journal_entries"] = number
    report.checked["journal_redacted"] = len(redacted)
    return head


def _check_changed(
    entry: tuple[Any, ...], redaction: Redaction | None, report: VerifyReport
) -> None:
    """Report an entry that does not match its seal, unless a proven erasure changed it."""
    seq, details, sealed = entry[0], entry[5], entry[-1]
    if redaction is None or not redaction.fits(details, sealed):
        report.add(
            FindingCode.JOURNAL_ENTRY_CHANGED,
            f"journal entry {seq} or the one before it was changed, moved or removed",
            seq,
        )
    elif not redaction.proven:
        message = f"the redaction of journal entry {seq} is not sealed with this root's erasure.key"
        report.add(
            FindingCode.JOURNAL_REDACTION_UNPROVEN, message, seq, erasure_id=redaction.erasure_id
        )


def _seal(previous: str, entry: tuple[Any, ...], key: bytes | None = None) -> str | None:
    try:
        return chain_hash(previous, *entry[:-1], key=key)
    except TypeError:  # a column contains bytes, which memgraph never writes
        return None
