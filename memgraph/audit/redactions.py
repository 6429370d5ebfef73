"""Redactions: the journal entries that an erasure may have changed, and their proofs.

An entry of the chain lists what was redacted. Whoever can write to the database can forge such an
entry, so it proves nothing: the proof is a signed report outside of the database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memgraph.store import integrity
from memgraph.store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Redaction:
    """The record of a redacted entry in a later entry of the journal.

    Attributes:
        seq, hash: the number and the seal of the redacted entry.
        details: the SHA-256 of its details after the redaction.
        listed_in: the number of the entry with this record.
        ended_in: the number of the entry that ended the erasure; None if it did not end.
        entries: the number of entries that the erasure redacted in total.
    """

    seq: int
    hash: str
    details: str
    erasure_id: str
    listed_in: int
    ended_in: int | None
    entries: int

    def fits(self, details: Any, sealed: str) -> bool:
        """Return True when an entry is unchanged since this redaction."""
        if not isinstance(details, str):
            return False
        digest = hashlib.sha256(details.encode("utf-8", "surrogatepass")).hexdigest()
        return (self.hash, self.details) == (sealed, digest)

    @property
    def listed(self) -> tuple[int, str, str]:
        """The redaction as it is listed in a signed report."""
        return self.seq, self.hash, self.details


Proofs = Callable[[Redaction], str | None]
"""Returns the reason why a redaction lacks a proof outside of the database; None if it has one."""


def redactions(snapshot: Snapshot) -> dict[int, Redaction]:
    """Return the last redaction of each redacted entry, by the entry's number."""
    # Some engines return an element of JSON as text.
    rows = [(_number(seq), *rest) for seq, *rest in integrity.redactions().rows(snapshot)]
    entries: dict[str, set[Any]] = {}
    for seq, _, _, erasure_id, *_ in rows:
        entries.setdefault(str(erasure_id), set()).add(seq)
    return {
        seq: Redaction(
            seq, str(sealed), str(details), str(erasure), at, end, len(entries[str(erasure)])
        )
        for seq, sealed, details, erasure, at, end in rows
        if seq is not None
    }


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int) or str(value).isdecimal() else None
