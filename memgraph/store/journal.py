"""Rows of ``audit_log``, each sealed with the one before it; ``memgraph.audit`` writes them.

``hash = sha256(previous hash, newline, JSON of [seq, at, actor, action, subject, details])``, the
JSON without spaces and with sorted keys; ``state`` follows the details where the entry has one (see
``storage/table_digests``). With a key (``memory.audit.key_file``) it is HMAC-SHA256 of the same.
Who edits, removes or reorders an entry breaks every hash that follows; who cuts the end off is
betrayed by the anchor beside the database.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from typing import Any, Final

import sqlalchemy as sa

from memgraph.store import tables
from memgraph.store.rows import compact_array
from memgraph.store.snapshot import Insert, Snapshot, Transaction, driver

SEAL: Final = "seal"
"""The action of an entry that tells a state alone."""
UPGRADE: Final = "upgrade"
"""The action of the entry that tells the state after an upgrade."""
_COLUMNS: Final = ("seq", "at", "actor", "action", "subject", "details", "hash", "state")
_insert = Insert("audit_log", _COLUMNS)


def chain_hash(
    previous: str,
    seq: int,
    at: int,
    actor: str,
    action: str,
    subject: str | None,
    details: str,
    state: str | None = None,
    *,
    key: bytes | None = None,
) -> str:
    """The seal of one entry; ``details`` is its JSON text as stored.

    Args:
        key: of a keyed journal: HMAC-SHA256 takes the place of SHA-256.
    """
    said = [seq, at, actor, action, subject, details]
    sealed = compact_array(said if state is None else [*said, state])
    text = f"{previous}\n{sealed}".encode()
    return (
        hashlib.sha256(text).hexdigest() if key is None else hmac.digest(key, text, "sha256").hex()
    )


def is_keyed(snapshot: Snapshot, key: bytes) -> bool:
    """Return whether the last entry is sealed with a key; so is an empty journal."""
    rows = driver(snapshot).execute(
        "SELECT hash, seq, at, actor, action, subject, details, state FROM audit_log"
        " ORDER BY seq DESC LIMIT 2"
    )
    found: list[tuple[Any, ...]] = rows.fetchall()
    if not found:
        return True
    previous = found[1][0] if len(found) > 1 else ""
    return bool(chain_hash(previous, *found[0][1:], key=key) == found[0][0])


def append_seal(
    transaction: Transaction, state: str, *, action: str = SEAL, key: bytes | None = None
) -> None:
    """Add an entry that tells a state and nothing else, at the moment of the one before it."""
    seq, last = head(transaction)
    found = driver(transaction).execute("SELECT at FROM audit_log WHERE seq = ?", (seq,)).fetchone()
    entry = (seq + 1, 0 if found is None else found[0], "memgraph", action, None, "{}")
    _insert(transaction, [(*entry, chain_hash(last, *entry, state, key=key), state)])


def sealed_state(snapshot: Snapshot) -> str | None:
    """Return the state that the journal told last; None: it told none yet."""
    found = driver(snapshot).execute(
        "SELECT state FROM audit_log WHERE state IS NOT NULL ORDER BY seq DESC LIMIT 1"
    )
    row = found.fetchone()
    return None if row is None else str(row[0])


def head(snapshot: Snapshot) -> tuple[int, str]:
    """(seq, hash) of the last entry; (0, "") of an empty journal."""
    found = driver(snapshot).execute("SELECT seq, hash FROM audit_log ORDER BY seq DESC LIMIT 1")
    return found.fetchone() or (0, "")


def hash_of(snapshot: Snapshot, seq: int) -> str | None:
    """The seal of one entry; None: there is no such entry."""
    found = driver(snapshot).execute("SELECT hash FROM audit_log WHERE seq = ?", (seq,))
    row = found.fetchone()
    return None if row is None else str(row[0])


def author_of(snapshot: Snapshot, memory_id: str) -> str | None:
    """Return who stored a memory; None: its journal does not tell."""
    found = driver(snapshot).execute(
        "SELECT actor FROM audit_log WHERE subject = ? AND action = 'remember'"
        " ORDER BY seq LIMIT 1",
        (memory_id,),
    )
    row = found.fetchone()
    return None if row is None else str(row[0])


def insert(transaction: Transaction, rows: Sequence[Sequence[Any]]) -> None:
    """Rows of seq, at, actor, action, subject, details, hash, state."""
    _insert(transaction, rows)


def entries(
    snapshot: Snapshot,
    *,
    subject: str | None = None,
    after: int = 0,
    limit: int | None = None,
) -> Iterator[sa.Row[Any]]:
    """Entries in order, all or those about one memory."""
    statement = sa.select(tables.audit_log).where(tables.audit_log.c.seq > after)
    if subject is not None:
        statement = statement.where(tables.audit_log.c.subject == subject)
    yield from snapshot.execute(statement.order_by(tables.audit_log.c.seq).limit(limit))
