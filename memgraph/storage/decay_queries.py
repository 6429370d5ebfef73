"""What may fade, and the retiring of many memories in a few statements."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import MemoryStatus
from memgraph.storage.statements import driver
from memgraph.storage.statuses import Placed, set_statuses
from memgraph.storage.visibility import View

REASON = "decayed"

# SQLite's arithmetic and Python's may differ in the last digits; who asks decides once more.
_MARGIN = 1.0 + 1e-9
_RETRACTED = MemoryStatus.RETRACTED.value
# Episodes are a record, reflections are kept, and a rate of 0 protects.
_MAY_FADE = "m.kind = 'fact' AND m.status = 'active' AND m.decay_rate > 0"
# The formula of ``memgraph.policy.decay``: a hundred thousand rows need not leave the database.
_IDLE_DAYS = f"max(:now - coalesce(m.last_accessed_at, m.created_at), 0) / {MS_PER_DAY}.0"
_FADED = f"m.confidence * exp(-m.decay_rate * pow({_IDLE_DAYS}, :exponent)) < :threshold"
_COLUMNS = (
    "m.pk, m.memory_id, m.confidence, m.decay_rate, m.created_at, m.last_accessed_at,"
    " m.scope, m.scope_id, m.sensitivity"
)
# Only asked of those whose own confidence is too low for any access to keep them.
_WAS_RESTORED = (
    "m.confidence < :threshold AND EXISTS (SELECT 1 FROM memory_status h"
    f" WHERE h.memory_id = m.memory_id AND h.status = '{_RETRACTED}')"
)
_COUNT = f"SELECT count(*), max(m.pk) FROM memories m WHERE {_MAY_FADE}"
_AFTER = (
    f"SELECT m.pk FROM memories m WHERE m.pk > :after AND {_MAY_FADE} AND {_FADED}"
    " ORDER BY m.pk LIMIT :limit"
)
_NOW = (
    f"SELECT {_COLUMNS}, {_WAS_RESTORED} FROM memories m"
    f" WHERE m.pk IN (SELECT value FROM json_each(:these)) AND {_MAY_FADE} ORDER BY m.pk"
)


# The period that is not over is the one that decay began.
_BY_DECAY = (
    " JOIN memory_status h ON h.memory_id = m.memory_id AND h.until IS NULL"
    f" AND h.reason = '{REASON}' WHERE m.kind = 'fact' AND m.status = '{_RETRACTED}'"
    " AND m.content <> ''"
)
_RETIRED_SINCE = (
    "SELECT m.memory_id FROM json_each(?) given CROSS JOIN memories m ON m.memory_id = given.key"
    f"{_BY_DECAY} AND h.since >= given.value"
)
_RETIRED = f"SELECT {_COLUMNS}, 0, h.since FROM memories m{_BY_DECAY} AND m.memory_id = ?"


class Fading(NamedTuple):
    """What the rule of decay looks at, and what the vector index has to know.

    ``restored``: its own confidence is under the threshold, and it was retracted once and came
    back. Looked up by ``may_fade`` alone.
    """

    pk: int
    memory_id: str
    confidence: float
    decay_rate: float
    created_at: int
    last_accessed_at: int | None
    scope: str
    scope_id: str | None
    sensitivity: str
    restored: int


class Rule(NamedTuple):
    """When a memory has faded: the moment of asking, and the settings."""

    now_ms: int
    threshold: float
    exponent: float


def may_fade_count(connection: sa.Connection) -> tuple[int, int]:
    """How many active facts are not protected, and the highest key among them (0: none)."""
    [(number, last)] = driver(connection).execute(_COUNT)
    return int(number), int(last or 0)


def faded_after(connection: sa.Connection, rule: Rule, after: int, limit: int) -> list[int]:
    """Keys of the next memories that have faded, or are so close that only the rule can tell."""
    values = {
        "now": rule.now_ms,
        "exponent": rule.exponent,
        "threshold": rule.threshold * _MARGIN,
        "after": after,
        "limit": limit,
    }
    return [pk for (pk,) in driver(connection).execute(_AFTER, values)]


def may_fade(connection: sa.Connection, pks: Sequence[int], threshold: float) -> list[Fading]:
    """Those of ``pks`` that are active facts and not protected, as they are now."""
    values = {"these": json.dumps(list(pks)), "threshold": threshold}
    return [Fading(*row) for row in driver(connection).execute(_NOW, values)]


def retired_since(connection: sa.Connection, recalled: Mapping[str, int]) -> list[str]:
    """Those of the memories that decay retired at the time given for each, or later."""
    if not recalled:
        return []
    found = driver(connection).execute(_RETIRED_SINCE, (json.dumps(dict(recalled)),))
    return [memory_id for (memory_id,) in found]


def retired(connection: sa.Connection, memory_id: str) -> tuple[Fading, int] | None:
    """What decides on a memory that decay retired, and when that was; None: it did not."""
    row = driver(connection).execute(_RETIRED, (memory_id,)).fetchone()
    return None if row is None else (Fading(*row[:-1]), int(row[-1]))


def visible_faded(connection: sa.Connection, rule: Rule, view: View) -> Iterator[Fading]:
    """What the reader may see of what has faded, or nearly so, by key."""
    statement = (
        f"SELECT {_COLUMNS}, 0 FROM memories m"
        f" WHERE {_MAY_FADE} AND {_FADED} AND {view.where('m')} ORDER BY m.pk"
    )
    values = view.params | {
        "now": rule.now_ms,
        "exponent": rule.exponent,
        "threshold": rule.threshold * _MARGIN,
    }
    yield from (Fading(*row) for row in driver(connection).execute(statement, values))


def retire(
    connection: sa.Connection,
    faded: Sequence[Placed],
    *,
    at: int,
    actor: str,
    reason: str = REASON,
) -> None:
    """Retract memories at once: see ``memgraph.storage.statuses``."""
    set_statuses(connection, faded, MemoryStatus.RETRACTED, at=at, actor=actor, reason=reason)
