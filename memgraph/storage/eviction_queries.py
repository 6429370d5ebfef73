"""What a project holds, as the rule of ``memgraph.policy.eviction`` wants to know it."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

# Turns are a record of what was said and no items.
_HELD = "m.scope = 'project' AND m.scope_id = :project_id AND m.kind <> 'episode'"


class Row(NamedTuple):
    """An active item. ``at``: milliseconds; ``decay_rate`` 0 protects."""

    pk: int
    memory_id: str
    type: str
    importance: int
    at: int
    decay_rate: float
    scope: str
    scope_id: str | None
    sensitivity: str


def count(connection: sa.Connection, project_id: str, view: View) -> int:
    """How many active items of the project the view shows."""
    [(number,)] = driver(connection).execute(
        f"SELECT count(*) FROM memories m WHERE {_HELD} AND m.status = 'active'"
        f" AND {view.where('m')}",
        view.params | {"project_id": project_id},
    )
    return int(number)


def held(connection: sa.Connection, project_id: str, view: View) -> list[Row]:
    """The active items of the project that the view shows, by key."""
    found = driver(connection).execute(
        "SELECT m.pk, m.memory_id, m.type, m.importance, coalesce(m.event_time, m.created_at),"
        " m.decay_rate, m.scope, m.scope_id, m.sensitivity"
        f" FROM memories m WHERE {_HELD} AND m.status = 'active' AND {view.where('m')}"
        " ORDER BY m.pk",
        view.params | {"project_id": project_id},
    )
    return [Row(*row) for row in found]
