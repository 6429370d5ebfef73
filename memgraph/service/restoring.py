"""Restoring an orchestrator's database from a backup."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memgraph.audit import anchor, journal
from memgraph.audit.journal import Entry, Head
from memgraph.clock import Clock
from memgraph.errors import (
    Conflict,
    DatabaseCorrupt,
    DatabaseForeign,
    JournalBroken,
    StorageError,
)
from memgraph.paths import OrchestratorPaths, naming_full_disk
from memgraph.service.copies import BACKUP_KEY, checked_copy, free_name, told_anchor
from memgraph.service.erasing.proofs import RedactionProofs, accept_redactions
from memgraph.store import backup as copying
from memgraph.store import integrity, metadata, provisioning, sqlite, table_digests


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A finished restore. ``replaced``: the folder that now holds the old files."""

    orchestrator: str
    backup: Path
    replaced: Path | None
    memories: int
    journal_entries: int
    findings: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        replaced = None if self.replaced is None else str(self.replaced)
        return asdict(self) | {"backup": str(self.backup), "replaced": replaced}


def restore(
    paths: OrchestratorPaths,
    file: Path,
    *,
    clock: Clock,
    actor: str,
    reason: str,
    rename: bool = False,
    accept_findings: bool = False,
    anchor_folder: str = "",
    key: bytes | None = None,
) -> RestoreReport:
    """Replace an orchestrator's database by a backup. Close the orchestrator first.

    The backup is copied, audited and, if it is older, upgraded before anything is touched. The old
    files go into ``replaced/`` beside it and are never deleted. A process that still has them open
    gets DatabaseReplaced at the next write.

    Args:
        rename: accept the backup of another orchestrator; only when there is no database yet.
        accept_findings: restore although the audit finds something; never damaged pages.
        anchor_folder: where anchors are kept; empty: beside the database.
        key: of a keyed journal.

    Raises:
        DatabaseMissing, DatabaseEmpty, DatabaseCorrupt, DatabaseForeign, SchemaTooNew,
        JournalBroken: why the backup is refused; nothing was changed.
    """
    file = file.expanduser().absolute()
    with naming_full_disk(paths.root):
        paths.make_folders()
    with copying.draft_beside(paths.database) as draft:
        digest = _take_in(file, draft)
        with _refusing(file):
            origin, stamp = _prepare(draft, paths, rename, key)
            anchored = None if stamp is None else Head(stamp["seq"], stamp["hash"])
            proofs = RedactionProofs(paths)
            report = checked_copy(draft, anchored, accept_findings, "the backup", proofs, key)
        entry = {
            "reason": reason,
            "backup": {"sha256": digest, "stamp": stamp},
            "findings": dict(report.totals),
        }
        if origin != paths.name:
            entry["from_orchestrator"] = origin
        with provisioning.provisioning_lock(paths.database):
            anchor_file = anchor.anchor_path(paths.database, anchor_folder)
            head, replaced = _swap(paths, draft, entry, clock.now_ms(), actor, anchor_file, key)
    return RestoreReport(
        orchestrator=paths.name,
        backup=file,
        replaced=replaced,
        memories=report.checked.get("memories", 0),
        journal_entries=head.seq,
        findings=dict(report.totals),
    )


def _take_in(file: Path, draft: Path) -> str:
    """Copy a backup to where it is checked and used; return its SHA-256."""
    if file.with_name(file.name + "-wal").exists():
        raise DatabaseForeign(
            f"beside {file} lies a WAL: it is a database in use, no backup; run: memgraph backup",
            path=str(file),
        )
    copying.copy_file(file, draft)
    with draft.open("rb") as copied:
        return hashlib.file_digest(copied, "sha256").hexdigest()


@contextmanager
def _refusing(file: Path) -> Iterator[None]:
    """Raise errors about the copy as errors of the backup it was made from."""
    try:
        yield
    except (StorageError, JournalBroken) as error:
        details = error.details | {"path": str(file)}
        reasons = ", ".join([error.code, *details.get("findings", ())])
        told = f"{file} is refused as a backup ({reasons})"
        raise type(error)(told, **details) from error


def _prepare(
    draft: Path, paths: OrchestratorPaths, rename: bool, key: bytes | None
) -> tuple[str, dict[str, Any] | None]:
    """Check a backup, and upgrade it to this version; return its orchestrator and stamp."""
    provisioning.inspect_file(draft)
    with sqlite.translated_errors():
        raw = sqlite.connect(draft, busy_timeout_ms=5_000)
        try:
            origin = provisioning.orchestrator_of(raw) if rename else paths.name
            provisioning.check_identity(raw, draft, origin or "")
            provisioning.migrate(raw, key=key)
        finally:
            raw.close()
    with integrity.snapshot(draft) as snapshot:
        text = metadata.get(snapshot, BACKUP_KEY)
    return str(origin), None if text is None else _stamp(text)


def _stamp(text: str) -> dict[str, Any]:
    try:
        stamp = json.loads(text)
        return {"at": str(stamp["at"]), "seq": int(stamp["seq"]), "hash": str(stamp["hash"])}
    except (ValueError, TypeError, KeyError) as error:
        raise DatabaseCorrupt("the stamp of the backup cannot be read") from error


def _swap(
    paths: OrchestratorPaths,
    draft: Path,
    told: dict[str, Any],
    at: int,
    actor: str,
    anchor_file: Path,
    key: bytes | None,
) -> tuple[Head, Path | None]:
    """Journal the restore in the draft and move it into place, while nobody writes."""
    database = paths.database
    if "from_orchestrator" in told and os.path.lexists(database):
        raise Conflict(
            "a backup of another orchestrator can only become a new one; this one has a database",
            orchestrator=paths.name,
        )
    with integrity.alone(draft) as transaction:
        metadata.drop(transaction, BACKUP_KEY)
        provisioning.adopt(transaction, paths.name)
        entry = Entry("restore", None, {**told, "replaced": told_anchor(anchor_file)})
        state = table_digests.renew(transaction)
        head = journal.append(transaction, [entry], at=at, actor=actor, state=state, key=key)
        accept_redactions(paths, transaction, at=at, reason=f"restored: {told['reason']}")
    copying.use_wal(draft)
    folder = free_name(paths.memory / "replaced", "before-restore", at)
    moved = copying.move_aside(database, folder, (anchor.anchor_path(database).name,))
    copying.publish(draft, database, force=False)
    anchor.write(anchor_file, head)
    return head, folder if moved else None
