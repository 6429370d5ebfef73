"""Which facts decay, which have expired, and the retiring of many in a few statements."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import MemoryStatus
from memgraph.store.memories import set_statuses
from memgraph.store.snapshot import Snapshot, Transaction, driver
from memgraph.store.visibility import View

REASON = "decayed"

# SQLite's arithmetic and Python's may differ in the last digits; the caller decides once more.
_MARGIN = 1.0 + 1e-9
_RETRACTED = MemoryStatus.RETRACTED.value
# All that keeps a memory from ever being retired by time; ``policy.decay.rate_of`` has the rates.
_ABOUT_NO_PROTECTED = (
    "NOT EXISTS (SELECT 1 FROM memory_entities l JOIN entities e ON e.pk = l.entity_pk"
    " WHERE l.memory_pk = m.pk AND e.protected)"
)
_DECAYS = " AND ".join(
    ("m.kind = 'fact'", "m.status = 'active'", "m.decay_rate > 0", _ABOUT_NO_PROTECTED)
)
# The formula of ``memgraph.rules.decay``: a hundred thousand rows need not leave the database.
_IDLE_DAYS = f"max(:now - coalesce(m.last_accessed_at, m.created_at), 0) / {MS_PER_DAY}.0"
_EXPIRED = f"m.confidence * exp(-m.decay_rate * pow({_IDLE_DAYS}, :exponent)) < :threshold"
_COLUMNS = "m.pk, m.memory_id, m.confidence, m.decay_rate, m.created_at, m.last_accessed_at"
# Only looked up for facts whose own confidence is too low for any use to keep them.
_WAS_RESTORED = (
    "m.confidence < :base_threshold AND EXISTS (SELECT 1 FROM memory_status h"
    f" WHERE h.memory_id = m.memory_id AND h.status = '{_RETRACTED}')"
)
_COUNT = f"SELECT count(*), max(m.pk) FROM memories m WHERE {_DECAYS}"
_AFTER = (
    f"SELECT m.pk FROM memories m WHERE m.pk > :after AND {_DECAYS} AND {_EXPIRED}"
    " ORDER BY m.pk LIMIT :limit"
)
_NOW = (
    f"SELECT {_COLUMNS}, {_WAS_RESTORED} FROM memories m"
    f" WHERE m.pk IN (SELECT value FROM json_each(:these)) AND {_DECAYS} ORDER BY m.pk"
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


class DecayRow(NamedTuple):
    """What the rule of decay reads of a fact.

    ``restored``: its own confidence is under the threshold, and it was retracted once and restored.
    """

    pk: int
    memory_id: str
    confidence: float
    decay_rate: float
    created_at: int
    last_accessed_at: int | None
    restored: int


class Rule(NamedTuple):
    """When a memory has expired: the moment, and the settings."""

    now_ms: int
    threshold: float
    exponent: float


def decaying_count(snapshot: Snapshot) -> tuple[int, int]:
    """Return how many facts decay, and the highest key among them (0: none)."""
    [(number, last)] = driver(snapshot).execute(_COUNT)
    return int(number), int(last or 0)


def expired_after(snapshot: Snapshot, rule: Rule, after: int, limit: int) -> list[int]:
    """Return keys of the next facts that have expired, or are too close for SQLite to decide."""
    values = _values(rule) | {"after": after, "limit": limit}
    return [pk for (pk,) in driver(snapshot).execute(_AFTER, values)]


def decaying_now(snapshot: Snapshot, pks: Sequence[int], threshold: float) -> list[DecayRow]:
    """Return the facts among ``pks`` that still decay, as they are now."""
    values = {"these": json.dumps(list(pks)), "base_threshold": threshold}
    return [DecayRow(*row) for row in driver(snapshot).execute(_NOW, values)]


def retired_since(snapshot: Snapshot, used: Mapping[str, int]) -> list[str]:
    """Return the memories that decay retired at the time given for each, or later."""
    if not used:
        return []
    found = driver(snapshot).execute(_RETIRED_SINCE, (json.dumps(dict(used)),))
    return [memory_id for (memory_id,) in found]


def retired(snapshot: Snapshot, memory_id: str) -> tuple[DecayRow, int] | None:
    """Return a memory that decay retired, and when that was; None: decay did not retire it."""
    row = driver(snapshot).execute(_RETIRED, (memory_id,)).fetchone()
    return None if row is None else (DecayRow(*row[:-1]), int(row[-1]))


def visible_expired(snapshot: Snapshot, rule: Rule, view: View) -> Iterator[DecayRow]:
    """Yield the expired facts that the reader may see, and nearly expired ones, by key."""
    statement = (
        f"SELECT {_COLUMNS}, {_WAS_RESTORED} FROM memories m"
        f" WHERE {_DECAYS} AND {_EXPIRED} AND {view.text.where('m')} ORDER BY m.pk"
    )
    values = view.params | _values(rule)
    yield from (DecayRow(*row) for row in driver(snapshot).execute(statement, values))


def _values(rule: Rule) -> dict[str, float]:
    return {
        "now": rule.now_ms,
        "exponent": rule.exponent,
        "threshold": rule.threshold * _MARGIN,
        "base_threshold": rule.threshold,
    }


def retire(
    transaction: Transaction,
    memory_ids: Sequence[str],
    *,
    at: int,
    actor: str,
    reason: str = REASON,
) -> None:
    """Retract memories at once: see ``memgraph.store.memories``."""
    set_statuses(transaction, memory_ids, MemoryStatus.RETRACTED, at=at, actor=actor, reason=reason)
