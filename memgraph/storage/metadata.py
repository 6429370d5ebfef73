"""Key and value facts about the database itself."""

from __future__ import annotations

import sqlalchemy as sa

from memgraph.storage import tables


def get(connection: sa.Connection, key: str) -> str | None:
    statement = "SELECT value FROM memory_metadata WHERE key = ?"
    value = connection.exec_driver_sql(statement, (key,)).scalar()
    return None if value is None else str(value)


def put(connection: sa.Connection, key: str, value: str) -> None:
    connection.execute(
        sa.insert(tables.metadata).prefix_with("OR REPLACE"), {"key": key, "value": value}
    )


def drop(connection: sa.Connection, key: str) -> None:
    """Forget a key; one that is not there is passed over."""
    connection.execute(sa.delete(tables.metadata).where(tables.metadata.c.key == key))
