"""Rows of ``memory_supports``: further sources that say what a memory says."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from memgraph.clock import MAX_MS, MS_PER_DAY
from memgraph.model.speaking import PERSONS, Voice, voice_of
from memgraph.model.values import StoredSource
from memgraph.policy.support import Origin
from memgraph.storage.rows import SOURCE_FIELDS, source_from_row
from memgraph.storage.statements import driver

_ORIGIN = "s.conversation_id, s.source_path, s.content_sha256, s.workflow_run_id"
# Of a source that counts again the journal alone tells that it did not for a while.
_WAS_GONE = """
    (?2 < {latest} AND EXISTS (
        SELECT 1 FROM audit_log w, json_each(w.details, '$.source_ids') i
        WHERE w.subject = {row}.memory_id AND w.action = 'weaken' AND w.at <= ?2
        AND w.at > {since} AND i.value = {row}.source_id AND NOT EXISTS (
            SELECT 1 FROM audit_log r, json_each(r.details, '$.source_ids') j
            WHERE r.subject = w.subject AND r.seq > w.seq AND r.action = 'regain' AND r.at <= ?2
            AND j.value = i.value)))"""
OWN_GONE: Final = f"""(EXISTS (
        SELECT 1 FROM memory_supports p WHERE p.memory_id = m.memory_id
        AND p.source_id = m.source_id AND p.ended_at <= coalesce(?2, {MAX_MS}))
    OR {_WAS_GONE.format(latest=MAX_MS, row="m", since="m.created_at")})"""
"""Of a memory ``m``: its own source does not count at the time that is the second parameter."""
_OWN = (
    f"SELECT {_ORIGIN}, m.session_id FROM memories m"
    " JOIN memory_sources s ON s.source_id = m.source_id"
    f" WHERE m.memory_id = ?1 AND NOT {OWN_GONE}"
)
HELD: Final = (
    "p.added_at <= ?2 AND (p.ended_at IS NULL OR p.ended_at > ?2)"
    f" AND NOT {_WAS_GONE.format(latest=MAX_MS, row='p', since='p.added_at')}"
)
"""Of a row ``p`` of ``memory_supports``: it said so at the time that is the second parameter."""
_FURTHER = (
    f"SELECT {_ORIGIN} FROM memory_supports p JOIN memory_sources s ON s.source_id = p.source_id"
    f" WHERE p.memory_id = ?1 AND {HELD} ORDER BY p.added_at, p.source_id"
)
_TURNS = (
    "SELECT m.session_id, m.source_role, json_extract(m.attributes, '$.told_as'),"
    " coalesce(m.event_time, m.created_at), m.content_hash"
    " FROM memory_derivations d JOIN memories m ON m.memory_id = d.derived_from_id"
    " WHERE d.memory_id = ? AND coalesce(d.added_at, 0) <= ? AND m.kind = 'episode'"
)
_TOLD = (
    f"SELECT p.added_at, {', '.join(f's.{name}' for name in SOURCE_FIELDS)}"
    " FROM memory_supports p JOIN memory_sources s ON s.source_id = p.source_id"
    f" WHERE p.memory_id = ?1 AND {HELD} ORDER BY p.added_at, p.source_id"
)
_TOLD_OF = (
    f"SELECT p.memory_id, p.added_at, {', '.join(f's.{name}' for name in SOURCE_FIELDS)}"
    " FROM json_each(?) f CROSS JOIN memory_supports p ON p.memory_id = f.value"
    " AND p.ended_at IS NULL"
    " CROSS JOIN memory_sources s ON s.source_id = p.source_id"
    " ORDER BY p.memory_id, p.added_at, p.source_id"
)
# What was taken back may be said again. Of the own source there is a row only then.
_ADD = (
    "INSERT INTO memory_supports (memory_id, source_id, added_at)"
    " SELECT m.memory_id, ?, ? FROM memories m WHERE m.memory_id = ? AND (m.source_id <> ?"
    " OR EXISTS (SELECT 1 FROM memory_supports p WHERE p.memory_id = m.memory_id"
    " AND p.source_id = m.source_id))"
    " ON CONFLICT (memory_id, source_id) DO UPDATE SET added_at = excluded.added_at,"
    " ended_at = NULL WHERE ended_at IS NOT NULL"
)
_END = (
    "UPDATE memory_supports SET ended_at = ? WHERE memory_id = ? AND ended_at IS NULL"
    " AND source_id IN (SELECT value FROM json_each(?))"
)
# It counts from no time on: as a further source it is never told.
_END_OWN = (
    "INSERT INTO memory_supports (memory_id, source_id, added_at, ended_at)"
    " SELECT memory_id, source_id, ?, ? FROM memories WHERE memory_id = ?"
    " ON CONFLICT (memory_id, source_id) DO UPDATE SET ended_at = excluded.ended_at"
    " WHERE ended_at IS NULL"
)
_GAINED = (
    "SELECT json_extract(a.details, '$.confidence.before'),"
    " json_extract(a.details, '$.confidence.after') FROM audit_log a"
    " JOIN memory_supports p ON p.memory_id = a.subject"
    " AND p.source_id = json_extract(a.details, '$.source_id')"
    " WHERE a.subject = ? AND a.action = 'strengthen' AND a.at >= p.added_at"
    " AND p.source_id IN (SELECT value FROM json_each(?)) ORDER BY a.seq"
)


# Of the own source there was a row only because it was ended.
_RETURN_OWN = (
    "DELETE FROM memory_supports WHERE memory_id = ?1 AND source_id IN (SELECT value FROM"
    " json_each(?2)) AND source_id = (SELECT m.source_id FROM memories m WHERE m.memory_id = ?1)"
)
_RETURN = (
    "UPDATE memory_supports SET ended_at = NULL WHERE memory_id = ?1"
    " AND source_id IN (SELECT value FROM json_each(?2))"
)


class _Said(NamedTuple):
    """A turn that says what a memory says; ``words``: its content's hash."""

    speaker: str
    day: int
    words: str
    person: bool


