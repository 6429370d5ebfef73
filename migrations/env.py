"""Alembic's environment: on a connection from memgraph, or a file from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as driver
import sqlalchemy as sa
from alembic import context

from memgraph.model.tables import metadata
from memgraph.store import sqlite, whole_tables
from memgraph.store.snapshot import Transaction
from memgraph.store.sqlite.engine import ENGINE

# Made by hand, with shadow tables of SQLite and row numbers in PostgreSQL: not in the models.
DERIVED = ("memory_fts", "memory_words", "text_", "last_numbers")
PLACE = "place"


def include_name(name: str | None, type_: str, _parents: Any) -> bool:
    if name is None:
        return True
    is_number = (type_ == "column" and name == PLACE) or name.endswith(f"_{PLACE}")
    return not is_number and not (type_ == "table" and name.startswith(DERIVED))


def compare_type(ctx: Any, _column: Any, column: sa.Column[Any], stored: Any, _type: Any) -> Any:
    """Compare a type by its name in PostgreSQL; None: by the rules of Alembic."""
    if ctx.dialect.name == "sqlite":
        return None
    from memgraph.store.postgres.dialect import DIALECT

    name = str(stored.compile(dialect=ctx.dialect)).removesuffix(' COLLATE "C"')
    return name != column.type.compile(dialect=DIALECT)


def seal(*, ctx: Any, step: Any, **_: Any) -> None:
    """Count the tables anew after the last step up: steps change rows without triggers."""
    if step.is_upgrade and step.up_revision_id == context.script.get_current_head():
        whole_tables.renew(Transaction(ctx.connection, ENGINE))


def run(connection: sa.Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_name=include_name,
        compare_type=compare_type,
        on_version_apply=seal,
        transactional_ddl=True,
        render_as_batch=False,
    )
    with context.begin_transaction():
        context.run_migrations()


def scratch_engine() -> sa.Engine:
    chosen = context.get_x_argument(as_dictionary=True).get("database")
    path = Path(chosen) if chosen else Path(__file__).parent.parent / "build" / "schema.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(
        "sqlite+pysqlite://",
        module=driver,
        creator=lambda: sqlite.connect(path, busy_timeout_ms=30_000, create=True),
    )

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


if context.is_offline_mode():
    raise SystemExit("memgraph migrates a database, not a script: run without --sql")
if (given := context.config.attributes.get("connection")) is not None:
    run(given)
else:
    engine = scratch_engine()
    with engine.connect() as connection, connection.begin():
        run(connection)
    engine.dispose()
