"""Audit, count, back up and restore an orchestrator's database."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from memgraph.audit import anchor, verify as audit
from memgraph.audit.findings import FindingCode, VerifyReport
from memgraph.audit.redactions import accepted, secrets_of
from memgraph.clock import Clock, iso, parse_time
from memgraph.errors import (
    Conflict,
    DatabaseCorrupt,
    DatabaseForeign,
    InvalidInput,
    JournalBroken,
    StorageError,
)
from memgraph.model.enums import ModelUse
from memgraph.model.erasure import UndoneErasure
from memgraph.model.operation import Progress, untold
from memgraph.model.values import Value
from memgraph.paths import OrchestratorPaths, naming_full_disk
from memgraph.providers.usage import ModelUsage
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import (
    edges,
    embeddings,
    erasure,
    ingest_files,
    journal,
    memories,
    metadata,
    sessions,
    whole_tables,
)
from memgraph.store.engine import Store
from memgraph.store.journal import JournalHead
from memgraph.store.snapshot import NewEntry, Snapshot, Transaction
from memgraph.store.statements import row_count
from memgraph.store.stores import store_of


class BackupReport(Value):
    """A finished backup. ``findings`` counts the accepted findings by code."""

    orchestrator: str
    path: Path
    bytes: int
    memories: int
    journal_entries: int
    findings: dict[str, int]


def verify(
    opened: OpenOrchestrator,
    progress: Progress = untold,
    stop: Callable[[], bool] = lambda: False,
) -> VerifyReport:
    """Audit the database; see ``memgraph.audit.verify``. Nothing is changed."""
    known, key = secrets_of(opened.paths.root), opened.database.journal_key
    return audit.verify(opened.database, opened.anchor_file, progress, stop, secrets=known, key=key)


def backup(
    opened: OpenOrchestrator,
    target: Path,
    *,
    force: bool = False,
    accept_findings: bool = False,
    progress: Progress = untold,
) -> BackupReport:
    """Copy the database into one file while it is in use, and audit the copy.

    See ``Exchange.backup``. A damaged row is copied in any case, and reported.

    Raises:
        InvalidInput: ``target`` is a folder, or inside an orchestrator's memory folder.
        DatabaseCorrupt, JournalBroken: the copy failed the audit and was removed.
    """
    target = target.expanduser().absolute()
    _require_free_target(opened, target, force)
    name = opened.database.orchestrator_id
    # A damaged anchor is reported by ``verify``; the copy is checked without one.
    anchored = anchor.read_durable(opened.anchor_file)
    head = JournalHead(0, "")
    report = VerifyReport()

    def stamp(transaction: Transaction) -> None:
        nonlocal head
        head = journal.head(transaction)
        details = {"at": iso(opened.clock.now_ms()), "seq": head.seq, "hash": head.hash}
        metadata.put(transaction, BACKUP_KEY, json.dumps(details))

    def check(snapshot: Snapshot) -> None:
        nonlocal report
        what, known = f"the database of {name}", secrets_of(opened.paths.root)
        key = opened.database.journal_key
        report = checked_copy(
            snapshot, anchored, accept_findings, what, known, key, copies_damaged_rows=True
        )

    store = opened.database.store
    pages = partial(progress, "pages")
    size = store.back_up(target, force=force, stamp=stamp, check=check, progress=pages)
    opened.log.info("backup", memories=report.checked.get("memories", 0), bytes=size)
    return BackupReport(
        orchestrator=name,
        path=target,
        bytes=size,
        memories=report.checked.get("memories", 0),
        journal_entries=head.seq,
        findings=dict(report.totals),
    )


def _require_free_target(opened: OpenOrchestrator, target: Path, force: bool) -> None:
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder; the backup must be a file")
    if os.path.lexists(target) and not force:
        raise Conflict(f"the file already exists: {target}", path=str(target))
    # With ``force`` a backup could replace its own source, or the database of another orchestrator.
    folder = Path(os.path.realpath(target.parent))
    if folder.name == "memory" and folder.is_relative_to(os.path.realpath(opened.paths.root)):
        raise InvalidInput("a backup must not be written into an orchestrator's memory folder")


class RestoreReport(Value):
    """A finished restore.

    Attributes:
        replaced: the folder or schema with the previous database.
        undone: the erasures of that database, or of the orchestrator that was backed up, that the
            backup does not know.
        code, message: what to do about them; ``erasure.undone``, or ``erasure.unknown`` if one of
            these databases could not be read, or had replaced one that could not. None: there are
            none.
    """

    orchestrator: str
    backup: Path
    replaced: str | None
    memories: int
    journal_entries: int
    findings: dict[str, int]
    undone: tuple[UndoneErasure, ...] = ()
    code: str | None = None
    message: str | None = None


def restore(
    paths: OrchestratorPaths,
    file: Path,
    *,
    clock: Clock,
    actor: str,
    reason: str,
    origin: str | None = None,
    origin_url: str = "",
    accept_findings: bool = False,
    anchor_folder: str = "",
    key: bytes | None = None,
    url: str = "",
) -> RestoreReport:
    """Replace an orchestrator's database by a backup. Close the orchestrator first.

    The backup is copied and audited before anything is touched. The old files go into ``replaced/``
    beside it; only an erasure removes them. A process that still has them open gets
    DatabaseReplaced at the next write.

    Args:
        origin: accept the backup of this other orchestrator; only when there is no database yet.
        origin_url: of the server that ``origin`` is kept on; empty: it is a file.
        accept_findings: restore although the audit finds something; never damaged pages.
        anchor_folder: where anchors are kept; empty: beside the database.
        key: of a keyed journal.
        url: of the server that it is kept on; empty: it is a file.

    Raises:
        DatabaseMissing, DatabaseEmpty, DatabaseCorrupt, DatabaseForeign, SchemaUnknown,
        JournalBroken: why the backup is refused; nothing was changed.
    """
    file = file.expanduser().absolute()
    of, store = origin or paths.name, store_of(paths, url)
    known_to = [store]
    if of != paths.name:
        known_to.append(store_of(OrchestratorPaths(paths.root, of), origin_url))
    with _made_folders(paths), naming_full_disk(paths.memory), store.draft(paths.memory) as draft:
        digest = draft.take(file)
        stamp, report = _audited(draft, file, of, paths.root, accept_findings, key)
        entry: dict[str, Any] = {
            "reason": reason,
            "backup": {"sha256": digest, "stamp": stamp},
            "findings": dict(report.totals),
        }
        if of != paths.name:
            entry["from_orchestrator"] = of
        with store.locked() as require_lock:
            undone, code = _undone(known_to, draft)
            if code is not None:
                entry |= {"code": code, "undone": [item.model_dump(mode="json") for item in undone]}
            anchor_file = anchor.anchor_path(paths.database, anchor_folder)
            head, replaced = _swap(
                paths, store, draft, entry, clock.now_ms(), actor, anchor_file, key, require_lock
            )
    return RestoreReport(
        orchestrator=paths.name,
        backup=file,
        replaced=replaced,
        memories=report.checked.get("memories", 0),
        journal_entries=head.seq,
        findings=dict(report.totals),
        undone=undone,
        code=code,
        message=_UNDONE.get(code),
    )


def _audited(
    draft: Store, file: Path, of: str, root: Path, accept_findings: bool, key: bytes | None
) -> tuple[dict[str, Any] | None, VerifyReport]:
    """Check that a backup is of an orchestrator and undamaged; return its stamp and the findings.

    Raises:
        StorageError: or the subclass for why it is refused, see ``restore``.
    """
    with _refusing(file):
        name = draft.admit()
    if name != of:
        raise DatabaseForeign(
            f"{file} is a backup of {name!r}; to restore it as a new orchestrator, run:"
            f" memgraph restore {name} FILE --as NAME",
            path=str(file),
            orchestrator=name,
        )
    with _refusing(file), draft.inspect() as snapshot:
        stamp = _stamp(snapshot)
        anchored = None if stamp is None else JournalHead(stamp["seq"], stamp["hash"])
        known = secrets_of(root)
        return stamp, checked_copy(snapshot, anchored, accept_findings, "the backup", known, key)


_UNDONE: Final[Mapping[str | None, str]] = {
    erasure.UNDONE: (
        "the backup is from before these erasures: erase again what they erased, by memgraph erase;"
        " memgraph erasures lists those that remain to be done"
    ),
    erasure.UNKNOWN: (
        "the previous database, or that of the orchestrator that was backed up, cannot be read, so"
        " its erasures are not known: erase again what was erased since the backup, then run:"
        " memgraph repair NAME --accept REASON"
    ),
}


def _undone(stores: Sequence[Store], draft: Store) -> tuple[tuple[UndoneErasure, ...], str | None]:
    """Return the erasures that only these databases know, not the draft, and the report's code."""
    known: dict[str, UndoneErasure] = {}
    code = None
    for store in (each for each in stores if each.exists()):
        try:
            with store.inspect() as snapshot:
                known |= erasure.erasures_by_id(snapshot)
                is_known = erasure.unknown_at(snapshot) is None
        except StorageError:
            is_known = False
        code = code if is_known else erasure.UNKNOWN
    with draft.inspect() as snapshot:
        try:
            again = erasure.erasures_by_id(snapshot)
            lost = erasure.restored(snapshot, [known[name] for name in known.keys() - again.keys()])
        except DatabaseCorrupt:
            # The backup's journal is damaged, and that is accepted: its memories decide.
            lost = erasure.to_do_again(erasure.restored(snapshot, known.values()))
    undone = tuple(sorted(lost, key=lambda item: item.erasure_id))
    return undone, code or (erasure.UNDONE if undone else None)


