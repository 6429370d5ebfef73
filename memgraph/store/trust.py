"""Who is trusted how far, and what memories stand on: ``memgraph.rules.trust`` over SQL.

Every function works on a snapshot or transaction that the caller holds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.clock import MAX_MS, MS_PER_DAY
from memgraph.model.enums import CapturedBy, SourceName, SourceType, TrustTier
from memgraph.model.speaking import PERSONS, Voice, voice_of
from memgraph.model.values import StoredSource
from memgraph.rules.evidence import Origin
from memgraph.rules.trust import Captured, Named, Standing, Trust, Trusted, ceiling, floors
from memgraph.store.rows import SOURCE_FIELDS, source_from_row
from memgraph.store.snapshot import Snapshot, Transaction, driver
from memgraph.store.statements import Column

# Rows of ``memory_supports``: further sources that say what a memory says.


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
    snapshot: Snapshot, memory_id: str, *, until: int = MAX_MS
) -> tuple[list[Origin], list[Origin]]:
    """Where a memory came from, and where else it was said, in the order in which that came.

    Each with who said it there: the persons among those whose turns the memory rests on, else all.

    Args:
        until: milliseconds; what was noted later counts for nothing.
    """
    said = _said(snapshot, memory_id, until)
    own = []
    for *row, session_id in driver(snapshot).execute(_OWN, (memory_id, until)):
        own = [_origin(row, said), _origin((session_id, None, None, None), said)]
    rows = driver(snapshot).execute(_FURTHER, (memory_id, until))
    further = [_origin(row, said) for row in rows]
    # Its own source was taken back: the first of those that are left stands for it.
    return (own, further) if own else (further[:1], further[1:])


def _said(snapshot: Snapshot, memory_id: str, until: int) -> dict[str, list[_Said]]:
    """The turns that a memory rests on, by conversation."""
    found: dict[str, list[_Said]] = {}
    for session_id, role, told_as, at, words in driver(snapshot).execute(
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
    snapshot: Snapshot, memory_id: str, *, until: int = MAX_MS
) -> list[tuple[int, StoredSource]]:
    """When each further source of a memory was noted, and what it is; the first one first."""
    found = driver(snapshot).execute(_TOLD, (memory_id, until))
    return [(at, source_from_row(row)) for at, *row in found]


def further_of(
    snapshot: Snapshot, memory_ids: Collection[str]
) -> list[tuple[str, int, StoredSource]]:
    """The same of several memories, with the id of each, by ids."""
    found = driver(snapshot).execute(_TOLD_OF, (json.dumps(list(memory_ids)),))
    return [(one, at, source_from_row(row)) for one, at, *row in found]


def add(transaction: Transaction, memory_id: str, source_id: str, *, at: int) -> bool:
    """Note a further source; whether it is new. The memory's own one is none."""
    done = driver(transaction).execute(_ADD, (source_id, at, memory_id, source_id))
    return int(done.rowcount) > 0


def gained(
    snapshot: Snapshot, memory_id: str, source_ids: Collection[str]
) -> list[tuple[float, float]]:
    """The confidence before and after, each time that one of these further sources gave some."""
    found = driver(snapshot).execute(_GAINED, (memory_id, json.dumps(list(source_ids))))
    return [(before, after) for before, after in found if before is not None and after is not None]


def end(transaction: Transaction, memory_id: str, source_ids: Collection[str], *, at: int) -> None:
    """Further sources of a memory were taken back: from now on they count for nothing."""
    driver(transaction).execute(_END, (at, memory_id, json.dumps(list(source_ids))))


def end_own(transaction: Transaction, memory_id: str, *, at: int) -> bool:
    """A memory's own source was taken back, it stands on others; whether that is new."""
    done = driver(transaction).execute(_END_OWN, (at, at, memory_id))
    return int(done.rowcount) > 0


def give_back(transaction: Transaction, memory_id: str, source_ids: Collection[str]) -> None:
    """Sources that were taken back count again, the own one as well as further ones."""
    given = (memory_id, json.dumps(list(source_ids)))
    for statement in (_RETURN_OWN, _RETURN):
        driver(transaction).execute(statement, given)


MAX_LOOKED_AT: Final = 20_000
"""Grounds, and grounds of grounds, that are looked at; the rest counts as the lowest."""

_UNREAD: Final = ""

