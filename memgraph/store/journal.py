"""Rows of ``audit_log``, a hash chain of journal entries, and the seals of memories.

``hash = sha256(previous hash, newline, JSON of [seq, at, actor, action, subject, details])``, the
JSON without spaces and with sorted keys; ``state`` follows the details if the entry has one (see
``memgraph.store.whole_tables``). With a key (``memory.audit.key_file``) it is HMAC-SHA256 of the
same. Editing, removing or reordering an entry breaks every later hash. The anchor, which is stored
outside of the database, reveals that the end was cut off.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import CapturedBy, MemoryKind, SourceType
from memgraph.model.values import compact_json
from memgraph.store import tables
from memgraph.store.rows import compact_array
from memgraph.store.snapshot import InsertRows, NewEntry, Snapshot, Transaction
from memgraph.store.statements import bound, prepared, value

SEAL: Final = "seal"
"""The action of an entry that only records the state of the tables."""
_COLUMNS: Final = ("seq", "at", "actor", "action", "subject", "details", "hash", "state")
insert = InsertRows("audit_log", _COLUMNS)


class JournalHead(NamedTuple):
    """The end of the journal: the number of its last entry and its seal; 0 and "" if empty."""

    seq: int
    hash: str


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
    """Return the seal of an entry.

    Args:
        previous: the seal of the previous entry, or "".
        details: the JSON text as stored.
        state: the state of the tables, if the entry records it.
        key: the key of a keyed journal, which uses HMAC-SHA256 instead of SHA-256.
    """
    fields = [seq, at, actor, action, subject, details]
    sealed = compact_array(fields if state is None else [*fields, state])
    text = f"{previous}\n{sealed}".encode()
    return (
        hashlib.sha256(text).hexdigest() if key is None else hmac.digest(key, text, "sha256").hex()
    )


def is_keyed(snapshot: Snapshot, key: bytes) -> bool:
    """Return True if the last entry is sealed with this key, or the journal is empty."""
    log = tables.audit_log
    fields = (log.c.seq, log.c.at, log.c.actor, log.c.action, log.c.subject, log.c.details)
    query = sa.select(log.c.hash, *fields, log.c.state).order_by(log.c.seq.desc()).limit(2)
    rows = snapshot.rows(query)
    if not rows:
        return True
    previous = rows[1][0] if len(rows) > 1 else ""
    return bool(chain_hash(previous, *rows[0][1:], key=key) == rows[0][0])


@prepared
def _of_entry(name: str) -> sa.Select[Any]:
    log = tables.audit_log
    return sa.select(log.c[name]).where(log.c.seq == value("seq"))


def append(
    transaction: Transaction,
    entries: Sequence[NewEntry],
    *,
    at: int,
    actor: str,
    state: str | None = None,
    key: bytes | None = None,
) -> JournalHead:
    """Append entries, inside the caller's transaction.

    Args:
        state: the digests of the tables for the last entry; None: no table changed.
        key: of a keyed journal.
    """
    seq, last = head(transaction)
    rows = []
    for number, entry in enumerate(entries, 1):
        seq += 1
        entry_state = state if number == len(entries) else None
        row = (seq, at, actor, entry.action, entry.subject, compact_json(entry.details))
        last = chain_hash(last, *row, entry_state, key=key)
        rows.append((*row, last, entry_state))
    insert(transaction, rows)
    return JournalHead(seq, last)


def append_seal(transaction: Transaction, state: str, *, key: bytes | None = None) -> None:
    """Append an entry that only records a state, with the time of the previous entry."""
    at = _of_entry("at").scalar(transaction, seq=head(transaction).seq) or 0
    entry = NewEntry(SEAL, None, {})
    append(transaction, [entry], at=at, actor="memgraph", state=state, key=key)


@prepared
def _sealed_state() -> sa.Select[Any]:
    log = tables.audit_log
    query = sa.select(log.c.state).where(log.c.state.is_not(None))
    return query.order_by(log.c.seq.desc()).limit(1)


def sealed_state(snapshot: Snapshot) -> str | None:
    """Return the last recorded state of the tables; None if there is none yet."""
    state: str | None = _sealed_state().scalar(snapshot)
    return state


@prepared
def _head() -> sa.Select[Any]:
    log = tables.audit_log
    return sa.select(log.c.seq, log.c.hash).order_by(log.c.seq.desc()).limit(1)


def head(snapshot: Snapshot) -> JournalHead:
    """Return the end of the journal."""
    return JournalHead(*(_head().row(snapshot) or (0, "")))


def hash_of(snapshot: Snapshot, seq: int) -> str | None:
    """Return the seal of an entry; None if it does not exist."""
    seal: str | None = _of_entry("hash").scalar(snapshot, seq=seq)
    return seal


def has_several_changes(snapshot: Snapshot) -> bool:
    """Return True if the entries are of more than one transaction, not counting seals."""
    # Each change records a state of the tables in its last entry.
    log = tables.audit_log
    changes = sa.select(log.c.seq).where(log.c.state.is_not(None), log.c.action != SEAL)
    return len(snapshot.column(changes.order_by(log.c.seq).limit(2))) > 1


def author_of(snapshot: Snapshot, memory_id: str) -> str | None:
    """Return the actor who stored a memory; None if the journal does not record it."""
    log = tables.audit_log
    stored = sa.select(log.c.actor).where(
        log.c.subject == bound(memory_id), log.c.action == "remember"
    )
    actor: str | None = snapshot.scalar(stored.order_by(log.c.seq).limit(1))
    return actor


def authors_of_turns(snapshot: Snapshot, memory_id: str) -> frozenset[str]:
    """Return the actors who stored the turns that a fact was extracted from.

    The set is empty if it was not extracted from turns, or if one of the actors is unknown.
    """
    fact, turn = tables.memories.alias("m"), tables.memories.alias("t")
    s, d, a = tables.sources, tables.derivations, tables.audit_log
    stored = (a.c.subject == turn.c.memory_id) & (a.c.action == "remember")
    turns = fact.join(s, s.c.source_id == fact.c.source_id)
    turns = turns.join(d, d.c.memory_id == fact.c.memory_id)
    turns = turns.join(turn, turn.c.memory_id == d.c.derived_from_id)
    query = (
        sa.select(a.c.actor)
        .distinct()
        .select_from(turns.outerjoin(a, stored))
        .where(fact.c.memory_id == bound(memory_id), turn.c.kind == MemoryKind.EPISODE)
        .where(s.c.captured_by == CapturedBy.EXTRACTOR)
        .where(s.c.source_type == SourceType.CHANNEL_TRANSCRIPT)
    )
    actors = snapshot.column(query)
    return frozenset() if None in actors else frozenset(map(str, actors))


SEALED_FIELDS: Final = (
    *("memory_id", "kind", "type", "content", "summary", "sensitivity", "scope", "scope_id"),
    *("agent_id", "session_id", "sequence", "turn_id", "source_role", "event_time"),
    *("created_at", "source_id"),
)


def memory_seal(row: Mapping[str, Any]) -> str:
    """Return the hex SHA-256 of the sealed fields as a compact JSON array.

    Args:
        row: the columns of ``memories``; only ``SEALED_FIELDS`` are used.
    """
    sealed = compact_array([row[name] for name in SEALED_FIELDS])
    return hashlib.sha256(sealed.encode("utf-8", "surrogatepass")).hexdigest()
