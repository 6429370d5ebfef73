"""Record the rows that a transaction changes, by triggers of its connection in a temporary table.

They are temporary: the file does not hold them, so whoever writes it in another way leaves no trace
there, and ``trusted_schema = OFF`` lets them call a function of this process. The table takes part
in every rollback of a statement, of a savepoint and of the transaction.
"""

from __future__ import annotations

from typing import Any

import pysqlite3.dbapi2 as driver

from memgraph.store import table_digests
from memgraph.store.engine import RowChange
from memgraph.store.table_digests import DigestedColumns

_TABLE = "row_changes"
_FUNCTION = "memgraph_row_digest"
_TAKE = f"SELECT name, sign, digest FROM temp.{_TABLE}"


def columns_of(connection: Any, table: str) -> tuple[str, ...]:
    """Return the names of a table's columns in their order."""
    return tuple(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))


def watch(connection: Any) -> None:
    """Begin to record the changes of a driver connection, outside a transaction; idempotent."""
    if _is_watching(connection):
        return
    execute = connection.execute
    # Only so does REPLACE fire triggers for the rows that it removes.
    execute("PRAGMA recursive_triggers = ON")
    connection.create_function(_FUNCTION, -1, table_digests.row_digest, deterministic=True)
    execute(f"CREATE TEMP TABLE {_TABLE} (name TEXT, sign INTEGER, digest BLOB)")
    for digested in table_digests.digested_columns(lambda table: columns_of(connection, table)):
        listed = ", ".join(digested.columns)
        went, came = _noted(digested, -1, "OLD"), _noted(digested, 1, "NEW")
        for event, body in (
            ("INSERT", came),
            ("DELETE", went),
            (f"UPDATE OF {listed}", f"{went}; {came}"),
        ):
            kind = event.partition(" ")[0].lower()
            execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS watch_{digested.name}_{kind}"
                f" AFTER {event} ON main.{digested.table} BEGIN {body}; END"
            )


def _noted(digested: DigestedColumns, sign: int, row: str) -> str:
    values = ", ".join(f"{row}.{column}" for column in digested.columns)
    digest = f"{_FUNCTION}('{digested.name}', {values})"
    return f"INSERT INTO {_TABLE} VALUES ('{digested.name}', {sign}, {digest})"


def take(connection: Any) -> list[RowChange]:
    """Return the changes recorded in this transaction since the last call."""
    try:
        changes: list[RowChange] = connection.execute(_TAKE).fetchall()
    except driver.OperationalError:
        if _is_watching(connection):
            raise
        return []
    if changes:
        connection.execute(f"DELETE FROM temp.{_TABLE}")
    return changes


def _is_watching(connection: Any) -> bool:
    rows = connection.execute("SELECT 1 FROM temp.sqlite_schema WHERE name = ?", (_TABLE,))
    return rows.fetchone() is not None
