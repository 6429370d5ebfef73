"""What one agent keeps for itself: which of its items are stored, and which are to go."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from memgraph.model.enums import Scope
from memgraph.storage.statements import driver

_ITEMS = (
    "SELECT m.item_id, m.memory_id FROM memories m"
    " WHERE m.agent_id = ? AND m.status = 'active'"
    " AND m.item_id IN (SELECT value FROM json_each(?)) ORDER BY m.pk DESC"
)


@dataclass(frozen=True, slots=True)
class Own:
    """Which of an agent's memories; None leaves nothing out.

    Attributes:
        before: stored earlier than this, milliseconds.
        session_id, project_id: of session and project scopes only this one's.
    """

    agent_id: str
    before: int | None = None
    scope: Scope | None = None
    memory_ids: tuple[str, ...] | None = None
    session_id: str | None = None
    project_id: str | None = None


def items(connection: sa.Connection, agent_id: str, item_ids: Collection[str]) -> dict[str, str]:
    """Memory ids of the agent's active memories that bear these item ids, by item id."""
    found = driver(connection).execute(_ITEMS, (agent_id, json.dumps(list(item_ids))))
    # Of two the older one, which comes last.
    return dict(found.fetchall())


def standing(connection: sa.Connection, own: Own) -> list[str]:
    """The ids of what was not taken back, oldest first, however sensitive it is."""
    terms = ["m.agent_id = :agent_id", "m.status IN ('active', 'superseded')"]
    values: dict[str, Any] = {"agent_id": own.agent_id}
    for term, value in (
        ("m.created_at < :before", own.before),
        ("m.scope = :scope", own.scope),
        ("(m.scope <> 'session' OR m.scope_id = :session_id)", own.session_id),
        ("(m.scope <> 'project' OR m.scope_id = :project_id)", own.project_id),
    ):
        if value is not None:
            terms.append(term)
            values[term.rpartition(":")[2].rstrip(")")] = value
    if own.memory_ids is not None:
        terms.append("m.memory_id IN (SELECT value FROM json_each(:memory_ids))")
        values["memory_ids"] = json.dumps(own.memory_ids)
    statement = f"SELECT m.memory_id FROM memories m WHERE {' AND '.join(terms)} ORDER BY m.pk"
    return [memory_id for (memory_id,) in driver(connection).execute(statement, values)]