@contextmanager
def _made_folders(paths: OrchestratorPaths) -> Iterator[None]:
    """Create the orchestrator's folders; if it is new and the block fails, remove them again."""
    is_new = not paths.memory.exists()
    with naming_full_disk(paths.root):
        paths.make_folders()
    try:
        yield
    except BaseException:
        if is_new:
            # rmdir removes only empty folders.
            with suppress(OSError):
                paths.log_file.unlink()
                for folder in (*reversed(paths.folders), paths.memory.parent):
                    folder.rmdir()
        raise


@contextmanager
def _refusing(file: Path) -> Iterator[None]:
    """Translate errors about the copy into errors about the backup file."""
    try:
        yield
    except (StorageError, JournalBroken) as error:
        details = error.details | {"path": str(file)}
        reasons = ", ".join([error.code, *details.get("findings", ())])
        message = f"{file} is refused as a backup ({reasons})"
        if FindingCode.JOURNAL_REDACTION_UNPROVEN in details.get("findings", ()):
            message += (
                ": another root sealed its erasures; copy erasure.key from there, or give"
                " --accept-findings"
            )
        elif isinstance(error, StorageError):
            with file.open("rb") as opened:
                is_export = opened.read(len(_EXPORT_BEGINS)) == _EXPORT_BEGINS
            kind = "an export" if is_export else f"refused as a backup ({reasons})"
            message = f"{file} is {kind}; restore needs a file of memgraph backup"
        raise type(error)(message, **details) from error


