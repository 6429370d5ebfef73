"""Record the changed rows of a transaction: triggers write them to a temporary table.

The table is created once per session and emptied at the end of each transaction. Writes by other
programs are not recorded, so ``verify`` detects them. Rows are passed to Python as JSON, so that
their digests are the same as in SQLite.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from memgraph.model.tables import metadata
from memgraph.store import whole_tables
from memgraph.store.engine import RowChange
from memgraph.store.whole_tables import DigestedColumns

TABLE: Final = "pg_temp.row_changes"
MAKE: Final = (
    " SET LOCAL client_min_messages = warning;"
    " CREATE TEMP TABLE IF NOT EXISTS row_changes (name text, sign int, held json)"
    " ON COMMIT DELETE ROWS;"
)
_TAKE: Final = f"DELETE FROM {TABLE} RETURNING name, sign, held::text"
_EVENTS: Final = {
    "insert": (("came", 1),),
    "delete": (("went", -1),),
    "update": (("went", -1), ("came", 1)),
}


def columns_of(table: str) -> tuple[str, ...]:
    """Return the names of a table's columns, in their order."""
    return tuple(column.name for column in metadata.tables[table].columns)


@cache
def watched() -> tuple[DigestedColumns, ...]:
    """Return the watched tables and their digested columns."""
    return tuple(whole_tables.digested_columns(columns_of))


def triggers() -> dict[str, str]:
    """Return the bodies of the trigger functions, by trigger name."""
    return {
        f"watch_{item.table}_{event}": _body(item, event) for item in watched() for event in _EVENTS
    }


def statements() -> list[str]:
    """Return the DDL of the triggers and their functions."""
    ddl = []
    for item in watched():
        for event in _EVENTS:
            name = f"watch_{item.table}_{event}"
            transitions = {"went": "OLD TABLE AS went", "came": "NEW TABLE AS came"}
            referencing = " ".join(transitions[rows] for rows, _ in _EVENTS[event])
            ddl += [
                f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
                f" $body${_body(item, event)}$body$",
                f"CREATE TRIGGER {name} AFTER {event.upper()} ON {item.table}"
                f" REFERENCING {referencing} FOR EACH STATEMENT EXECUTE FUNCTION {name}()",
            ]
    return ddl


def _body(digested: DigestedColumns, event: str) -> str:
    columns = ", ".join(digested.columns)
    of_rows = {}
    for rows, sign in _EVENTS[event]:
        other = "came" if rows == "went" else "went"
        # Rows that are unchanged in these columns are not recorded.
        without = f" EXCEPT ALL SELECT {columns} FROM {other}" if event == "update" else ""
        of_rows[rows] = (
            f"INSERT INTO {TABLE} SELECT '{digested.table}', {sign}, json_build_array({columns})"
            f" FROM (SELECT {columns} FROM {rows}{without}) AS changed;"
        )
    noted = " ".join(of_rows.values())
    return f"BEGIN IF to_regclass('{TABLE}') IS NOT NULL THEN {noted} END IF; RETURN NULL; END"


@cache
def _floats(name: str) -> frozenset[int]:
    [digested] = [item for item in watched() if item.table == name]
    columns = metadata.tables[name].c
    return frozenset(
        at
        for at, column in enumerate(digested.columns)
        if isinstance(columns[column].type, sa.Float)
    )


def take(connection: Any) -> list[RowChange]:
    """Return and clear the changes recorded in this transaction; empty without triggers."""
    if not connection.is_watching:
        return []
    return [
        (name, sign, whole_tables.row_digest(name, *_values(name, json.loads(values))))
        for name, sign, values in connection.execute(_TAKE)
    ]


def _values(name: str, values: list[Any]) -> list[Any]:
    floats = _floats(name)
    return [
        float(value)
        if at in floats and value is not None
        else int(value)
        if isinstance(value, bool)
        else value
        for at, value in enumerate(values)
    ]
