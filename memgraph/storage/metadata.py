"""Key and value facts about the database itself."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from memgraph.storage import tables


def get(connection: sa.Connection, key: str) -> str | None:
    driver: Any = connection.connection.driver_connection
    found = driver.execute("SELECT value FROM memory_metadata WHERE key = ?", (key,)).fetchone()
    return None if found is None else str(found[0])


def put(connection: sa.Connection, key: str, value: str) -> None:
    connection.execute(
        sa.insert(tables.metadata).prefix_with("OR REPLACE"), {"key": key, "value": value}
    )


def drop(connection: sa.Connection, key: str) -> None:
    """Forget a key; one that is not there is passed over."""
    connection.execute(sa.delete(tables.metadata).where(tables.metadata.c.key == key))
