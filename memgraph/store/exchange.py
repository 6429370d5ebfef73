"""Read tables for an export, and write an import: rows with ids in place of keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from memgraph.store import tables
from memgraph.store.snapshot import Transaction
from memgraph.store.statements import Column, CompiledStatement, prepared, value

Columns = tuple[tuple[str, str], ...]
"""Columns, each with its field: its own name, or the id of what its key refers to."""
_REFERRED: Final = {"memory_id": "memories", "entity_id": "entities"}


def _table(name: str) -> sa.Table:
    return tables.memories.metadata.tables[name]


@prepared
def rows(table: str, columns: Columns, order: tuple[str, ...], state: str | None) -> sa.Select[Any]:
    """Select the rows of a table by the columns of an order.

    Args:
        state: only rows of this state; None: all.
    """
    t = _table(table).alias("t")
    joined: sa.FromClause = t
    selected = []
    for column, field in columns:
        if field == column:
            selected.append(t.c[column])
            continue
        other = _table(_REFERRED[field])
        joined = joined.join(other, other.c.pk == t.c[column])
        selected.append(other.c[field])
    query = sa.select(*selected).select_from(joined).order_by(*(t.c[name] for name in order))
    return query if state is None else query.where(t.c.state == state)


@prepared
def insertion(table: str, columns: Columns, extra: tuple[str, ...], state: str | None) -> sa.Insert:
    """Insert a row by the names of its fields.

    Args:
        extra: further columns, given by their names.
        state: of every row; None: it is one of the fields.
    """
    values = {column: _stored(column, field) for column, field in columns}
    values |= {name: value(name) for name in extra}
    if state is not None:
        values["state"] = sa.literal(state)
    return sa.insert(_table(table)).values(values).inline()


def _stored(column: str, field: str) -> Column:
    if field == column:
        return value(column)
    other = _table(_REFERRED[field])
    key = sa.select(other.c.pk).where(other.c[field] == value(field)).scalar_subquery()
    # An unknown id becomes a key that no row has: the engine would choose one for NULL.
    return sa.func.coalesce(key, -1)


def insert(
    transaction: Transaction, statement: CompiledStatement, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows, all or none.

    Raises:
        ConstraintViolated: the database refuses one; the transaction goes on.
    """
    engine = transaction.engine
    engine.insert_each(transaction, statement.text(engine), rows)
