"""What may fade, read a piece at a time, and the retiring of many memories in a few statements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import MemoryStatus
from memgraph.storage import vectors
from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

REASON = "decayed"

# Episodes are a record, reflections are kept, and a rate of 0 protects.
_MAY_FADE = "m.kind = 'fact' AND m.status = 'active' AND m.decay_rate > 0"
_COLUMNS = "m.pk, m.memory_id, m.confidence, m.decay_rate, m.created_at, m.last_accessed_at"
_THESE = "SELECT value FROM json_each(?)"
# A memory of so little confidence that it would be retired as soon as it is restored: whoever
# restored it wanted it to stay.
_WAS_RESTORED = (
    "EXISTS (SELECT 1 FROM memory_status h"
    " WHERE h.memory_id = m.memory_id AND h.status = 'retracted')"
)
_AFTER = (
    f"SELECT {_COLUMNS}, 0 FROM memories m WHERE m.pk > ? AND {_MAY_FADE} ORDER BY m.pk LIMIT ?"
)
_NOW = (
    f"SELECT {_COLUMNS}, {_WAS_RESTORED} FROM memories m"
    f" WHERE m.memory_id IN ({_THESE}) AND {_MAY_FADE} ORDER BY m.pk"
)
_END_PERIODS = (
    "UPDATE memory_status SET until = max(since, ?)"
    f" WHERE until IS NULL AND memory_id IN ({_THESE})"
)
_BEGIN_PERIODS = (
    "INSERT INTO memory_status (memory_id, status, since, until, actor, reason)"
    f" SELECT value, '{MemoryStatus.RETRACTED.value}', ?, NULL, ?, ? FROM json_each(?)"
)
_RETRACT = (
    f"UPDATE memories SET status = '{MemoryStatus.RETRACTED.value}', updated_at = ?,"
    f" valid_until = coalesce(valid_until, ?) WHERE memory_id IN ({_THESE})"
)


class Fading(NamedTuple):
    """What the rule of decay looks at. ``restored``: it was retracted once and came back."""

    pk: int
    memory_id: str
    confidence: float
    decay_rate: float
    created_at: int
    last_accessed_at: int | None
    restored: int


def last_key(connection: sa.Connection) -> int:
    """The highest key of a memory; 0: there is none."""
    [(found,)] = driver(connection).execute("SELECT max(pk) FROM memories")
    return int(found or 0)


def may_fade_after(connection: sa.Connection, after: int, limit: int) -> list[Fading]:
    """The next active facts that are not protected, by key. ``restored`` is not looked up here."""
    found = driver(connection).execute(_AFTER, (after, limit))
    return [Fading(*row) for row in found]


def may_fade(connection: sa.Connection, memory_ids: Sequence[str]) -> list[Fading]:
    """Those of ``memory_ids`` that are active facts and not protected, as they are now."""
    found = driver(connection).execute(_NOW, (json.dumps(list(memory_ids)),))
    return [Fading(*row) for row in found]


def visible_that_may_fade(connection: sa.Connection, view: View) -> Iterator[Fading]:
    """Every active fact that is not protected and that the reader may see, by key."""
    statement = (
        f"SELECT {_COLUMNS}, 0 FROM memories m WHERE {_MAY_FADE} AND {view.where('m')}"
        " ORDER BY m.pk"
    )
    rows: Iterable[Any] = driver(connection).execute(statement, view.params)
    yield from (Fading(*row) for row in rows)


def retire(connection: sa.Connection, memory_ids: Sequence[str], *, at: int, actor: str) -> None:
    """Retract active memories because they faded: status, history and index, as one change does.

    See ``memgraph.storage.memories.set_status``; here the statements are for all of them at once.
    """
    these = json.dumps(list(memory_ids))
    execute = driver(connection).execute
    execute(_END_PERIODS, (at, these))
    execute(_BEGIN_PERIODS, (at, actor, REASON, these))
    execute(_RETRACT, (at, at, these))
    vectors.refresh(connection, memory_ids)
