"""The SQL of consolidation: sessions and how far they were read, their turns, facts beside them.

SQLite's. Every function works on the connection of a transaction that the caller holds, and binds
plain values.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import Sensitivity
from memgraph.storage.namespace_queries import is_no_item
from memgraph.storage.statements import driver


class SessionState(NamedTuple):
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


def session_state(connection: sa.Connection, session_id: str) -> SessionState | None:
    """None: no turn of such a session was ever stored."""
    row = driver(connection).execute(_STATE, (session_id,)).fetchone()
    return None if row is None else SessionState._make(row)


def ended_sessions(connection: sa.Connection, idle_since: int, limit: int = 100_000) -> list[str]:
    """Sessions that were not consolidated and are over, or silent since then; oldest first."""
    found = driver(connection).execute(
        "SELECT session_id FROM sessions WHERE consolidated_at IS NULL"
        " AND (completed_at IS NOT NULL OR last_seen_at <= ?)"
        " ORDER BY last_seen_at, session_id LIMIT ?",
        (idle_since, limit),
    )
    return [session_id for (session_id,) in found]


def turns_after(connection: sa.Connection, session_id: str, pk: int, limit: int) -> list[TurnRow]:
    """The next turns of a session in the order of storing, of any status."""
    found = driver(connection).execute(
        f"{_TURNS} AND m.pk > ? ORDER BY m.pk LIMIT ?", (session_id, pk, limit)
    )
    return [TurnRow._make(row) for row in found]


def turns_before(connection: sa.Connection, session_id: str, pk: int, limit: int) -> list[TurnRow]:
    """The last active turns up to a key, in order."""
    found = driver(connection).execute(
        f"{_TURNS} AND m.pk <= ? AND m.status = 'active' ORDER BY m.pk DESC LIMIT ?",
        (session_id, pk, limit),
    )
    return [TurnRow._make(row) for row in found][::-1]


def has_turns_after(connection: sa.Connection, session_id: str, pk: int) -> bool:
    found = driver(connection).execute(
        "SELECT 1 FROM memories WHERE session_id = ? AND kind = 'episode' AND pk > ? LIMIT 1",
        (session_id, pk),
    )
    return found.fetchone() is not None


def move_on(
    connection: sa.Connection, session_id: str, through: str | None, consolidated_at: int | None
) -> None:
    """Note that a session was read up to a turn, and whether that was the last one."""
    driver(connection).execute(
        "UPDATE sessions SET consolidated_through = ?, consolidated_at = ? WHERE session_id = ?",
        (through, consolidated_at, session_id),
    )


def active_ids(connection: sa.Connection, ids: Collection[str]) -> set[str]:
    """Those of ``ids`` that are stored and active."""
    found = driver(connection).execute(
        "SELECT memory_id FROM memories"
        " WHERE memory_id IN (SELECT value FROM json_each(?)) AND status = 'active'",
        (json.dumps(sorted(ids)),),
    )
    return {memory_id for (memory_id,) in found}


def newest_pk(connection: sa.Connection) -> int:
    [(last,)] = driver(connection).execute("SELECT coalesce(max(pk), 0) FROM memories")
    return int(last)


def facts_by_text(
    connection: sa.Connection, match: str, place: Place, *, at: int, limit: int
) -> list[FactRow]:
    """Facts beside a place that fulfil an FTS5 expression, best bm25 first."""
    found = driver(connection).execute(
        f"{_FACT} FROM memory_fts f CROSS JOIN memories m ON m.pk = f.rowid"
        " JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE f.memory_fts MATCH ? AND {_BESIDE} ORDER BY f.rank LIMIT ?",
        (*place[2:], match, *_beside(place, at), limit),
    )
    return [FactRow._make(row) for row in found]


def facts_by_id(
    connection: sa.Connection, ids: Sequence[str], place: Place, *, at: int
) -> dict[str, FactRow]:
    """Those of ``ids`` that are facts beside a place."""
    found = driver(connection).execute(
        f"{_FACT} FROM memories m JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE m.memory_id IN (SELECT value FROM json_each(?)) AND {_BESIDE}",
        (*place[2:], json.dumps(list(ids)), *_beside(place, at)),
    )
    return {row[0]: FactRow._make(row) for row in found}


def same_facts(
    connection: sa.Connection, hashes: Collection[str], place: Place, *, at: int
) -> dict[str, str]:
    """By content hash the oldest fact of just this place and sensitivity, of any type.

    Active ones, that are valid ``at`` that time.
    """
    found = driver(connection).execute(
        "SELECT content_hash, memory_id FROM memories"
        " WHERE content_hash IN (SELECT value FROM json_each(?)) AND kind = 'fact'"
        f" AND kind <> 'episode' AND {is_no_item('memories')}"
        " AND status = 'active' AND scope = ? AND scope_id IS ?"
        " AND agent_id IS ? AND sensitivity = ?"
        " AND (valid_until IS NULL OR valid_until > ?) ORDER BY pk DESC",
        (json.dumps(sorted(hashes)), *place, at),
    )
    return dict(found.fetchall())


def facts_since(
    connection: sa.Connection, pk: int, place: Place, limit: int, *, at: int
) -> list[FactRow]:
    """Facts beside a place that were stored after a key, the first one first."""
    found = driver(connection).execute(
        f"{_FACT} FROM memories m JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE m.pk > ? AND {_BESIDE} ORDER BY m.pk LIMIT ?",
        (*place[2:], pk, *_beside(place, at), limit),
    )
    return [FactRow._make(row) for row in found]


def extracted_facts(connection: sa.Connection, session_id: str) -> int:
    """How many facts were ever extracted from a session."""
    [(number,)] = driver(connection).execute(
        "SELECT count(*) FROM memories m JOIN memory_sources s ON s.source_id = m.source_id"
        " WHERE m.session_id = ? AND m.kind = 'fact' AND s.captured_by = 'extractor'",
        (session_id,),
    )
    return int(number)


def derived_from(connection: sa.Connection, memory_id: str) -> set[str]:
    """Ids of the memories that one was derived from."""
    found = driver(connection).execute(
        "SELECT derived_from_id FROM memory_derivations WHERE memory_id = ?", (memory_id,)
    )
    return {ground for (ground,) in found}


def speakers(
    connection: sa.Connection, ids: Collection[str]
) -> dict[str, list[tuple[str | None, str | None]]]:
    """By id of a memory whom the turns that it rests on name: (role, what it was told to be)."""
    rows = driver(connection).execute(
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
