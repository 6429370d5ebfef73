"""Key and value facts about the database itself."""

from __future__ import annotations

import sqlalchemy as sa

from memgraph.model.tables import MetadataRow

metadata: sa.Table = MetadataRow.__table__  # type: ignore[attr-defined]  # SQLModel sets it


def get(connection: sa.Connection, key: str) -> str | None:
    value = connection.execute(sa.select(metadata.c.value).where(metadata.c.key == key)).scalar()
    return None if value is None else str(value)


def put(connection: sa.Connection, key: str, value: str) -> None:
    connection.execute(sa.insert(metadata).prefix_with("OR REPLACE"), {"key": key, "value": value})
