"""Append journal entries, and compare stored values with them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memgraph.errors import InvalidConfig
from memgraph.rules.erasure import is_redacted
from memgraph.rules.lifecycle import QUIET, ended_by, lost_to
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


VALUES: Final = ("importance", "confidence", "decay_rate")
"""Numbers of a memory that are journalled when it is stored."""
UNKNOWN: Final = None
ERASED_REASON: Final = "erased"
"""The reason of every period of an erased memory."""
_REPLACED_ITEM: Final = "replaced by a newer item of its id"
# Numbers are stored with six decimals; parsing their text may lose one bit.
_PRECISION: Final = 1e-9


def reasons(action: str, subject: str | None, details: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the status reasons that a journal entry allows; None means any.

    Args:
        action, subject, details: the fields of the entry.
    """
    if action == "erase":
        return frozenset({ERASED_REASON})
    if is_redacted(details):
        return UNKNOWN
    if action == "supersede":
        return _replaced(details)
    reason = details.get("reason")
    if not isinstance(reason, str):
        return UNKNOWN
    if action == "resolve":
        return frozenset({lost_to(str(subject), reason)})
    if action == "reopen":
        # Housekeeping may have retracted the loser earlier; then it is retracted again.
        return QUIET | {f"contradiction reopened: {reason}"}
    if "source" in details:
        verb = "restored" if action == "restore" else "retracted"
        return frozenset({f"its source was {verb}: {reason}"})
    return frozenset({reason})


def _replaced(details: Mapping[str, Any]) -> frozenset[str] | None:
    by = details.get("by")
    if not isinstance(by, str):
        return UNKNOWN
    if details.get("ended"):
        return frozenset({ended_by(by)})
    if "with" in details:
        return frozenset({f"replaced by {by}, with {details['with']} of which it is a part"})
    return frozenset({f"replaced by {by}", _REPLACED_ITEM})


def confidence_after(action: str, details: Mapping[str, Any]) -> Any:
    """Return the confidence of a memory after an entry, or None if it is not recorded."""
    if action == "confirm":
        return 1.0
    if action in ("resolve", "reopen"):
        return details.get("loser_confidence")
    changed = details.get("confidence")
    return changed.get("after") if isinstance(changed, Mapping) else UNKNOWN


def differing(stored: Mapping[str, Any], journalled: Mapping[str, Any]) -> list[str]:
    """Return the names of the values that differ from the recorded ones."""
    return [
        name
        for name, value in stored.items()
        if journalled.get(name) is not UNKNOWN and not _same(value, journalled[name])
    ]


def _same(stored: Any, journalled: Any) -> bool:
    try:
        return bool(abs(stored - journalled) <= _PRECISION)
    except TypeError:
        return False
