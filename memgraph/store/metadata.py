"""Key and value facts about the database itself."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from memgraph.store import tables
from memgraph.store.snapshot import Snapshot, Transaction


def get(snapshot: Snapshot, key: str) -> str | None:
    driver: Any = snapshot.driver
    found = driver.execute("SELECT value FROM memory_metadata WHERE key = ?", (key,)).fetchone()
    return None if found is None else str(found[0])


def put(transaction: Transaction, key: str, value: str) -> None:
    transaction.execute(
        sa.insert(tables.metadata).prefix_with("OR REPLACE"), {"key": key, "value": value}
    )


def drop(transaction: Transaction, key: str) -> None:
    """Forget a key; one that is not there is passed over."""
    transaction.execute(sa.delete(tables.metadata).where(tables.metadata.c.key == key))
