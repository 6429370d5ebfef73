"""Run Alembic migrations on an open connection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config

if TYPE_CHECKING:
    import sqlalchemy as sa


def migrations_folder() -> Path:
    """Return the folder of the migrations: inside the package in a wheel, else next to it."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_migrations"
    return shipped if shipped.is_dir() else package.parent / "migrations"


def upgrade(connection: sa.Connection, revision: str) -> None:
    """Run all migrations up to ``revision`` in the transaction of a connection."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
