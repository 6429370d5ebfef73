"""Append journal entries, and seal memories."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memgraph.errors import InvalidConfig
from memgraph.store import journal
from memgraph.store.journal import chain_hash
from memgraph.store.key_file import own_bytes
from memgraph.store.rows import compact_array, compact_json
from memgraph.store.snapshot import NewEntry, Transaction

LEAST_KEY: Final = 32
"""Minimum length of a key, bytes."""


@dataclass(frozen=True, slots=True)
class JournalHead:
    """The end of the journal."""

    seq: int
    hash: str


def read_key(chosen: str, root: Path) -> bytes | None:
    """Return the key that seals the journals, or None if none is configured.

    Args:
        chosen: the path of ``memory.audit.key_file``; empty: no key.
        root: the runtime root; the file must lie outside it.

    Raises:
        InvalidConfig: the file cannot be read, has less than 32 bytes, lies inside the root, or is
            readable by other users.
    """
    if not chosen:
        return None
    path = Path(chosen).expanduser()
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise InvalidConfig(
            f"{path} must lie outside the root whose journals it seals", path=str(path)
        )
    try:
        key = own_bytes(path).strip()
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read as a key", path=str(path)) from error
    if len(key) < LEAST_KEY:
        raise InvalidConfig(f"{path} must hold at least {LEAST_KEY} bytes", path=str(path))
    return key


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
    seq, last = journal.head(transaction)
    rows = []
    for number, entry in enumerate(entries, 1):
        seq += 1
        entry_state = state if number == len(entries) else None
        row = (seq, at, actor, entry.action, entry.subject, compact_json(entry.details))
        last = chain_hash(last, *row, entry_state, key=key)
        rows.append((*row, last, entry_state))
    journal.insert(transaction, rows)
    return JournalHead(seq, last)


SEALED_FIELDS = (
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