def origins(
    connection: sa.Connection, memory_id: str, *, until: int = MAX_MS
) -> tuple[list[Origin], list[Origin]]:
    """Where a memory came from, and where else it was said, in the order in which that came.

    Each with who said it there: the persons among those whose turns the memory rests on, else all.

    Args:
        until: milliseconds; what was noted later counts for nothing.
    """
    said = _said(connection, memory_id, until)
    own = []
    for *row, session_id in driver(connection).execute(_OWN, (memory_id, until)):
        own = [_origin(row, said), _origin((session_id, None, None, None), said)]
    rows = driver(connection).execute(_FURTHER, (memory_id, until))
    further = [_origin(row, said) for row in rows]
    # Its own source was taken back: the first of those that are left stands for it.
    return (own, further) if own else (further[:1], further[1:])


def _said(connection: sa.Connection, memory_id: str, until: int) -> dict[str, list[_Said]]:
    """The turns that a memory rests on, by conversation."""
    found: dict[str, list[_Said]] = {}
    for session_id, role, told_as, at, words in driver(connection).execute(
        _TURNS, (memory_id, until)
    ):
        voice = voice_of(role, told_as)
        name = (role or "").casefold()
        # "user" and "human" name nobody: they may be one.
        speaker = "user" if name in PERSONS else name
        turn = _Said(speaker, at // MS_PER_DAY, words, voice is Voice.PERSON)
        found.setdefault(session_id, []).append(turn)
    return found


def _origin(row: Sequence[str | None], said: dict[str, list[_Said]]) -> Origin:
    conversation_id, source_path, content_sha256, workflow_run_id = row
    turns = said.get(conversation_id or "", [])
    turns = [each for each in turns if each.person] or turns
    return Origin(
        conversation_id,
        source_path,
        content_sha256,
        workflow_run_id,
        speakers=frozenset(each.speaker for each in turns),
        days=frozenset(each.day for each in turns),
        words=frozenset(each.words for each in turns),
    )


def further(
    connection: sa.Connection, memory_id: str, *, until: int = MAX_MS
) -> list[tuple[int, StoredSource]]:
    """When each further source of a memory was noted, and what it is; the first one first."""
    found = driver(connection).execute(_TOLD, (memory_id, until))
    return [(at, source_from_row(row)) for at, *row in found]


def further_of(
    connection: sa.Connection, memory_ids: Collection[str]
) -> list[tuple[str, int, StoredSource]]:
    """The same of several memories, with the id of each, by ids."""
    found = driver(connection).execute(_TOLD_OF, (json.dumps(list(memory_ids)),))
    return [(one, at, source_from_row(row)) for one, at, *row in found]


def add(connection: sa.Connection, memory_id: str, source_id: str, *, at: int) -> bool:
    """Note a further source; whether it is new. The memory's own one is none."""
    done = driver(connection).execute(_ADD, (source_id, at, memory_id, source_id))
    return int(done.rowcount) > 0


def gained(
    connection: sa.Connection, memory_id: str, source_ids: Collection[str]
) -> list[tuple[float, float]]:
    """The confidence before and after, each time that one of these further sources gave some."""
    found = driver(connection).execute(_GAINED, (memory_id, json.dumps(list(source_ids))))
    return [(before, after) for before, after in found if before is not None and after is not None]


def end(connection: sa.Connection, memory_id: str, source_ids: Collection[str], *, at: int) -> None:
    """Further sources of a memory were taken back: from now on they count for nothing."""
    driver(connection).execute(_END, (at, memory_id, json.dumps(list(source_ids))))


def end_own(connection: sa.Connection, memory_id: str, *, at: int) -> bool:
    """A memory's own source was taken back, it stands on others; whether that is new."""
    done = driver(connection).execute(_END_OWN, (at, at, memory_id))
    return int(done.rowcount) > 0


def give_back(connection: sa.Connection, memory_id: str, source_ids: Collection[str]) -> None:
    """Sources that were taken back count again, the own one as well as further ones."""
    given = (memory_id, json.dumps(list(source_ids)))
    for statement in (_RETURN_OWN, _RETURN):
        driver(connection).execute(statement, given)