_TRUST_TOLD = "SELECT kind, name, tier, max_memories FROM source_trust"
_CAPTURED: Final = (
    *("source_type", "captured_by", "source_path", "conversation_id", "workflow_run_id"),
    "content_sha256",
)
CAPTURED: Final = ", ".join(f"s.{name}" for name in _CAPTURED)
_TRUST_OWN = (
    f"SELECT m.memory_id, {OWN_GONE}, {CAPTURED}, m.session_id FROM json_each(?1) f"
    " CROSS JOIN memories m ON m.memory_id = f.value"
    " JOIN memory_sources s ON s.source_id = m.source_id"
)
_SUPPORTS = (
    f"SELECT p.memory_id, {CAPTURED}, NULL FROM json_each(?1) f"
    " CROSS JOIN memory_supports p ON p.memory_id = f.value"
    f" AND coalesce({HELD}, p.ended_at IS NULL)"
    " JOIN memory_sources s ON s.source_id = p.source_id"
    " ORDER BY p.memory_id, p.added_at, p.source_id"
)
_NEXT_CONVERSATION = (
    "SELECT min(conversation_id) FROM memory_sources"
    " WHERE conversation_id IS NOT NULL AND conversation_id > ?"
)
_GROUNDS = (
    "SELECT d.memory_id, d.derived_from_id FROM json_each(?) f"
    " CROSS JOIN memory_derivations d ON d.memory_id = f.value AND d.added_at IS NULL"
    " ORDER BY d.memory_id, d.derived_from_id LIMIT ?"
)
_SET = (
    "INSERT INTO source_trust (kind, name, tier, max_memories, set_at, actor, reason)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET tier = excluded.tier,"
    " max_memories = excluded.max_memories, set_at = excluded.set_at, actor = excluded.actor,"
    " reason = excluded.reason"
)


class TrustRow(NamedTuple):
    """A row of ``source_trust``; ``set_at`` in milliseconds."""

    named: Named
    trusted: Trusted
    set_at: int
    actor: str
    reason: str


def with_told(snapshot: Snapshot, defaults: Trust) -> Trust:
    """The defaults of the settings with all that operators said."""
    told = {
        Named(SourceName(kind), name): Trusted(TrustTier(tier), most)
        for kind, name, tier, most in driver(snapshot).execute(_TRUST_TOLD)
    }
    if not told:
        return defaults
    return Trust(defaults.captured_by, defaults.source_type, defaults.max_memories, told)


def told(snapshot: Snapshot) -> list[TrustRow]:
    """What operators said, by kind and name."""
    found = driver(snapshot).execute(
        "SELECT kind, name, tier, max_memories, set_at, actor, reason FROM source_trust"
        " ORDER BY kind, name"
    )
    return [
        TrustRow(
            Named(SourceName(kind), name), Trusted(TrustTier(tier), most), set_at, actor, reason
        )
        for kind, name, tier, most, set_at, actor, reason in found
    ]


def tell(transaction: Transaction, row: TrustRow) -> None:
    """Note what an operator says of a source; it takes the place of what was said before."""
    values = (row.named.kind.value, row.named.name, row.trusted.tier.value)
    driver(transaction).execute(
        _SET, (*values, row.trusted.max_memories, row.set_at, row.actor, row.reason)
    )


def untell(transaction: Transaction, named: Named) -> bool:
    """Take back what was said of a source; whether something was."""
    done = driver(transaction).execute(
        "DELETE FROM source_trust WHERE kind = ? AND name = ?", (named.kind.value, named.name)
    )
    return int(done.rowcount) > 0


def tiers(snapshot: Snapshot, trust: Trust, memory_ids: Collection[str]) -> dict[str, TrustTier]:
    """With which tier each of some memories may replace others: see ``policy.trust.floors``."""
    wanted = list(dict.fromkeys(memory_ids))
    if trust.uniform:
        return dict.fromkeys(wanted, next(iter(trust.captured_by.values())))
    return floors(wanted, standings(snapshot, wanted), trust)


def protections(
    snapshot: Snapshot, trust: Trust, memory_ids: Collection[str]
) -> dict[str, TrustTier]:
    """The tier against which each of some memories is protected: see ``policy.trust.ceiling``."""
    found = _read(snapshot, list(dict.fromkeys(memory_ids)), 0)
    return {one: ceiling(each, trust) for one, each in found.items()}


def protections_then(
    snapshot: Snapshot, defaults: Trust, memory_ids: Collection[str], at: int
) -> dict[str, tuple[TrustTier, bool]]:
    """The tier that protected each of some memories at a time, and whether it is known.

    It is where all that an operator says of the sources that it had then was said by then, for a
    word takes the place of an earlier one. Elsewhere it is the tier in which these are now.

    Args:
        defaults: the settings' tiers, of which nobody knows what they were.
        at: milliseconds.
    """
    now = with_told(snapshot, defaults)
    since = {each.named: each.set_at for each in told(snapshot)}
    found = _read(snapshot, list(dict.fromkeys(memory_ids)), 0, at)
    return {
        one: (
            ceiling(each, now),
            all(
                (words := now.words(source)) and all(since[named] <= at for named, _ in words)
                for source in each.saying
            ),
        )
        for one, each in found.items()
    }


