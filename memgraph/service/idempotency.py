"""Idempotent writes: a request with a key is done once.

A write with a key is recorded in the transaction that does it: both are durable or neither is. The
answer is written a little later; after a crash in between, the record still shows that the write
was done, and which memories it wrote.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final

from memgraph.clock import Clock
from memgraph.errors import InvalidInput, KeyReused
from memgraph.store import idempotency
from memgraph.store.engine import Database
from memgraph.store.erasure import erased_through
from memgraph.store.graph import visible_memories
from memgraph.store.snapshot import NewEntry, Transaction
from memgraph.store.visibility import View

KEPT_MS: Final = 24 * 60 * 60 * 1_000
Committed = Callable[[], None]
MAX_KEY_CHARS: Final = 255
MOST_IDS: Final = 1_000
MOST_WAITING: Final = 200
"""Once this many answers are waiting, they should be written."""


class ClaimTaken(Exception):  # not an error: another request was first
    """Another request with the same key wrote first; this one wrote nothing."""

    def __init__(self, claim: RequestClaim) -> None:
        super().__init__("another request with this key was first")
        self.claim = claim


@dataclass(slots=True)
class RequestClaim:
    """The right of one request to write; taken by its first transaction.

    Attributes:
        memory_ids: the ids of the memories written under it, at most ``MOST_IDS``.
        made: True once a transaction with this claim is durable.
        at: the time of the request; None: the time of its first transaction, by its clock.
    """

    key_sha256: str
    request_sha256: str
    memory_ids: tuple[str, ...] = ()
    made: bool = False
    at: int | None = None

    @classmethod
    def of(cls, actor: str, key: str, *request: bytes) -> RequestClaim:
        """Return the claim for a caller, its key, and the contents of the request.

        Raises:
            InvalidInput: the key is empty, too long, or not printable ASCII.
        """
        if not 1 <= len(key) <= MAX_KEY_CHARS or not (key.isascii() and key.isprintable()):
            raise InvalidInput(
                f"an Idempotency-Key must have 1 to {MAX_KEY_CHARS} printable ASCII characters",
                field="Idempotency-Key",
            )
        return cls(_digest(actor.encode(), key.encode()), _digest(*request))


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """The stored answer to the same request."""

    status: int
    text: str


_CLAIM: ContextVar[RequestClaim | None] = ContextVar("memgraph_claim", default=None)


def current_claim() -> RequestClaim | None:
    """Return the claim of the current request."""
    return _CLAIM.get()


def claim_for_this_request(claim: RequestClaim) -> None:
    """Put every later transaction in this context under a claim."""
    _CLAIM.set(claim)


@contextmanager
def claiming(claim: RequestClaim) -> Iterator[None]:
    """Put every transaction in the block under a claim."""
    token = _CLAIM.set(claim)
    try:
        yield
    finally:
        _CLAIM.reset(token)


def note(
    transaction: Transaction, claim: RequestClaim, entries: Iterable[NewEntry], at: int
) -> Committed:
    """Record the claim in a transaction, as its last step.

    Returns:
        A function to call once the transaction is durable.

    Raises:
        ClaimTaken: another request has the key; the transaction must be undone.
    """
    subjects = [entry.subject for entry in entries if entry.subject is not None]
    memory_ids = tuple(dict.fromkeys((*claim.memory_ids, *subjects)))[:MOST_IDS]
    if claim.made:
        idempotency.extend(transaction, claim.key_sha256, memory_ids)
    else:
        # A job may run with another clock; the lifetime of a key is measured in real time.
        at = at if claim.at is None else claim.at
        key, request = claim.key_sha256, claim.request_sha256
        if not idempotency.claim(
            transaction, key, request, memory_ids, at=at, expired=at - KEPT_MS
        ):
            raise ClaimTaken(claim)

    def committed() -> None:
        claim.made, claim.memory_ids = True, memory_ids

    return committed


class AnswerCache:
    """The answers to requests: kept in memory at once, and written with their claims later.

    Thread-safe. A crash in between loses the answer, never the claim.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._waiting: dict[str, idempotency.StoredAnswer] = {}
        self._lock = threading.Lock()
        # The journal's head at the last erasure that this process knows of.
        self.erased_through = 0

    def find(
        self, claim: RequestClaim, view: View | None = None
    ) -> CachedAnswer | idempotency.CompletedRequest | None:
        """Return the outcome of an earlier identical request, or None.

        A ``CompletedRequest`` was done, but has no answer (yet).

        Args:
            view: return only the written ids that are visible with it.

        Raises:
            KeyReused: the key was used with another request.
            StorageError: the database cannot be read.
        """
        with self._lock:
            waiting = self._waiting.get(claim.key_sha256)
        if waiting is not None:
            _require_same(claim, waiting.request_sha256)
            return CachedAnswer(waiting.status, waiting.text)
        with self._database.read() as snapshot:
            completed = idempotency.find(
                snapshot, claim.key_sha256, expired=self._clock.now_ms() - KEPT_MS
            )
            if view is not None and completed is not None and completed.status is None:
                visible = visible_memories(snapshot, completed.memory_ids, view)
                completed = replace(completed, memory_ids=tuple(visible))
        if completed is None:
            return None
        _require_same(claim, completed.request_sha256)
        if completed.status is None:
            return completed
        return CachedAnswer(completed.status, completed.answer or "")

    def keep(self, claim: RequestClaim, status: int, text: str) -> bool:
        """Keep an answer; return True if enough answers are waiting to write them now.

        A request that was done without a transaction under its claim gets a row with its answer.
        """
        at = None if claim.made else self._clock.now_ms()
        answer = idempotency.StoredAnswer(claim.key_sha256, claim.request_sha256, status, text, at)
        with self._lock:
            self._waiting[claim.key_sha256] = answer
            return len(self._waiting) >= MOST_WAITING

    def flush(self) -> None:
        """Write the waiting answers. After a StorageError they keep waiting."""
        with self._lock:
            due = list(self._waiting.values())
        if not due:
            return
        with self._database.write(durable=False) as transaction:
            through = erased_through(transaction)
            # An answer from before an erasure may contain erased text; its claim stays.
            if through == self.erased_through:
                idempotency.keep(transaction, due, kept_ms=KEPT_MS)
        with self._lock:
            for answer in due:
                if self._waiting.get(answer.key_sha256) is answer:
                    del self._waiting[answer.key_sha256]
            if not self._waiting:
                self.erased_through = through


def _require_same(claim: RequestClaim, request_sha256: str) -> None:
    if request_sha256 != claim.request_sha256:
        raise KeyReused("this Idempotency-Key was used for another request; use a new one")


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        # With their lengths, so that different requests never give the same bytes.
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
