"""The journal: a change is recorded in its own transaction, each entry seals the last.

``storage/journal.py`` defines how an entry is sealed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memgraph.errors import InvalidConfig
from memgraph.store import journal
from memgraph.store.journal import chain_hash
from memgraph.store.key_file import own_bytes
from memgraph.store.rows import compact_json
from memgraph.store.snapshot import Transaction

LEAST_KEY: Final = 32
"""Minimum length of a key, bytes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: the action (``remember``, ``resolve``, …), the memory, and the details."""

    action: str
    subject: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the journal."""

    seq: int
    hash: str


def read_key(chosen: str, root: Path) -> bytes | None:
    """Return the key that seals the journals; None: there is none.

    Args:
        chosen: the path of ``memory.audit.key_file``; empty: no key.
        root: the runtime root, outside of which the file has to lie.

    Raises:
        InvalidConfig: it cannot be read, is shorter than 32 bytes, lies in the root, or others may
            read it.
    """
    if not chosen:
        return None
    path = Path(chosen).expanduser()
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise InvalidConfig(f"{path} lies in the root whose journals it is to seal", path=str(path))
    try:
        key = own_bytes(path).strip()
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read as a key", path=str(path)) from error
    if len(key) < LEAST_KEY:
        raise InvalidConfig(f"{path} holds less than {LEAST_KEY} bytes", path=str(path))
    return key


def append(
    transaction: Transaction,
    entries: Sequence[Entry],
    *,
    at: int,
    actor: str,
    state: str | None = None,
    key: bytes | None = None,
) -> Head:
    """Append entries, inside the caller's transaction.

    Args:
        state: the digests of the tables for the last entry; None: no table changed.
        key: of a keyed journal.
    """
    seq, last = journal.head(transaction)
    rows = []
    for number, entry in enumerate(entries, 1):
        seq += 1
        told = state if number == len(entries) else None
        row = (seq, at, actor, entry.action, entry.subject, compact_json(entry.details))
        last = chain_hash(last, *row, told, key=key)
        rows.append((*row, last, told))
    journal.insert(transaction, rows)
    return Head(seq, last)
