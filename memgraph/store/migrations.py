"""Alembic, run from inside: on a connection that is already open and checked."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from memgraph.store import journal, whole_tables
from memgraph.store.snapshot import Transaction

if TYPE_CHECKING:
    import sqlalchemy as sa

    from memgraph.store.engine import Engine


def migrations_folder() -> Path:
    """Return the folder of the migrations: in the package in a wheel, else beside it."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_migrations"
    return shipped if shipped.is_dir() else package.parent / "migrations"


def step(revision: str) -> ModuleType:
    """Return the module of one migration; an import of older rows applies it too."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    script = ScriptDirectory.from_config(config).get_revision(revision)
    return script.module


def upgrade(
    connection: sa.Connection, engine: Engine, revision: str, *, key: bytes | None = None
) -> None:
    """Run all steps up to ``revision`` in the transaction of a connection.

    With the last of them ``env.py`` calls ``renew_digests``.
    """
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes.update(connection=connection, engine=engine, key=key)
    command.upgrade(config, revision)


def renew_digests(transaction: Transaction, *, key: bytes | None = None) -> str:
    """Recompute all table digests after an upgrade, and seal them in the journal.

    Returns:
        The state.
    """
    state = whole_tables.renew(transaction)
    if journal.head(transaction)[0] and journal.sealed_state(transaction) != state:
        journal.append_seal(transaction, state, action=journal.UPGRADE, key=key)
    return state
