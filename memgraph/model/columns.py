"""Declare columns: names of constraints, enums that the database checks, references.

Relationships and JSON values are for people who read with a session
(``MemoryService.session``): the statements of the store use the columns alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import relationship
from sqlmodel import Field, Relationship, SQLModel

from memgraph.model.enums import MemoryType

# Of 100. A text's own memories stay far below: a person may raise them.
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


Table: TypeAlias = sa.Table
Related: TypeAlias = str | type[SQLModel] | Callable[[], type[SQLModel]]

metadata = SQLModel.metadata
metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


def choice(enum: type[StrEnum], name: str, *, checked: bool = True) -> sa.Enum:
    """Return the type of an enum that is stored by value and checked by the database.

    Args:
        checked: False: the table has a constraint of its own, for not all members are stored.
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
    """Return a field that is defined by its column alone."""
    return Field(sa_column=sa.Column(type_, *constraints, **options))


def python_type(table: sa.Table, name: str) -> type:
    """Return the type of a column's values: bool, int, float, bytes, str or an enum of texts.

    A name that is no column's is a text's.
    """
    if name not in table.c:
        return str
    kind = table.c[name].type
    if isinstance(kind, sa.Enum) and kind.enum_class is not None:
        return kind.enum_class
    return bytes if isinstance(kind, sa.LargeBinary) else kind.python_type


def memory_ref(**options: Any) -> Any:
    return column(sa.Text, sa.ForeignKey("memories.memory_id"), **options)


JSON = "json"
"""In a column's ``info``: its text is JSON."""


def json_column(name: str, **options: Any) -> Any:
    """Return a column of JSON text, under a field named ``…_json``; see ``json_value``."""
    return column(sa.Text, name=name, info={JSON: True}, **options)


def json_value(field: str) -> hybrid_property[Any]:
    """Return the Python value of a ``json_column``; in a statement, an expression of type JSON."""

    def value(row: Any) -> Any:
        text = getattr(row, field)
        return None if text is None else json.loads(text)

    def expression(table: Any) -> sa.ColumnElement[Any]:
        return sa.type_coerce(getattr(table, field), sa.JSON)

    value.__name__ = field.removesuffix("_json")
    return hybrid_property(value, expr=expression)


def related_row(to: Related, **options: Any) -> Any:
    """Return the row that a row refers to, loaded on first access and read-only.

    Args:
        to: the class, by its full name where it cannot be imported.
        options: of SQLAlchemy's ``relationship``; tables and columns by name.
    """
    return Relationship(sa_relationship=relationship(to, viewonly=True, **options))


def related_rows(to: Related, *, order_by: str, **options: Any) -> Any:
    """Return the rows that belong to a row; see ``related_row``."""
    # The annotation cannot say that it is a list where it names a class of later in the module.
    return related_row(to, order_by=order_by, collection_class=list, **options)
