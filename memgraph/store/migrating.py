"""Alembic, run from inside: on a driver connection that is already open and checked."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from memgraph.store import journal, sqlite, table_digests
from memgraph.store.snapshot import Transaction
from memgraph.store.sqlite import postings


def migrations_folder() -> Path:
    """Return their folder: in a wheel it lies inside the package, in a checkout beside it."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_migrations"
    return shipped if shipped.is_dir() else package.parent / "migrations"


def step(revision: str) -> ModuleType:
    """Return the module of one step: what it does to rows, an import of older rows needs too."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    found = ScriptDirectory.from_config(config).get_revision(revision)
    return found.module


def upgrade(driver_connection: Any, revision: str, *, key: bytes | None = None) -> None:
    """Run all steps up to ``revision`` in one transaction.

    With the last of them ``env.py`` calls ``renew_digests``.
    """
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    with (
        sqlite.engine_of(driver_connection, "BEGIN IMMEDIATE").connect() as connection,
        connection.begin(),
    ):
        config.attributes.update(connection=connection, key=key)
        command.upgrade(config, revision)


def fill_postings(driver_connection: Any) -> None:
    """Index the texts of a database whose schema is at head, in many transactions.

    What is left when it is killed is merged as whatever is stored.
    """
    made = True
    while made:
        with (
            sqlite.engine_of(driver_connection, "BEGIN IMMEDIATE").connect() as connection,
            connection.begin(),
        ):
            transaction = Transaction(connection)
            draft = postings.due(transaction)
            made = draft is not None and postings.commit(transaction, draft)


def renew_digests(transaction: Transaction, *, key: bytes | None = None) -> str:
    """Count all tables anew after an upgrade of rows; a journal with entries tells the state.

    Returns:
        The state.
    """
    state = table_digests.renew(transaction)
    if journal.head(transaction)[0] and journal.sealed_state(transaction) != state:
        journal.append_seal(transaction, state, action=journal.UPGRADE, key=key)
    return state
