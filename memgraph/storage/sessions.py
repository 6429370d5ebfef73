"""Rows of ``sessions``: one conversation each, with the place of its next turn."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert as upsert

from memgraph.storage import tables


def next_sequence(connection: sa.Connection, session_id: str) -> int:
    """The place of the next turn, from 0."""
    statement = sa.select(tables.sessions.c.next_sequence).where(
        tables.sessions.c.session_id == session_id
    )
    return int(connection.execute(statement).scalar() or 0)


def seen(connection: sa.Connection, session_id: str, *, at: int, next_sequence: int) -> None:
    """Note that turns of a session were stored, up to before ``next_sequence``."""
    statement = upsert(tables.sessions).values(
        session_id=session_id, first_seen_at=at, last_seen_at=at, next_sequence=next_sequence
    )
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[tables.sessions.c.session_id],
            set_={
                "last_seen_at": sa.func.max(
                    tables.sessions.c.last_seen_at, statement.excluded.last_seen_at
                ),
                "next_sequence": sa.func.max(
                    tables.sessions.c.next_sequence, statement.excluded.next_sequence
                ),
            },
        )
    )
