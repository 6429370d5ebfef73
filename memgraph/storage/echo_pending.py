"""What was handed out and waits for its lines to be hashed: off the path of whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from memgraph.storage.statements import driver

# Bulletins of a store where nothing consolidates: the oldest texts go. An agent that repeats what
# still stands is found without them, and a person's words count for a day only.
MAX_TEXTS = 4_096

_ADD_RECALL = "INSERT INTO echo_pending (at, recall_id) VALUES (?, ?)"
_ADD_TEXT = "INSERT INTO echo_pending (at, text) VALUES (?, ?)"
_DROP = (
    "DELETE FROM echo_pending WHERE text IS NOT NULL AND pending_id <= (SELECT pending_id"
    " FROM echo_pending WHERE text IS NOT NULL ORDER BY pending_id DESC LIMIT 1 OFFSET ?)"
)
_THROUGH = (
    "SELECT max(pending_id), count(*) FROM"
    " (SELECT pending_id FROM echo_pending ORDER BY pending_id LIMIT ?)"
)
_TEXTS = "SELECT text, at FROM echo_pending WHERE text IS NOT NULL AND pending_id <= ?"
_RECALLED = (
    "SELECT m.pk, m.content, m.summary, min(p.at), max(p.at) FROM echo_pending p"
    " JOIN recall_items i ON i.recall_id = p.recall_id"
    " JOIN memories m ON m.memory_id = i.memory_id"
    " WHERE p.pending_id <= ? GROUP BY m.pk"
)
_REMOVE = "DELETE FROM echo_pending WHERE pending_id <= ?"


class Recalled(NamedTuple):
    """A memory that was handed out by recalls, and when first and last."""

    pk: int
    content: str
    summary: str | None
    first_at: int
    last_at: int


class Pending(NamedTuple):
    """The oldest of what waits: how much it is, and the last one's id. Texts have their times."""

    number: int
    through: int
    recalled: tuple[Recalled, ...]
    texts: tuple[tuple[str, int], ...]


def add(
    connection: sa.Connection,
    recalls: Sequence[tuple[int, str]],
    texts: Sequence[tuple[int, str]],
) -> None:
    """Note recalls by their ids and other texts, each with its time; old texts may go for it."""
    execute = driver(connection)
    execute.executemany(_ADD_RECALL, recalls)
    if texts:
        execute.executemany(_ADD_TEXT, texts)
        execute.execute(_DROP, (MAX_TEXTS,))


def oldest(connection: sa.Connection, limit: int) -> Pending | None:
    """At most ``limit`` recalls and texts, each memory of them once; None: nothing waits."""
    execute = driver(connection).execute
    through, number = execute(_THROUGH, (limit,)).fetchone()
    if through is None:
        return None
    return Pending(
        number,
        through,
        tuple(map(Recalled._make, execute(_RECALLED, (through,)))),
        tuple(execute(_TEXTS, (through,))),
    )


def remove(connection: sa.Connection, through: int) -> int:
    """Remove what was worked off, all up to the id that ``oldest`` gave; gives how much it was."""
    return int(driver(connection).execute(_REMOVE, (through,)).rowcount)
