"""Operator's work on an open orchestrator: verify, back up, upgrade, accept a journal."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memgraph.audit import anchor
from memgraph.audit import verify as audit
from memgraph.audit.anchor import AnchorState
from memgraph.audit.findings import Progress, VerifyReport
from memgraph.audit.journal import Entry, Head
from memgraph.clock import Clock, iso
from memgraph.errors import (
    Conflict,
    InvalidInput,
    JournalBroken,
)
from memgraph.paths import OrchestratorPaths, naming_full_disk
from memgraph.service.copies import BACKUP_KEY, checked_copy, free_name, told_anchor
from memgraph.service.erasing.proofs import RedactionProofs, accept_redactions
from memgraph.service.opened import Opened
from memgraph.store import backup as copying
from memgraph.store import health, integrity, metadata, provisioning
from memgraph.store.journal import head as journal_head


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A finished backup. ``findings``: codes of accepted findings and how many of each."""

    orchestrator: str
    path: Path
    bytes: int
    memories: int
    journal_entries: int
    findings: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"path": str(self.path)}


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """Schema revisions before and after; ``backup`` is None when nothing was to do.

    ``sealed_at`` is the number of the journal entry that records the digests of all tables again:
    nothing vouches for what was written since the one before. None: it was not needed.
    """

    orchestrator: str
    before: str
    after: str
    backup: Path | None
    sealed_at: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"backup": None if self.backup is None else str(self.backup)}


@dataclass(frozen=True, slots=True)
class JournalState:
    """The head of a journal and its anchor.

    Attributes:
        seq, hash: of the last entry; 0 and an empty text: there is none.
        anchored: the number of the entry in the anchor; None: it cannot be read.
        lost: how many acknowledged entries are missing at the end; None: unknown. With a
            ``state`` of ``behind``, 0 means that entries were replaced by others.
    """

    orchestrator: str
    state: AnchorState
    seq: int
    hash: str
    anchored: int | None
    lost: int | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"state": self.state.value}


def verify(
    opened: Opened, progress: Progress | None = None, stop: Callable[[], bool] = lambda: False
) -> VerifyReport:
    """Audit the database; see ``memgraph.audit.verify``. Nothing is changed."""
    proofs = RedactionProofs(opened.paths)
    key = opened.database.journal_key
    return audit.verify(
        opened.database, progress, stop, proofs=proofs, anchor_file=opened.anchor_file, key=key
    )


def accept_journal(opened: Opened, *, reason: str, actor: str) -> None:
    """Anchor the journal as it is, although it disagrees with its anchor; that is journalled.

    Redactions that no signed report covers are signed as accepted, and the tables are journalled as
    they are.

    For an operator who knows why they differ: a lost anchor, a power cut under
    ``storage.synchronous = NORMAL``. The entry keeps visible who accepted it.
    """
    if not reason.strip():
        raise InvalidInput("accepting a journal needs a reason")
    path = opened.anchor_file
    with opened.transaction(actor, accepting=True) as transaction:
        transaction.tell([Entry("accept_journal", None, {"reason": reason, **told_anchor(path)})])
    with opened.database.write() as transaction:
        at = opened.clock.now_ms()
        accept_redactions(opened.paths, transaction, at=at, reason=reason)
        health.note(transaction, at, {})
        anchor.write(path, Head(*journal_head(transaction)))


def journal_state(opened: Opened) -> JournalState:
    """Return how the journal and its anchor agree. Nothing is changed."""
    anchored = anchor.read_state(opened.anchor_file)
    with opened.database.read() as snapshot:
        state = anchor.compare(snapshot, anchored)
        seq, sealed = journal_head(snapshot)
    remembered = anchored.seq if isinstance(anchored, Head) else None
    return JournalState(
        orchestrator=opened.paths.name,
        state=state,
        seq=seq,
        hash=sealed,
        anchored=remembered,
        lost=max(remembered - seq, 0) if remembered is not None else None,
    )


def backup(
    opened: Opened,
    target: Path,
    *,
    force: bool = False,
    accept_findings: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> BackupReport:
    """Copy the database into one file while it is in use, and audit the copy.

    Args:
        force: replace an existing file.
        accept_findings: accept findings of the audit; damaged pages never.
        progress: called with pages copied and pages in all.

    Raises:
        Conflict: the file exists.
        InvalidInput: ``target`` is a part of a live orchestrator, or a folder.
        DatabaseCorrupt, JournalBroken: the copy does not pass the audit; it is removed.
    """
    target = target.expanduser().absolute()
    _require_free_target(opened, target, force)
    name = opened.database.orchestrator_id
    with copying.draft_beside(target) as draft:
        anchored = _sound_anchor(opened.anchor_file)
        copying.copy_online(opened.database.path, draft, progress)
        with integrity.alone(draft) as transaction:
            head = Head(*journal_head(transaction))
            stamp = {"at": iso(opened.clock.now_ms()), "seq": head.seq, "hash": head.hash}
            metadata.put(transaction, BACKUP_KEY, json.dumps(stamp))
        what, proofs = f"the database of {name}", RedactionProofs(opened.paths)
        report = checked_copy(
            draft, anchored, accept_findings, what, proofs, opened.database.journal_key
        )
        size = draft.stat().st_size
        copying.publish(draft, target, force=force)
    opened.log.info("backup", memories=report.checked.get("memories", 0), bytes=size)
    return BackupReport(
        orchestrator=name,
        path=target,
        bytes=size,
        memories=report.checked.get("memories", 0),
        journal_entries=head.seq,
        findings=dict(report.totals),
    )


def upgrade(paths: OrchestratorPaths, clock: Clock, *, key: bytes | None = None) -> UpgradeReport:
    """Bring the schema of an orchestrator to this version, after a backup beside it.

    Raises:
        SchemaTooNew, StorageError: it cannot be upgraded and is unchanged.
    """
    kept: list[Path] = []

    def keep() -> None:
        target = free_name(paths.memory / "backups", "before-upgrade", clock.now_ms(), ".db")
        with copying.draft_beside(target) as draft:
            copying.copy_online(paths.database, draft)
            copying.publish(draft, target, force=False)
        kept.append(target)

    with naming_full_disk(paths.memory):
        done = provisioning.upgrade(paths.database, paths.name, first=keep, key=key)
    backup = kept[0] if kept else None
    return UpgradeReport(paths.name, done.before, done.after, backup, done.sealed_at)


def _require_free_target(opened: Opened, target: Path, force: bool) -> None:
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder; name a file for the backup")
    if os.path.lexists(target) and not force:
        raise Conflict(f"there is a file already: {target}", path=str(target))
    # With force a backup could replace the very database that it is made of, or another's.
    folder = Path(os.path.realpath(target.parent))
    if folder.name == "memory" and folder.is_relative_to(os.path.realpath(opened.paths.root)):
        raise InvalidInput("a backup does not go into the memory folder of an orchestrator")


def _sound_anchor(path: Path) -> Head | None:
    try:
        return anchor.read(path)
    except JournalBroken:
        # ``verify`` reports it; the copy is checked against itself.
        return None
