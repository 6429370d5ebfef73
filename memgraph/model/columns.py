"""Declare columns: names of constraints, enums that the database checks, references."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.hybrid import hybrid_property
from sqlmodel import Field, SQLModel

from memgraph.errors import DatabaseCorrupt
from memgraph.model.enums import MemoryType

# Out of 100.
DEFAULT_IMPORTANCE: Mapping[MemoryType, int] = {
    MemoryType.DECISION: 70,
    MemoryType.GOAL: 60,
    MemoryType.TODO: 60,
    MemoryType.PREFERENCE: 55,
    MemoryType.FACT: 50,
    MemoryType.EVENT: 45,
    MemoryType.OBSERVATION: 40,
    MemoryType.IDENTITY: 50,
}


metadata = SQLModel.metadata
metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Row(SQLModel):
    """The base of the tables' classes. Their models of pydantic are built on first use, if any."""

    model_config = {"defer_build": True}


def choice(enum: type[StrEnum], name: str, *, checked: bool = True) -> sa.Enum:
    """Return the column type of an enum that is stored by value and checked by the database.

    Args:
        checked: False: the table has its own constraint, because not all members are stored.
    """
    return sa.Enum(
        enum,
        name=name,
        values_callable=lambda members: [member.value for member in members],
        native_enum=False,
        create_constraint=checked,
        validate_strings=True,
    )


def column(type_: Any, *constraints: sa.ForeignKey, **options: Any) -> Any:
    """Return a field that is defined only by its column."""
    return Field(sa_column=sa.Column(type_, *constraints, **options))


def stored_type(kind: sa.types.TypeEngine[Any]) -> type | tuple[type, ...] | None:
    """Return the Python types of the values that a driver returns for a column of a type.

    None: the type of an expression is not known.
    """
    return next((types for name, types in _STORED.items() if isinstance(kind, name)), None)


_STORED: Mapping[type[sa.types.TypeEngine[Any]], type | tuple[type, ...]] = {
    sa.Boolean: int,
    sa.Integer: int,
    sa.Float: (float, int),
    sa.String: str,
    sa.LargeBinary: bytes,
}


def memory_ref(**options: Any) -> Any:
    return column(sa.Text, sa.ForeignKey("memories.memory_id"), **options)


JSON = "json"
"""The key in a column's ``info`` that marks its text as JSON."""


def json_column(name: str, **options: Any) -> Any:
    """Return a column of JSON text, for a field named ``…_json``; see ``json_value``."""
    return column(sa.Text, name=name, info={JSON: True}, **options)


def json_value(field: str) -> hybrid_property[Any]:
    """Return a property with the parsed value of a ``json_column``.

    In a statement it is an expression of type JSON. Reading the value raises DatabaseCorrupt if the
    text is not JSON.
    """

    def value(row: Any) -> Any:
        text = getattr(row, field)
        try:
            return None if text is None else json.loads(text)
        except (TypeError, ValueError) as error:
            mapper = sa.inspect(type(row))
            table = mapper.local_table
            raise unreadable(table.name, mapper.primary_key_from_instance(row)[0]) from error

    def expression(table: Any) -> sa.ColumnElement[Any]:
        return sa.type_coerce(getattr(table, field), sa.JSON)

    value.__name__ = field.removesuffix("_json")
    return hybrid_property(value, expr=expression)


def unreadable(table: str, row: Any, **details: Any) -> DatabaseCorrupt:
    """Return the error for a row, by its key, that violates the constraints of its table."""
    message = f"a row of {table} cannot be read; run: memgraph verify"
    return DatabaseCorrupt(message, table=table, row=row, **details)
