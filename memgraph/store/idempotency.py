"""Requests that were done, by the digest of the key that came with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memgraph.store.snapshot import Snapshot, Transaction, driver

# One that is past its time makes room for another request.
_CLAIM = (
    "INSERT INTO idempotency_keys (key_sha256, request_sha256, created_at, memory_ids)"
    " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key_sha256) DO UPDATE SET"
    " request_sha256 = excluded.request_sha256, created_at = excluded.created_at,"
    " memory_ids = excluded.memory_ids, status = NULL, answer = NULL"
    " WHERE idempotency_keys.created_at <= ?5 RETURNING 1"
)
_EXTEND = "UPDATE idempotency_keys SET memory_ids = ? WHERE key_sha256 = ?"
_FIND = (
    "SELECT request_sha256, created_at, memory_ids, status, answer FROM idempotency_keys"
    " WHERE key_sha256 = ? AND created_at > ?"
)
_KEEP = (
    "UPDATE idempotency_keys SET status = ?, answer = ?"
    " WHERE key_sha256 = ? AND request_sha256 = ? AND status IS NULL"
)
_PRUNE = (
    "DELETE FROM idempotency_keys WHERE key_sha256 IN (SELECT key_sha256 FROM idempotency_keys"
    " WHERE created_at <= ? ORDER BY created_at LIMIT ?)"
)

_ANY = "SELECT EXISTS (SELECT 1 FROM idempotency_keys WHERE created_at <= ?)"


@dataclass(frozen=True, slots=True)
class Done:
    """A request that was done. ``status`` None: what was answered is not known, or not yet."""

    request_sha256: str
    created_at: int
    memory_ids: tuple[str, ...]
    status: int | None
    answer: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered, to be kept with it.

    Attributes:
        at: when; None: the request is noted already, by the transaction that did it.
    """

    key_sha256: str
    request_sha256: str
    status: int
    text: str
    at: int | None = None


def claim(
    transaction: Transaction,
    key_sha256: str,
    request_sha256: str,
    memory_ids: Iterable[str],
    *,
    at: int,
    expired: int,
) -> bool:
    """Note that a request is done by this transaction; False: another did it.

    Args:
        expired: one that was noted then, or before, is none.
    """
    row = (key_sha256, request_sha256, at, json.dumps(list(memory_ids)), expired)
    return driver(transaction).execute(_CLAIM, row).fetchone() is not None


def extend(transaction: Transaction, key_sha256: str, memory_ids: Iterable[str]) -> None:
    """Note that the same request wrote more in a further transaction."""
    driver(transaction).execute(_EXTEND, (json.dumps(list(memory_ids)), key_sha256))


def find(snapshot: Snapshot, key_sha256: str, *, expired: int) -> Done | None:
    """The request that was done with a key since ``expired``."""
    row = driver(snapshot).execute(_FIND, (key_sha256, expired)).fetchone()
    if row is None:
        return None
    request_sha256, created_at, memory_ids, status, answer = row
    return Done(request_sha256, created_at, tuple(json.loads(memory_ids)), status, answer)


def keep(transaction: Transaction, answers: Sequence[Answer], *, kept_ms: int) -> None:
    """Keep what was answered, once for each request; those that are not noted yet are now."""
    for each in answers:
        if each.at is not None:
            key, request = each.key_sha256, each.request_sha256
            claim(transaction, key, request, (), at=each.at, expired=each.at - kept_ms)
    rows = [(each.status, each.text, each.key_sha256, each.request_sha256) for each in answers]
    driver(transaction).executemany(_KEEP, rows)


def any_of(snapshot: Snapshot, expired: int) -> bool:
    """Whether there is a request of ``expired`` or before."""
    return bool(driver(snapshot).execute(_ANY, (expired,)).fetchone()[0])


def prune(transaction: Transaction, expired: int, limit: int) -> int:
    """Forget requests of ``expired`` and before, the oldest first; gives how many."""
    return int(driver(transaction).execute(_PRUNE, (expired, limit)).rowcount)
