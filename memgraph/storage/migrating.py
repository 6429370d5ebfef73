"""Alembic, run from inside: on a driver connection that is already open and checked."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pysqlite3.dbapi2 as driver
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.pool import StaticPool


def migrations_folder() -> Path:
    """In a wheel the migrations lie inside the package, in a checkout beside it."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_migrations"
    return shipped if shipped.is_dir() else package.parent / "migrations"


def step(revision: str) -> ModuleType:
    """Return the module of one step: what it does to rows, an import of older rows needs too."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    found = ScriptDirectory.from_config(config).get_revision(revision)
    return found.module


def upgrade(driver_connection: Any, revision: str) -> None:
    """Run all steps up to ``revision`` in one transaction."""
    engine = sa.create_engine(
        "sqlite+pysqlite://",
        module=driver,
        creator=lambda: driver_connection,
        poolclass=StaticPool,
    )

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    with engine.connect() as connection, connection.begin():
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
