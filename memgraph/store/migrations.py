"""Run Alembic migrations on an open, checked connection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config

from memgraph.store import journal, whole_tables
from memgraph.store.snapshot import Transaction

if TYPE_CHECKING:
    import sqlalchemy as sa

    from memgraph.store.engine import Engine


def migrations_folder() -> Path:
    """Return the folder of the migrations: inside the package in a wheel, else next to it."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_migrations"
    return shipped if shipped.is_dir() else package.parent / "migrations"


def upgrade(
    connection: sa.Connection, engine: Engine, revision: str, *, key: bytes | None = None
) -> None:
    """Run all migrations up to ``revision`` in the transaction of a connection.

    After the last one ``env.py`` calls ``renew_digests``.
    """
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes.update(connection=connection, engine=engine, key=key)
    command.upgrade(config, revision)


def renew_digests(transaction: Transaction, *, key: bytes | None = None) -> str:
    """Recompute all table digests after an upgrade, and seal them in the journal.

    Returns:
        The digest of all tables.
    """
    state = whole_tables.renew(transaction)
    if journal.head(transaction)[0] and journal.sealed_state(transaction) != state:
        journal.append_seal(transaction, state, action=journal.UPGRADE, key=key)
    return state
