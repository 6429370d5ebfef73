"""Rows of ``sessions``: one conversation each, with the place of its next turn and its state."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from memgraph.model.conversation import SessionInfo, SessionPlace
from memgraph.model.enums import MemoryStatus
from memgraph.policy.conversations import SessionState
from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

_KNOWN = (
    "SELECT session_id, next_sequence, completed_at, consolidated_at FROM sessions"
    " WHERE session_id IN (SELECT value FROM json_each(?))"
)
# The planner needs to see the condition of the partial index.
_OPEN = (
    "SELECT session_id FROM sessions WHERE completed_at IS NULL AND consolidated_at IS NULL"
    " ORDER BY first_seen_at, session_id"
)
_SEEN = (
    "INSERT INTO sessions (session_id, first_seen_at, last_seen_at, next_sequence, completed_at)"
    " VALUES (?, ?, ?, ?, ?) ON CONFLICT (session_id) DO UPDATE SET"
    " last_seen_at = max(last_seen_at, excluded.last_seen_at),"
    " next_sequence = max(next_sequence, excluded.next_sequence),"
    " completed_at = excluded.completed_at, consolidated_at = NULL"
)
_LAST_TURN = (
    "SELECT max(m.pk) FROM memories m WHERE m.session_id = s.session_id AND m.kind = 'episode'"
)
_COMPLETE = "UPDATE sessions SET completed_at = ? WHERE session_id = ?"


@dataclass(frozen=True, slots=True)
class Known:
    """A session that is registered: the place of its next turn, and where it stands."""

    next_sequence: int
    completed_at: int | None
    consolidated_at: int | None

    @property
    def state(self) -> SessionState:
        if self.consolidated_at is not None:
            return SessionState.CONSOLIDATED
        return SessionState.OPEN if self.completed_at is None else SessionState.COMPLETED


@dataclass(frozen=True, slots=True)
class Seen:
    """A session after turns of it were stored; ``completed_at`` None: it is open."""

    session_id: str
    next_sequence: int
    completed_at: int | None


def known(connection: sa.Connection, session_ids: Collection[str]) -> dict[str, Known]:
    """Those of the sessions that are registered."""
    if not session_ids:
        return {}
    found = driver(connection).execute(_KNOWN, (json.dumps(list(session_ids)),))
    return {session_id: Known(*rest) for session_id, *rest in found}


def open_ids(connection: sa.Connection, view: View | None = None) -> list[str]:
    """Sessions that are neither completed nor consolidated, in the order they began.

    Args:
        view: only those of which it shows a turn; None: all.
    """
    if view is None:
        return [session_id for (session_id,) in driver(connection).execute(_OPEN)]
    found = connection.execute(
        sa.text(f"SELECT * FROM ({_OPEN}) o WHERE {_has_turn(view, 'o.session_id')}"), view.params
    )
    return list(found.scalars())


def seen(connection: sa.Connection, rows: Sequence[Seen], *, at: int) -> None:
    """Note that turns of these sessions were stored: what was consolidated is so no longer."""
    if rows:
        driver(connection).executemany(
            _SEEN, [(one.session_id, at, at, one.next_sequence, one.completed_at) for one in rows]
        )


def complete(connection: sa.Connection, session_ids: Collection[str], *, at: int) -> None:
    """These are over."""
    if session_ids:
        driver(connection).executemany(_COMPLETE, [(at, one) for one in sorted(session_ids)])


def visible(connection: sa.Connection, view: View, session_id: str) -> Known | None:
    """A session of which the viewer may see a turn; None: there is none, or not for this one."""
    found = connection.execute(
        sa.text(f"SELECT 1 WHERE {_has_turn(view, ':session_id')}"),
        {**view.params, "session_id": session_id},
    ).first()
    return None if found is None else known(connection, [session_id]).get(session_id)


def place(connection: sa.Connection, view: View, session_id: str) -> SessionPlace | None:
    """Where a session stands now, by the turns that the viewer may see; None: there are none."""
    found = connection.execute(
        sa.text(
            "SELECT max(m.created_at) FROM memories m WHERE m.session_id = :session_id"
            f" AND m.kind = 'episode' AND {view.where('m')}"
        ),
        {**view.params, "session_id": session_id},
    ).scalar()
    if found is None:
        return None
    return SessionPlace.model_construct(session_id=session_id, last_seen_at=found)


def select(
    connection: sa.Connection,
    view: View,
    *,
    pending: bool | None,
    before: SessionPlace | None,
    limit: int,
) -> list[SessionInfo]:
    """Sessions of which the viewer may see a turn, the last one talked in first.

    When it was talked in, and whether it is over, is told by the turns that may be seen.

    Args:
        pending: only those that wait for their consolidation, or only those that do not.
        before: the place of the last session of the page before.
    """
    terms = ["1"]
    values: dict[str, Any] = {**view.params, "limit": limit}
    if pending is not None:
        terms.append(f"s.consolidated_at IS {'NULL' if pending else 'NOT NULL'}")
    if before is not None:
        terms.append("(v.last_at, s.session_id) < (:before_at, :before_id)")
        values |= {"before_at": before.last_seen_at, "before_id": before.session_id}
    turns = (
        "SELECT count(*) FROM memories m WHERE m.session_id = s.session_id AND m.kind = 'episode'"
        f" AND m.status = '{MemoryStatus.ACTIVE.value}' AND {view.where('m')}"
    )
    statement = sa.text(
        "WITH visible AS MATERIALIZED (SELECT m.session_id, min(m.created_at) AS first_at,"
        " max(m.created_at) AS last_at, max(m.pk) AS last_pk FROM memories m"
        f" WHERE m.session_id IS NOT NULL AND m.kind = 'episode' AND {view.where('m')}"
        " GROUP BY m.session_id)"
        " SELECT s.session_id, v.first_at AS first_seen_at, v.last_at AS last_seen_at,"
        f" CASE WHEN ({_LAST_TURN}) = v.last_pk THEN s.completed_at END AS completed_at,"
        f" s.consolidated_at, ({turns}) AS turns, ({turns} AND m.pk > coalesce((SELECT pk"
        " FROM memories WHERE memory_id = s.consolidated_through), 0)) AS pending"
        " FROM visible v JOIN sessions s ON s.session_id = v.session_id"
        f" WHERE {' AND '.join(terms)} ORDER BY v.last_at DESC, s.session_id DESC LIMIT :limit"
    )
    return [
        SessionInfo.model_construct(**row._mapping) for row in connection.execute(statement, values)
    ]


def _has_turn(view: View, session_id: str) -> str:
    return (
        f"EXISTS (SELECT 1 FROM memories m WHERE m.session_id = {session_id}"
        f" AND m.kind = 'episode' AND {view.where('m')})"
    )
