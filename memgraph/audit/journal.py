"""The journal: a change is told in the transaction that makes it, each entry seals the last.

``hash = sha256(previous hash, newline, JSON of [seq, at, actor, action, subject, details])``, the
JSON without spaces and with sorted keys. Who edits, removes or reorders an entry breaks every hash
that follows; who cuts the end off is betrayed by the anchor beside the database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from memgraph.storage import journal
from memgraph.storage.encoding import compact_array, compact_json


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: what was done (``remember``, ``resolve``, …), to which memory, with what."""

    action: str
    subject: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the journal."""

    seq: int
    hash: str


def chain_hash(
    previous: str, seq: int, at: int, actor: str, action: str, subject: str | None, details: str
) -> str:
    """The seal of one entry; ``details`` is its JSON text as stored."""
    sealed = compact_array([seq, at, actor, action, subject, details])
    return hashlib.sha256(f"{previous}\n{sealed}".encode()).hexdigest()


def append(connection: sa.Connection, entries: Sequence[Entry], *, at: int, actor: str) -> Head:
    """Add entries at the end, inside the caller's transaction."""
    seq, last = journal.head(connection)
    rows = []
    for entry in entries:
        seq += 1
        details = compact_json(entry.details)
        last = chain_hash(last, seq, at, actor, entry.action, entry.subject, details)
        rows.append((seq, at, actor, entry.action, entry.subject, details, last))
    journal.insert(connection, rows)
    return Head(seq, last)
