"""Key and value facts about the database itself."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from memgraph.store import tables
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import prepared, replacing, value


@prepared
def _get() -> sa.Select[Any]:
    held = tables.metadata.c
    return sa.select(held.value).where(held.key == value("key"))


def get(snapshot: Snapshot, key: str) -> str | None:
    """Return the value of a key; None: it is not there."""
    found = _get().scalar(snapshot, key=key)
    return None if found is None else str(found)


@prepared
def _put() -> sa.Insert:
    return replacing(tables.metadata)


def put(transaction: Transaction, key: str, value: str) -> None:
    """Set the value of a key."""
    _put().write(transaction, key=key, value=value)


@prepared
def _drop() -> sa.Delete:
    return sa.delete(tables.metadata).where(tables.metadata.c.key == value("key"))


def drop(transaction: Transaction, key: str) -> None:
    """Forget a key; one that is not there is passed over."""
    _drop().write(transaction, key=key)
