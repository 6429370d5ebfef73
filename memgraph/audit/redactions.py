"""Redactions: the journal entries that an erasure changed, and what proves that it was one.

An entry of the chain lists what was redacted. Whoever can write to the database can forge such an
entry; therefore it is sealed with a secret of the runtime root, outside of the database's folder.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memgraph.model.values import compact_json
from memgraph.store import integrity
from memgraph.store.key_file import erasure_key, made_erasure_key
from memgraph.store.snapshot import NewEntry, Snapshot

ACCEPT: Final = "accept_redactions"
"""The action of an entry that seals the redactions of another root again."""

Listed = tuple[int, str, str]
"""The number and the seal of a redacted entry, and the SHA-256 of its details now."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """The record of a redacted entry in a later entry of the journal.

    ``proven``: the record is sealed with one of the expected secrets.
    """

    listed: Listed
    erasure_id: str
    proven: bool

    def fits(self, details: Any, sealed: str) -> bool:
        """Return True when an entry is unchanged since this redaction."""
        return isinstance(details, str) and self.listed[1:] == (sealed, digest(details))


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sealed(secret: bytes, listed: Sequence[Listed]) -> dict[str, Any]:
    """Return the fields of a journal entry that records redactions."""
    entries = [list(item) for item in listed]
    return {"redacted": entries, "hmac": _hmac(secret, entries)}


def _hmac(secret: bytes, entries: Any) -> str:
    return hmac.digest(secret, compact_json(entries).encode(), "sha256").hex()


def redactions(snapshot: Snapshot, secrets: Sequence[bytes]) -> dict[int, Redaction]:
    """Return the last redaction of each redacted entry, by the entry's number.

    Args:
        secrets: those that may have sealed it.
    """
    result: dict[int, Redaction] = {}
    for (text,) in snapshot.cursor(integrity.redactions()):
        try:
            details = json.loads(text)
            entries, mark = details.get("redacted", []), str(details.get("hmac"))
            listed: list[Listed] = [(int(seq), str(seal), str(now)) for seq, seal, now in entries]
        except (ValueError, TypeError, AttributeError):
            continue
        proven = any(hmac.compare_digest(_hmac(secret, entries), mark) for secret in secrets)
        erasure_id = str(details.get("erasure_id"))
        result |= {item[0]: Redaction(item, erasure_id, proven) for item in listed}
    return result


def secrets_of(root: Path) -> list[bytes]:
    """Return the secrets that may have sealed redactions. Raises InvalidConfig: see its file."""
    key = erasure_key(root)
    return [] if key is None else [key]


def accepted(snapshot: Snapshot, root: Path, reason: str) -> list[NewEntry]:
    """Return the entry that seals the unproven redactions of a journal as they are, if any."""
    found = redactions(snapshot, secrets_of(root)).values()
    unproven = [item.listed for item in found if not item.proven]
    if not unproven:
        return []
    return [NewEntry(ACCEPT, None, {"reason": reason, **sealed(made_erasure_key(root), unproven)})]
