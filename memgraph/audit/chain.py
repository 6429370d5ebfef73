"""The journal's own soundness: every seal recomputed, the end compared with the anchor."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from memgraph.audit.findings import Code, VerifyReport
from memgraph.audit.journal import Head, chain_hash
from memgraph.storage import integrity

# What erasures took out of entries: number, seal, and the digest of the details as they are now.
_REDACTED = """
    SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2 FROM (
        SELECT seq, CASE WHEN json_valid(details) THEN details ELSE '{}' END AS details
        FROM audit_log WHERE action = 'erase' AND subject IS NULL
    ) a, json_each(a.details, '$.redacted') r ORDER BY a.seq
"""
_ENTRIES = "SELECT seq, at, actor, action, subject, details, hash FROM audit_log ORDER BY seq"


def check_chain(connection: sa.Connection, report: VerifyReport, anchored: Head | None) -> Head:
    """Recompute every seal and compare the anchored entry; gives the journal's head.

    Args:
        anchored: what the anchor said before the snapshot of ``connection`` began; None: there is
            no anchor to compare with (not a finding here).
    """
    head = Head(0, "")
    number = 0
    redacted = {seq: told for seq, *told in integrity.rows(connection, _REDACTED)}
    for entry in _entries(connection):
        seq, sealed = entry[0], str(entry[-1])
        number += 1
        if seq != head.seq + 1:
            report.add(
                Code.JOURNAL_ENTRY_MISSING,
                f"journal entries {head.seq + 1} to {seq - 1} are missing",
                head.seq + 1,
                until=seq - 1,
            )
        if _seal(head.hash, entry) != sealed and not _redacted(entry, redacted.get(seq)):
            report.add(
                Code.JOURNAL_ENTRY_CHANGED,
                f"journal entry {seq} or the one before it was changed, moved or removed",
                seq,
            )
        if anchored is not None and seq == anchored.seq and sealed != anchored.hash:
            report.add(
                Code.JOURNAL_REWRITTEN,
                f"journal entry {seq} is not the one that the anchor remembers",
                seq,
            )
        head = Head(int(seq), sealed)
    if anchored is not None and anchored.seq > head.seq:
        report.add(
            Code.JOURNAL_TRUNCATED,
            f"the journal ends at {head.seq}, the anchor remembers {anchored.seq}",
            head.seq + 1,
            until=anchored.seq,
        )
    report.checked["journal_entries"] = number
    report.checked["journal_redacted"] = len(redacted)
    return head


def _entries(connection: sa.Connection) -> Iterator[tuple[Any, ...]]:
    yield from integrity.rows(connection, _ENTRIES)


def _redacted(entry: tuple[Any, ...], told: list[Any] | None) -> bool:
    """Whether an entry is as an erasure left it, with the seal that it had before."""
    details, sealed = entry[5], entry[6]
    if told is None or not isinstance(details, str):
        return False
    digest = hashlib.sha256(details.encode("utf-8", "surrogatepass")).hexdigest()
    return told == [sealed, digest]


def _seal(previous: str, entry: tuple[Any, ...]) -> str | None:
    try:
        return chain_hash(previous, *entry[:-1])
    except TypeError:  # a column holds bytes, which no entry of ours does
        return None
