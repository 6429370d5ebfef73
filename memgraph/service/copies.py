"""Shared by backups, restores and upgrades: audited copies and free file names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from memgraph.audit import anchor
from memgraph.audit import verify as audit
from memgraph.audit.findings import Code, VerifyReport
from memgraph.audit.journal import Head
from memgraph.audit.redactions import Proofs
from memgraph.clock import iso
from memgraph.errors import DatabaseCorrupt, JournalBroken
from memgraph.store import integrity

BACKUP_KEY = "backup"
# Findings that are never accepted.
UNUSABLE = frozenset({Code.DATABASE_DAMAGED, Code.SCHEMA_CHANGED})
# What is compared with the journal. Where that is broken, it says nothing of the memories.
COMPARED = frozenset(
    {
        Code.MEMORY_EDITED,
        Code.MEMORY_UNJOURNALLED,
        Code.STATUS_UNJOURNALLED,
        Code.STATUS_EDITED,
        Code.EDGE_EDITED,
        Code.EDGE_UNJOURNALLED,
        Code.TABLE_EDITED,
        Code.TABLE_UNSEALED,
    }
)


def checked_copy(
    draft: Path,
    anchored: Head | None,
    accept: bool,
    what: str,
    proofs: Proofs | None = None,
    key: bytes | None = None,
) -> VerifyReport:
    """Audit a copy that is to be used; ``proofs``: of redactions, None: not checked.

    Raises:
        DatabaseCorrupt, JournalBroken: the audit found something unacceptable.
    """
    with integrity.snapshot(draft) as snapshot:
        report = audit.check_copy(snapshot, anchored, proofs=proofs, key=key)
    # What can be made anew does not stand in the way of a copy.
    if report.rebuildable or (accept and not UNUSABLE & set(report.totals)):
        return report
    told = ", ".join(f"{count} x {code}" for code, count in sorted(report.totals.items()))
    broken = {code for code in report.totals if code.startswith("journal.")}
    journal_only = broken and set(report.totals) - broken <= COMPARED
    kind: type[JournalBroken | DatabaseCorrupt] = JournalBroken if journal_only else DatabaseCorrupt
    raise kind(f"{what} does not pass the audit: {told}", findings=dict(report.totals))


def told_anchor(path: Path) -> dict[str, Any]:
    """Return the anchor's content for the journal."""
    try:
        head = anchor.read(path)
    except JournalBroken:
        return {"anchor": "damaged"}
    return {"anchor": None if head is None else {"seq": head.seq, "hash": head.hash}}


def free_name(folder: Path, prefix: str, at: int, suffix: str = "") -> Path:
    """Return an unused name in ``folder`` that contains the time."""
    when = iso(at).translate({ord("-"): None, ord(":"): None, ord("."): None})
    number = 0
    while True:
        found = folder / f"{prefix}-{when}{f'-{number}' if number else ''}{suffix}"
        if not os.path.lexists(found):
            return found
        number += 1
