"""How columns are declared: names of constraints, enums that the database checks, references."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

metadata = SQLModel.metadata
metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


def choice(enum: type[StrEnum], name: str) -> sa.Enum:
    """An enum that is stored by value and checked by the database."""
    return sa.Enum(
        enum,
        name=name,
        values_callable=lambda members: [member.value for member in members],
        native_enum=False,
        create_constraint=True,
        validate_strings=True,
    )


def column(type_: Any, *constraints: sa.ForeignKey, **options: Any) -> Any:
    """A field whose whole definition is its column."""
    return Field(sa_column=sa.Column(type_, *constraints, **options))


def memory_ref(**options: Any) -> Any:
    return column(sa.Text, sa.ForeignKey("memories.memory_id"), **options)
