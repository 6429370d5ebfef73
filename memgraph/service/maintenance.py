"""An operator's work on an open orchestrator: verify, back up, upgrade, accept a journal."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memgraph.audit import anchor
from memgraph.audit import verify as audit
from memgraph.audit.findings import Progress, VerifyReport
from memgraph.audit.journal import Entry, Head
from memgraph.clock import Clock, iso
from memgraph.errors import (
    Conflict,
    InvalidInput,
    JournalBroken,
)
from memgraph.paths import OrchestratorPaths
from memgraph.service.copies import BACKUP_KEY, checked_copy, free_name, told_anchor
from memgraph.service.opened import Opened
from memgraph.storage import backup as copying
from memgraph.storage import integrity, metadata, provisioning
from memgraph.storage.journal import head as journal_head


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
    """Schema revisions before and after; ``backup`` is None where there was nothing to do."""

    orchestrator: str
    before: str
    after: str
    backup: Path | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"backup": None if self.backup is None else str(self.backup)}


def verify(opened: Opened, progress: Progress | None = None) -> VerifyReport:
    """Audit the database; see ``memgraph.audit.verify``. Nothing is changed."""
    return audit.verify(opened.database, progress)


def accept_journal(opened: Opened, *, reason: str, actor: str) -> None:
    """Anchor the journal as it is, although it disagrees with its anchor; that is journalled.

    For an operator who knows why they differ: a lost anchor, a power cut under
    ``storage.synchronous = NORMAL``. Who cut the journal stays visible in the entry.
    """
    if not reason.strip():
        raise InvalidInput("accepting a journal needs a reason")
    path = anchor.anchor_path(opened.database.path)
    with opened.transaction(actor) as transaction:
        transaction.tell([Entry("accept_journal", None, {"reason": reason, **told_anchor(path)})])
    with opened.database.write() as connection:
        anchor.write(path, Head(*journal_head(connection)))


def backup(
    opened: Opened,
    target: Path,
    *,
    force: bool = False,
    accept_findings: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> BackupReport:
    """Copy the database into one file while it is in use, and check the copy.

    Args:
        force: replace a file that is there.
        accept_findings: back up a database in which the audit finds something; never one with
            damaged pages.
        progress: called with pages copied and pages in all.

    Raises:
        Conflict: there is a file already.
        InvalidInput: ``target`` is a part of a live orchestrator, or a folder.
        DatabaseCorrupt, JournalBroken: the copy does not pass the audit; it is removed.
    """
    target = target.expanduser().absolute()
    _require_free_target(opened, target, force)
    name = opened.database.orchestrator_id
    with copying.draft_beside(target) as draft:
        anchored = _sound_anchor(opened.database.path)
        copying.copy_online(opened.database.path, draft, progress)
        with integrity.alone(draft) as connection:
            head = Head(*journal_head(connection))
            stamp = {"at": iso(opened.clock.now_ms()), "seq": head.seq, "hash": head.hash}
            metadata.put(connection, BACKUP_KEY, json.dumps(stamp))
        report = checked_copy(draft, anchored, accept_findings, f"the database of {name}")
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


def upgrade(paths: OrchestratorPaths, clock: Clock) -> UpgradeReport:
    """Bring the schema of an orchestrator to this version, after a backup beside it.

    Raises:
        SchemaTooNew, StorageError: it cannot be upgraded and is as it was.
    """
    kept: list[Path] = []

    def keep() -> None:
        target = free_name(paths.memory / "backups", "before-upgrade", clock.now_ms(), ".db")
        with copying.draft_beside(target) as draft:
            copying.copy_online(paths.database, draft)
            copying.publish(draft, target, force=False)
        kept.append(target)

    before, after = provisioning.upgrade(paths.database, paths.name, first=keep)
    return UpgradeReport(paths.name, before, after, kept[0] if kept else None)


def _require_free_target(opened: Opened, target: Path, force: bool) -> None:
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder; name a file for the backup")
    if os.path.lexists(target) and not force:
        raise Conflict(f"there is a file already: {target}", path=str(target))
    # With force a backup could replace the very database that it is made of, or another's.
    folder = Path(os.path.realpath(target.parent))
    if folder.name == "memory" and folder.is_relative_to(os.path.realpath(opened.paths.root)):
        raise InvalidInput("a backup does not go into the memory folder of an orchestrator")


def _sound_anchor(database: Path) -> Head | None:
    try:
        return anchor.read(anchor.anchor_path(database))
    except JournalBroken:
        # ``verify`` tells of it; the copy is checked against itself.
        return None