def _stamp(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return the time of a backup and the head of its journal; None if it has no stamp."""
    text = metadata.get(snapshot, BACKUP_KEY)
    if text is None:
        return None
    try:
        stamp = json.loads(text)
        at = iso(parse_time(stamp["at"]))
        return {"at": at, "seq": int(stamp["seq"]), "hash": str(stamp["hash"])}
    except (ValueError, TypeError, KeyError, InvalidInput) as error:
        raise DatabaseCorrupt("the metadata of the backup cannot be read") from error


def _swap(
    paths: OrchestratorPaths,
    store: Store,
    draft: Store,
    details: dict[str, Any],
    at: int,
    actor: str,
    anchor_file: Path,
    key: bytes | None,
    require_lock: Callable[[], None],
) -> tuple[JournalHead, str | None]:
    """Journal the restore in the draft and move it into place under the writers' lock."""
    if "from_orchestrator" in details and store.exists():
        raise Conflict(
            f"a backup of another orchestrator can only be restored under a new name, and"
            f" {paths.name} already has a database",
            orchestrator=paths.name,
        )
    with draft.alone() as transaction:
        metadata.drop(transaction, BACKUP_KEY)
        metadata.adopt(transaction, paths.name)
        because = f"restored: {details['reason']}"
        entries = [
            *accepted(transaction, paths.root, because),
            NewEntry(erasure.RESTORE, None, {**details, "replaced": anchor_report(anchor_file)}),
        ]
        state = whole_tables.renew(transaction)
        head = journal.append(transaction, entries, at=at, actor=actor, state=state, key=key)
    folder = free_name(paths.memory / "replaced", "before-restore", at)
    # If the lock was lost, others may have written to the database that is put aside.
    require_lock()
    moved = store.publish(draft, aside=folder, files=[anchor.anchor_path(paths.database).name])
    anchor.write(anchor_file, head)
    return head, moved


BACKUP_KEY = "backup"
_EXPORT_BEGINS = b'{"record":"header"'
# Findings that are never accepted.
UNUSABLE = frozenset({FindingCode.DATABASE_DAMAGED, FindingCode.SCHEMA_CHANGED})
# Findings from comparing tables with the journal: they prove nothing if the journal is broken.
COMPARED = frozenset(
    {
        FindingCode.MEMORY_EDITED,
        FindingCode.MEMORY_UNJOURNALLED,
        FindingCode.STATUS_UNJOURNALLED,
        FindingCode.TABLE_EDITED,
        FindingCode.TABLE_UNSEALED,
    }
)


def checked_copy(
    snapshot: Snapshot,
    anchored: JournalHead | None,
    accept: bool,
    what: str,
    known: Sequence[bytes],
    key: bytes | None = None,
    *,
    copies_damaged_rows: bool = False,
) -> VerifyReport:
    """Audit a copy before it is used.

    Args:
        anchored: the journal head that the copy must contain; None: not checked.
        accept: accept findings, except ``UNUSABLE`` ones.
        what: the copy, for the error message.
        known: the secrets that may have sealed redactions.
        copies_damaged_rows: accept damaged rows, and what follows from them, if the journal is
            sound: a backup without them would lose what they still hold.

    Raises:
        DatabaseCorrupt, JournalBroken: the audit has findings that are not accepted.
    """
    report = audit.check_copy(snapshot, anchored, secrets=known, key=key)
    broken = {code for code in report.totals if code.startswith("journal.")}
    if copies_damaged_rows and FindingCode.ROW_DAMAGED in report.totals and not broken:
        accept = True
    # Findings that a rebuild repairs do not block a copy.
    if report.rebuildable or (accept and not UNUSABLE & set(report.totals)):
        return report
    message = ", ".join(f"{count} x {code}" for code, count in sorted(report.totals.items()))
    journal_only = broken and set(report.totals) - broken <= COMPARED
    kind: type[JournalBroken | DatabaseCorrupt] = JournalBroken if journal_only else DatabaseCorrupt
    raise kind(f"{what} does not pass the audit: {message}", findings=dict(report.totals))


def anchor_report(path: Path) -> dict[str, Any]:
    """Return the content of an anchor as details of a journal entry."""
    head = anchor.read(path)
    return {"anchor": head._asdict() if isinstance(head, JournalHead) else head}


def free_name(folder: Path, prefix: str, at: int, suffix: str = "") -> Path:
    """Return an unused name in ``folder`` that contains the time."""
    when = iso(at).translate({ord("-"): None, ord(":"): None, ord("."): None})
    number = 0
    while True:
        result = folder / f"{prefix}-{when}{f'-{number}' if number else ''}{suffix}"
        if not os.path.lexists(result):
            return result
        number += 1


def stats(opened: OpenOrchestrator) -> dict[str, Any]:
    """Return counts of everything stored, and the sizes on disk in bytes."""
    with opened.database.read() as snapshot:
        seq, _ = journal.head(snapshot)
        counts = {
            "orchestrator": opened.database.orchestrator_id,
            "memories": memories.counts(snapshot),
            "edges": edges.counts(snapshot),
            "entities": row_count(snapshot, "entities"),
            "embeddings": embeddings.state_counts(snapshot),
            "ingest": ingest_files.counts(snapshot),
            "model": _model_counts(opened, snapshot),
            "journal_entries": seq,
            "schema": metadata.revision(snapshot),
        }
    sizes = opened.database.sizes()
    return {**counts, "bytes": sizes, "embedding_model_changed": opened.other_model is not None}


def _model_counts(opened: OpenOrchestrator, snapshot: Snapshot) -> dict[str, Any]:
    """Return what language models used in this month, by use, and per consolidated session."""
    from memgraph.operations.life.models import model_usage, month_of

    month = month_of(opened.clock.now_ms())
    usages = model_usage(snapshot, month)
    total = ModelUsage()
    for usage in usages.values():
        total.add(usage)
    read = sessions.consolidated_since(snapshot, parse_time(f"{month}-01"))
    spent = usages.get(ModelUse.CONSOLIDATION, ModelUsage()).tokens
    return {
        "month": month,
        **total.as_counts(),
        "monthly_tokens": opened.settings.memory.llm.monthly_tokens,
        "sessions": read,
        "tokens_per_session": round(spent / read) if read else 0,
        "by_use": {str(use): usages[use].as_counts() for use in sorted(usages)},
    }
