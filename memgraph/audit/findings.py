"""Findings of an audit: values with stable codes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pydantic
from pydantic import computed_field

from memgraph.clock import iso
from memgraph.model.values import Value

# A badly damaged database may have a finding per row: the list is limited, the counts are complete.
MAX_PER_CODE = 100


class FindingCode(StrEnum):
    """The kinds of damage. ``memgraph rebuild`` repairs those in `REBUILDABLE`."""

    DATABASE_DAMAGED = "database.damaged"
    INDEX_DAMAGED = "index.damaged"
    SCHEMA_CHANGED = "schema.changed"
    ROW_DAMAGED = "row.damaged"
    REFERENCE_DANGLING = "reference.dangling"
    JOURNAL_ENTRY_CHANGED = "journal.entry_changed"
    JOURNAL_ENTRY_MISSING = "journal.entry_missing"
    JOURNAL_REDACTION_UNPROVEN = "journal.redaction_unproven"
    JOURNAL_UNKEYED = "journal.unkeyed"
    JOURNAL_TRUNCATED = "journal.truncated"
    JOURNAL_REWRITTEN = "journal.rewritten"
    JOURNAL_ANCHOR_MISSING = "journal.anchor_missing"
    JOURNAL_ANCHOR_DAMAGED = "journal.anchor_damaged"
    MEMORY_CONTENT_DAMAGED = "memory.content_damaged"
    MEMORY_EDITED = "memory.edited"
    MEMORY_UNJOURNALLED = "memory.unjournalled"
    MEMORY_MISSING = "memory.missing"
    STATUS_MISMATCH = "status.mismatch"
    STATUS_HISTORY_BROKEN = "status.history_broken"
    STATUS_UNJOURNALLED = "status.unjournalled"
    TABLE_EDITED = "table.edited"
    TABLE_UNSEALED = "table.unsealed"
    TEXT_INDEX_DRIFT = "text_index.drift"
    VECTOR_DAMAGED = "vector.damaged"
    VECTOR_MISSING = "vector.missing"
    VECTOR_INDEX_STRAY = "vector_index.stray"
    ENTITY_COUNT_WRONG = "entity.count_wrong"


REBUILDABLE = frozenset(
    {
        FindingCode.INDEX_DAMAGED,
        FindingCode.TEXT_INDEX_DRIFT,
        FindingCode.VECTOR_DAMAGED,
        FindingCode.VECTOR_MISSING,
        FindingCode.VECTOR_INDEX_STRAY,
        FindingCode.ENTITY_COUNT_WRONG,
    }
)


@dataclass(frozen=True, slots=True)
class AuditDefect:
    """A defect. ``subject``: the id of the object."""

    code: FindingCode
    message: str
    subject: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@pydantic.dataclasses.dataclass(slots=True, config={"defer_build": True})
class VerifyReport:
    """The checks of an audit and their findings.

    Attributes:
        findings: in order, at most `MAX_PER_CODE` of each code.
        totals: the number of findings by code, without that limit.
        checked: the number of checked objects by kind.
        last_at: the time of the journal's last entry, milliseconds; None if it has no entries.
    """

    findings: list[AuditDefect] = field(default_factory=list)
    totals: Counter[str] = field(default_factory=Counter)
    checked: dict[str, int] = field(default_factory=dict)
    last_at: int | None = None

    @computed_field  # type: ignore[prop-decorator]  # mypy does not know it
    @property
    def ok(self) -> bool:
        return not self.totals

    @property
    def rebuildable(self) -> bool:
        """True when ``memgraph rebuild`` repairs all findings."""
        return set(self.totals) <= REBUILDABLE

    @computed_field  # type: ignore[prop-decorator]  # mypy does not know it
    @property
    def summary(self) -> str:
        """The report in one line for people."""
        number = self.checked.get("journal_entries", 0)
        entries = "1 entry" if number == 1 else f"{number:,} entries"
        last = (
            ""
            if self.last_at is None
            else f", last at {iso(self.last_at)[:16].replace('T', ' ')} UTC"
        )
        if self.ok:
            return f"OK: {entries}, chain intact{last}"
        total = self.totals.total()
        counts = ", ".join(f"{count:,} x {code}" for code, count in sorted(self.totals.items()))
        findings = "1 finding" if total == 1 else f"{total:,} findings"
        return f"NOT OK: {findings} ({counts}) in {entries}{last}"

    def add(self, code: FindingCode, message: str, subject: Any = None, **details: Any) -> None:
        self.totals[code.value] += 1
        if self.totals[code.value] <= MAX_PER_CODE:
            subject_id = None if subject is None else str(subject)
            self.findings.append(AuditDefect(code, message, subject_id, details))


class AnchorState(StrEnum):
    """The result of comparing a journal with its anchor.

    ``behind``: acknowledged journal entries are missing or were changed. ``missing``, ``damaged``:
    there is no usable anchor to compare with.
    """

    AGREES = "agrees"
    BEHIND = "behind"
    MISSING = "missing"
    DAMAGED = "damaged"


class JournalState(Value):
    """The head of a journal and its anchor.

    Attributes:
        seq, hash: number and hash of the last entry; 0 and "" if the journal is empty.
        anchored: the number of the entry in the anchor; None if there is no readable anchor.
        lost: the number of acknowledged entries missing at the end; None if unknown. If ``state``
            is ``behind``, 0 means that entries were replaced by others.
    """

    orchestrator: str
    state: AnchorState
    seq: int
    hash: str
    anchored: int | None
    lost: int | None