def may_replace(snapshot: Snapshot, trust: Trust, new_id: str, old_id: str) -> bool:
    """Whether one memory is trusted far enough to replace another."""
    if trust.uniform:
        return True
    newer = tiers(snapshot, trust, [new_id])[new_id]
    return newer.level >= protections(snapshot, trust, [old_id])[old_id].level


def replaceable(
    snapshot: Snapshot, trust: Trust, source: Captured, memory_ids: Collection[str]
) -> set[str]:
    """Those of some memories that a new one of this source, without grounds, may replace."""
    if trust.uniform:
        return set(memory_ids)
    newer = trust.tier(source)
    found = protections(snapshot, trust, memory_ids)
    return {one for one, tier in found.items() if newer.level >= tier.level}


def sources_by_id(snapshot: Snapshot, source_ids: Collection[str]) -> dict[str, Captured]:
    """Return sources by their ids, each without the session of a memory."""
    statement = (
        f"SELECT s.source_id, {CAPTURED}, NULL FROM json_each(?) f"
        " CROSS JOIN memory_sources s ON s.source_id = f.value"
    )
    found = driver(snapshot).execute(statement, (json.dumps(list(source_ids)),))
    return {source_id: captured_from_row(row) for source_id, *row in found}


def has_other_talks(snapshot: Snapshot, names: Collection[Named]) -> bool:
    """Return whether there is a conversation, or a session, beside those of some names.

    Sessions count where none of the names is a conversation: a talk has many of them.
    """
    told = sorted({each.name for each in names if each.kind is SourceName.CONVERSATION})
    execute = driver(snapshot).execute
    known, name = 0, ""
    # One look into the index for each conversation, however many turns it has.
    while (found := execute(_NEXT_CONVERSATION, (name,)).fetchone()[0]) is not None:
        if found not in told:
            return True
        known, name = known + 1, str(found)
    if known:
        return False
    sessions = execute("SELECT session_id FROM sessions LIMIT ?", (len(told) + 1,))
    return any(session not in told for (session,) in sessions)


def standings(snapshot: Snapshot, memory_ids: Iterable[str]) -> dict[str, Standing]:
    """What memories stand on, and what their grounds do, ``MAX_LOOKED_AT`` of them at most."""
    found: dict[str, Standing] = {}
    layer = list(memory_ids)
    while layer and len(found) < MAX_LOOKED_AT:
        fresh = _read(snapshot, layer, MAX_LOOKED_AT)
        found |= fresh
        grounds = dict.fromkeys(ground for each in fresh.values() for ground in each.grounds)
        layer = [one for one in grounds if one not in found][: MAX_LOOKED_AT - len(found)]
    return found


def _read(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    most_grounds: int,
    at: int | None = None,
) -> dict[str, Standing]:
    """``at``: milliseconds; with the further sources of then, not of now."""
    execute = driver(snapshot).execute
    ids = json.dumps(list(memory_ids))
    own: dict[str, Captured] = {}
    own_gone: set[str] = set()
    for memory_id, gone, *row in execute(_TRUST_OWN, (ids, at)):
        own[memory_id] = captured_from_row(row)
        if gone:
            own_gone.add(memory_id)
    supports: dict[str, list[Captured]] = {}
    for memory_id, *row in execute(_SUPPORTS, (ids, at)):
        supports.setdefault(memory_id, []).append(captured_from_row(row))
    grounds: dict[str, list[str]] = {}
    if most_grounds:
        found = execute(_GROUNDS, (ids, most_grounds + 1)).fetchall()
        for memory_id, ground in found[:most_grounds]:
            grounds.setdefault(memory_id, []).append(ground)
        if len(found) > most_grounds:
            # Whose grounds these are that stay unread is not known: none of them is trusted.
            grounds = {one: [*grounds.get(one, ()), _UNREAD] for one in own}
    return {
        one: Standing(
            each, tuple(supports.get(one, ())), tuple(grounds.get(one, ())), one in own_gone
        )
        for one, each in own.items()
    }


def captured_columns(s: sa.FromClause) -> list[Column]:
    """Return the columns of a source that ``captured_from_row`` takes."""
    return [s.c[name] for name in _CAPTURED]


def captured_from_row(row: Sequence[Any]) -> Captured:
    """Return what tells of a source how far it is trusted.

    Args:
        row: ``captured_columns``, and the session of the memory.
    """
    source_type, captured_by, *names = row
    return Captured(SourceType(source_type), CapturedBy(captured_by), *names)
