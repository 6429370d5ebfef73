"""Checking the journal itself: every seal recomputed, the end compared with the anchor."""

from __future__ import annotations

from typing import Any

from memgraph.audit.findings import FindingCode, VerifyReport
from memgraph.audit.journal import JournalHead
from memgraph.audit.redactions import Proofs, Redaction, redactions
from memgraph.store import integrity
from memgraph.store.journal import chain_hash
from memgraph.store.snapshot import Snapshot


def check_chain(
    snapshot: Snapshot,
    report: VerifyReport,
    anchored: JournalHead | None,
    proofs: Proofs | None = None,
    key: bytes | None = None,
    start: JournalHead | None = None,
) -> JournalHead:
    """Recompute every seal and compare the anchored entry; return the journal's head.

    Args:
        anchored: the anchor as it was before the snapshot began; None: there is no anchor to
            compare with (not a finding here).
        proofs: the proofs of redactions outside of the database; None: not checked.
        key: of a keyed journal; older entries are sealed without one.
        start: an entry that was checked before; None: from the first one.
    """
    head = start or JournalHead(0, "")
    number = 0
    with_key = False
    redacted = redactions(snapshot)
    keyed = key is not None and start is not None
    for entry in integrity.entries().cursor(snapshot, after=head.seq):
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
        # Once there was a key, nothing without it counts.
        if not with_key and (keyed or _seal(head.hash, entry) != sealed):
            _check_changed(entry, redacted.get(seq), proofs, report)
        if anchored is not None and seq == anchored.seq and sealed != anchored.hash:
            report.add(
                FindingCode.JOURNAL_REWRITTEN,
                f"journal entry {seq} is not the one that the anchor remembers",
                seq,
            )
        head = JournalHead(int(seq), sealed)
        report.last_at = entry[1] if isinstance(entry[1], int) else None
    if anchored is not None and anchored.seq > head.seq:
        report.add(
            FindingCode.JOURNAL_TRUNCATED,
            f"the journal ends at {head.seq}, the anchor remembers {anchored.seq}",
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
    entry: tuple[Any, ...], redaction: Redaction | None, proofs: Proofs | None, report: VerifyReport
) -> None:
    """Report an entry that does not match its seal, unless a proven erasure changed it."""
    seq, details, sealed = entry[0], entry[5], entry[-1]
    if redaction is None or not redaction.fits(details, sealed):
        report.add(
            FindingCode.JOURNAL_ENTRY_CHANGED,
            f"journal entry {seq} or the one before it was changed, moved or removed",
            seq,
        )
    elif proofs is not None and (problem := proofs(redaction)) is not None:
        message = f"the redaction of journal entry {seq} is not proven: {problem}"
        report.add(
            FindingCode.JOURNAL_REDACTION_UNPROVEN, message, seq, erasure_id=redaction.erasure_id
        )


def _seal(previous: str, entry: tuple[Any, ...], key: bytes | None = None) -> str | None:
    try:
        return chain_hash(previous, *entry[:-1], key=key)
    except TypeError:  # a column holds bytes, which no entry of ours does
        return None
