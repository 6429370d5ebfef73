"""Rows of ``sessions``: one conversation each, with the place of its next turn and its state."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.model.conversation import SessionInfo, SessionPlace
from memgraph.model.enums import MemoryStatus, Sensitivity
from memgraph.rules.conversations import SessionState
from memgraph.store.items import is_no_item
from memgraph.store.snapshot import Snapshot, Transaction, driver
from memgraph.store.visibility import View

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


def known(snapshot: Snapshot, session_ids: Collection[str]) -> dict[str, Known]:
    """Those of the sessions that are registered."""
    if not session_ids:
        return {}
    found = driver(snapshot).execute(_KNOWN, (json.dumps(list(session_ids)),))
    return {session_id: Known(*rest) for session_id, *rest in found}


def open_ids(snapshot: Snapshot, view: View | None = None) -> list[str]:
    """Sessions that are neither completed nor consolidated, in the order they began.

    Args:
        view: only those of which it shows a turn; None: all.
    """
    if view is None:
        return [session_id for (session_id,) in driver(snapshot).execute(_OPEN)]
    found = snapshot.execute(
        sa.text(f"SELECT * FROM ({_OPEN}) o WHERE {_has_turn(view, 'o.session_id')}"), view.params
    )
    return list(found.scalars())


def seen(transaction: Transaction, rows: Sequence[Seen], *, at: int) -> None:
    """Note that turns of these sessions were stored: what was consolidated is so no longer."""
    if rows:
        driver(transaction).executemany(
            _SEEN, [(one.session_id, at, at, one.next_sequence, one.completed_at) for one in rows]
        )


def complete(transaction: Transaction, session_ids: Collection[str], *, at: int) -> None:
    """These are over."""
    if session_ids:
        driver(transaction).executemany(_COMPLETE, [(at, one) for one in sorted(session_ids)])


def visible(snapshot: Snapshot, view: View, session_id: str) -> Known | None:
    """A session of which the viewer may see a turn; None: there is none, or not for this one."""
    found = snapshot.execute(
        sa.text(f"SELECT 1 WHERE {_has_turn(view, ':session_id')}"),
        {**view.params, "session_id": session_id},
    ).first()
    return None if found is None else known(snapshot, [session_id]).get(session_id)


def place(snapshot: Snapshot, view: View, session_id: str) -> SessionPlace | None:
    """Where a session stands now, by the turns that the viewer may see; None: there are none."""
    found = snapshot.execute(
        sa.text(
            "SELECT max(m.created_at) FROM memories m WHERE m.session_id = :session_id"
            f" AND m.kind = 'episode' AND {view.text.where('m')}"
        ),
        {**view.params, "session_id": session_id},
    ).scalar()
    if found is None:
        return None
    return SessionPlace.model_construct(session_id=session_id, last_seen_at=found)


def select(
    snapshot: Snapshot,
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
    turns = (
        "SELECT count(*) FROM memories m WHERE m.session_id = s.session_id AND m.kind = 'episode'"
        f" AND m.status = '{MemoryStatus.ACTIVE.value}' AND {view.text.where('m')}"
    )
    waiting = (
        f"{turns} AND m.pk > coalesce((SELECT pk FROM memories"
        " WHERE memory_id = s.consolidated_through), 0)"
    )
    completed = f"CASE WHEN ({_LAST_TURN}) = v.last_pk THEN s.completed_at END"
    consolidated = "s.consolidated_at"
    if not view.viewer.sees_use:
        # A hidden turn opens a session again, and a hidden session ends those that are open.
        completed = "NULL"
        consolidated = (
            f"CASE WHEN s.consolidated_through IS NOT NULL AND ({waiting}) = 0 THEN v.last_at END"
        )
    terms = ["1"]
    values: dict[str, Any] = {**view.params, "limit": limit}
    if pending is not None:
        terms.append(f"({consolidated}) IS {'NULL' if pending else 'NOT NULL'}")
    if before is not None:
        terms.append("(v.last_at, s.session_id) < (:before_at, :before_id)")
        values |= {"before_at": before.last_seen_at, "before_id": before.session_id}
    statement = sa.text(
        "WITH visible AS MATERIALIZED (SELECT m.session_id, min(m.created_at) AS first_at,"
        " max(m.created_at) AS last_at, max(m.pk) AS last_pk FROM memories m"
        f" WHERE m.session_id IS NOT NULL AND m.kind = 'episode' AND {view.text.where('m')}"
        " GROUP BY m.session_id)"
        " SELECT s.session_id, v.first_at AS first_seen_at, v.last_at AS last_seen_at,"
        f" {completed} AS completed_at, {consolidated} AS consolidated_at, ({turns}) AS turns,"
        f" ({waiting}) AS pending"
        " FROM visible v JOIN sessions s ON s.session_id = v.session_id"
        f" WHERE {' AND '.join(terms)} ORDER BY v.last_at DESC, s.session_id DESC LIMIT :limit"
    )
    return [
        SessionInfo.model_construct(**row._mapping) for row in snapshot.execute(statement, values)
    ]


def _has_turn(view: View, session_id: str) -> str:
    return (
        f"EXISTS (SELECT 1 FROM memories m WHERE m.session_id = {session_id}"
        f" AND m.kind = 'episode' AND {view.text.where('m')})"
    )


# The SQL of consolidation: sessions and how far they were read, their turns, facts beside them.


class Consolidation(NamedTuple):
    """How far a session was read. ``through_pk``: the key of the last turn read, 0: none."""

    session_id: str
    through: str | None
    through_pk: int
    consolidated_at: int | None


class TurnRow(NamedTuple):
    """A turn with all that its facts inherit.

    ``at``: when it was said, else when stored. ``dated``: it is known when it was said; of a file's
    turn only by the file's own word, of any other it was said when it was stored.
    """

    pk: int
    memory_id: str
    content: str
    status: str
    source_role: str | None
    at: int
    sequence: int | None
    scope: str
    scope_id: str | None
    agent_id: str | None
    sensitivity: str
    source_path: str | None
    workflow_run_id: str | None
    step_id: str | None
    content_sha256: str | None
    stored_at: int
    told_as: str | None
    dated: int


class FactRow(NamedTuple):
    """An active fact. ``time``: when it happened, else when it was stored.

    ``twin``: it is of just the place that was asked for, so that it may stand for a new fact of it.
    """

    memory_id: str
    content: str
    type: str
    confidence: float
    time: int
    captured_by: str
    source_type: str
    twin: int


class Place(NamedTuple):
    """Whose memories may be compared: one scope, one agent, up to a sensitivity."""

    scope: str
    scope_id: str | None
    agent_id: str | None
    sensitivity: str


_STATE = (
    "SELECT s.session_id, s.consolidated_through, coalesce(m.pk, 0), s.consolidated_at"
    " FROM sessions s LEFT JOIN memories m ON m.memory_id = s.consolidated_through"
    " WHERE s.session_id = ?"
)
_TURNS = (
    "SELECT m.pk, m.memory_id, m.content, m.status, m.source_role,"
    " coalesce(m.event_time, m.created_at), m.sequence, m.scope, m.scope_id, m.agent_id,"
    " m.sensitivity, s.source_path, s.workflow_run_id, s.step_id, s.content_sha256, m.created_at,"
    " json_extract(m.attributes, '$.told_as'),"
    " m.event_time IS NOT NULL OR (s.source_path IS NULL AND s.content_sha256 IS NULL)"
    " FROM memories m JOIN memory_sources s ON s.source_id = m.source_id"
    " WHERE m.session_id = ? AND m.kind = 'episode'"
)
_FACT = (
    "SELECT m.memory_id, m.content, m.type, m.confidence,"
    " coalesce(m.event_time, m.created_at), s.captured_by, s.source_type,"
    " m.agent_id IS ? AND m.sensitivity = ?"
)
# Facts of one scope, open to one agent, up to a sensitivity: what may be compared with new ones.
_BESIDE = (
    f"m.kind = 'fact' AND {is_no_item('m')} AND m.status = 'active'"
    " AND m.scope = ? AND m.scope_id IS ?"
    " AND (m.agent_id IS NULL OR m.agent_id IS ?)"
    " AND m.sensitivity IN (SELECT value FROM json_each(?))"
    " AND (m.valid_until IS NULL OR m.valid_until > ?)"
)


def session_state(snapshot: Snapshot, session_id: str) -> Consolidation | None:
    """None: no turn of such a session was ever stored."""
    row = driver(snapshot).execute(_STATE, (session_id,)).fetchone()
    return None if row is None else Consolidation._make(row)


def ended_sessions(snapshot: Snapshot, idle_since: int, limit: int = 100_000) -> list[str]:
    """Sessions that were not consolidated and are over, or silent since then; oldest first."""
    found = driver(snapshot).execute(
        "SELECT session_id FROM sessions WHERE consolidated_at IS NULL"
        " AND (completed_at IS NOT NULL OR last_seen_at <= ?)"
        " ORDER BY last_seen_at, session_id LIMIT ?",
        (idle_since, limit),
    )
    return [session_id for (session_id,) in found]


def turns_after(snapshot: Snapshot, session_id: str, pk: int, limit: int) -> list[TurnRow]:
    """The next turns of a session in the order of storing, of any status."""
    found = driver(snapshot).execute(
        f"{_TURNS} AND m.pk > ? ORDER BY m.pk LIMIT ?", (session_id, pk, limit)
    )
    return [TurnRow._make(row) for row in found]


def turns_before(snapshot: Snapshot, session_id: str, pk: int, limit: int) -> list[TurnRow]:
    """The last active turns up to a key, in order."""
    found = driver(snapshot).execute(
        f"{_TURNS} AND m.pk <= ? AND m.status = 'active' ORDER BY m.pk DESC LIMIT ?",
        (session_id, pk, limit),
    )
    return [TurnRow._make(row) for row in found][::-1]


def has_turns_after(snapshot: Snapshot, session_id: str, pk: int) -> bool:
    found = driver(snapshot).execute(
        "SELECT 1 FROM memories WHERE session_id = ? AND kind = 'episode' AND pk > ? LIMIT 1",
        (session_id, pk),
    )
    return found.fetchone() is not None


def move_on(
    transaction: Transaction, session_id: str, through: str | None, consolidated_at: int | None
) -> None:
    """Note that a session was read up to a turn, and whether that was the last one."""
    driver(transaction).execute(
        "UPDATE sessions SET consolidated_through = ?, consolidated_at = ? WHERE session_id = ?",
        (through, consolidated_at, session_id),
    )


def active_ids(snapshot: Snapshot, ids: Collection[str]) -> set[str]:
    """Those of ``ids`` that are stored and active."""
    found = driver(snapshot).execute(
        "SELECT memory_id FROM memories"
        " WHERE memory_id IN (SELECT value FROM json_each(?)) AND status = 'active'",
        (json.dumps(sorted(ids)),),
    )
    return {memory_id for (memory_id,) in found}


def newest_pk(snapshot: Snapshot) -> int:
    [(last,)] = driver(snapshot).execute("SELECT coalesce(max(pk), 0) FROM memories")
    return int(last)


def facts_by_id(
    snapshot: Snapshot, ids: Sequence[str], place: Place, *, at: int
) -> dict[str, FactRow]:
    """Those of ``ids`` that are facts beside a place."""
    found = driver(snapshot).execute(
        f"{_FACT} FROM memories m JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE m.memory_id IN (SELECT value FROM json_each(?)) AND {_BESIDE}",
        (*place[2:], json.dumps(list(ids)), *_beside(place, at)),
    )
    return {row[0]: FactRow._make(row) for row in found}


def same_facts(
    snapshot: Snapshot, hashes: Collection[str], place: Place, *, at: int
) -> dict[str, str]:
    """By content hash the oldest fact of just this place and sensitivity, of any type.

    Active ones, that are valid ``at`` that time.
    """
    found = driver(snapshot).execute(
        "SELECT content_hash, memory_id FROM memories"
        " WHERE content_hash IN (SELECT value FROM json_each(?)) AND kind = 'fact'"
        f" AND kind <> 'episode' AND {is_no_item('memories')}"
        " AND status = 'active' AND scope = ? AND scope_id IS ?"
        " AND agent_id IS ? AND sensitivity = ?"
        " AND (valid_until IS NULL OR valid_until > ?) ORDER BY pk DESC",
        (json.dumps(sorted(hashes)), *place, at),
    )
    return dict(found.fetchall())


def facts_since(snapshot: Snapshot, pk: int, place: Place, limit: int, *, at: int) -> list[FactRow]:
    """Facts beside a place that were stored after a key, the first one first."""
    found = driver(snapshot).execute(
        f"{_FACT} FROM memories m JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE m.pk > ? AND {_BESIDE} ORDER BY m.pk LIMIT ?",
        (*place[2:], pk, *_beside(place, at), limit),
    )
    return [FactRow._make(row) for row in found]


def extracted_facts(snapshot: Snapshot, session_id: str) -> int:
    """How many facts were ever extracted from a session."""
    [(number,)] = driver(snapshot).execute(
        "SELECT count(*) FROM memories m JOIN memory_sources s ON s.source_id = m.source_id"
        " WHERE m.session_id = ? AND m.kind = 'fact' AND s.captured_by = 'extractor'",
        (session_id,),
    )
    return int(number)


def derived_from(snapshot: Snapshot, memory_id: str) -> set[str]:
    """Ids of the memories that one was derived from."""
    found = driver(snapshot).execute(
        "SELECT derived_from_id FROM memory_derivations WHERE memory_id = ?", (memory_id,)
    )
    return {ground for (ground,) in found}


def speakers(
    snapshot: Snapshot, ids: Collection[str]
) -> dict[str, list[tuple[str | None, str | None]]]:
    """By id of a memory whom the turns that it rests on name: (role, what it was told to be)."""
    rows = driver(snapshot).execute(
        "SELECT DISTINCT d.memory_id, m.source_role, json_extract(m.attributes, '$.told_as')"
        " FROM memory_derivations d JOIN memories m ON m.memory_id = d.derived_from_id"
        " WHERE d.memory_id IN (SELECT value FROM json_each(?)) AND m.kind = 'episode'",
        (json.dumps(sorted(ids)),),
    )
    found: dict[str, list[tuple[str | None, str | None]]] = {}
    for memory_id, role, told_as in rows:
        found.setdefault(memory_id, []).append((role, told_as))
    return found


def _beside(place: Place, at: int) -> tuple[str | int | None, ...]:
    most = Sensitivity(place.sensitivity).level
    seen = [each.value for each in Sensitivity if each.level <= most]
    return place.scope, place.scope_id, place.agent_id, json.dumps(seen), at
