"""Store completed requests and their answers, by the digest of their idempotency key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.store import tables
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import prepared, value


@dataclass(frozen=True, slots=True)
class CompletedRequest:
    """A completed request.

    Attributes:
        created_at: when it was recorded, in milliseconds.
        memory_ids: the memories that it wrote.
        status: the status code of the answer; None: the answer is not known (yet).
    """

    request_sha256: str
    created_at: int
    memory_ids: tuple[str, ...]
    status: int | None
    answer: str | None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to a request, to be stored.

    Attributes:
        at: the time in milliseconds to record the request with; None: the transaction that did
            the request has recorded it.
    """

    key_sha256: str
    request_sha256: str
    status: int
    text: str
    at: int | None = None


@prepared
def _claim() -> sa.Insert:
    """Insert a claim of a key for a request, or replace an expired one."""
    done = tables.idempotency_keys
    names = {"key_sha256": "key", "request_sha256": "request"}
    names |= {"created_at": "at", "memory_ids": "ids"}
    new = insert(done).values({column: value(name) for column, name in names.items()})
    replaced = {column: new.excluded[column] for column in names if column != "key_sha256"}
    return new.on_conflict_do_update(
        index_elements=["key_sha256"],
        set_={**replaced, "status": None, "answer": None},
        where=done.c.created_at <= value("expired"),
    )


def claim(
    transaction: Transaction,
    key_sha256: str,
    request_sha256: str,
    memory_ids: Iterable[str],
    *,
    at: int,
    expired: int,
) -> bool:
    """Record that this transaction does a request; return False if another one has done it.

    Args:
        at: the current time, in milliseconds.
        expired: records from this time or earlier have expired.
    """
    row = {"key": key_sha256, "request": request_sha256, "ids": json.dumps(list(memory_ids))}
    return _claim().write(transaction, row, at=at, expired=expired) > 0


@prepared
def _extend() -> sa.Update:
    done = tables.idempotency_keys
    return sa.update(done).where(done.c.key_sha256 == value("key")).values(memory_ids=value("ids"))


def extend(transaction: Transaction, key_sha256: str, memory_ids: Iterable[str]) -> None:
    """Replace the ids that a request wrote, after a further transaction."""
    _extend().write(transaction, key=key_sha256, ids=json.dumps(list(memory_ids)))


@prepared
def _find() -> sa.Select[Any]:
    done = tables.idempotency_keys.c
    query = sa.select(
        done.request_sha256, done.created_at, done.memory_ids, done.status, done.answer
    )
    return query.where(done.key_sha256 == value("key"), done.created_at > value("expired"))


def find(snapshot: Snapshot, key_sha256: str, *, expired: int) -> CompletedRequest | None:
    """Return the request completed with a key after ``expired``, or None."""
    row = _find().row(snapshot, key=key_sha256, expired=expired)
    if row is None:
        return None
    request_sha256, created_at, memory_ids, status, answer = row
    return CompletedRequest(
        request_sha256, created_at, tuple(json.loads(memory_ids)), status, answer
    )


@prepared
def _keep() -> sa.Update:
    done = tables.idempotency_keys
    conditions = (done.c.key_sha256 == value("key"), done.c.request_sha256 == value("request"))
    answer = {"status": value("code"), "answer": value("text")}
    return sa.update(done).where(*conditions, done.c.status.is_(None)).values(answer)


def keep(transaction: Transaction, answers: Sequence[StoredAnswer], *, kept_ms: int) -> None:
    """Store answers, once for each request, and record requests that are not recorded yet.

    Args:
        kept_ms: how long a record is valid, in milliseconds.
    """
    for answer in answers:
        if answer.at is not None:
            key, request = answer.key_sha256, answer.request_sha256
            claim(transaction, key, request, (), at=answer.at, expired=answer.at - kept_ms)
    rows = (
        {
            "code": answer.status,
            "text": answer.text,
            "key": answer.key_sha256,
            "request": answer.request_sha256,
        }
        for answer in answers
    )
    _keep().write_all(transaction, rows)


@prepared
def _any_of() -> sa.Select[Any]:
    done = tables.idempotency_keys
    return sa.select(sa.exists().where(done.c.created_at <= value("expired")))


def any_of(snapshot: Snapshot, expired: int) -> bool:
    """Return True if any request is recorded from ``expired`` or earlier."""
    return bool(_any_of().scalar(snapshot, expired=expired))


@prepared
def _prune() -> sa.Delete:
    done, old = tables.idempotency_keys, tables.idempotency_keys.alias("old")
    oldest = sa.select(old.c.key_sha256).where(old.c.created_at <= value("expired"))
    oldest = oldest.order_by(old.c.created_at).limit(value("limit"))
    return sa.delete(done).where(done.c.key_sha256.in_(oldest))


def prune(transaction: Transaction, expired: int, limit: int) -> int:
    """Remove the oldest ``limit`` requests from ``expired`` or earlier; return their number."""
    return _prune().write(transaction, expired=expired, limit=limit)
