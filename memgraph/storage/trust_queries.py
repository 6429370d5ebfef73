"""Who is trusted how far, and what memories stand on: ``memgraph.policy.trust`` over SQL.

Every function works on the connection of a transaction that the caller holds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import CapturedBy, SourceName, SourceType, TrustTier
from memgraph.policy.trust import Captured, Named, Standing, Trust, Trusted, ceiling, floors
from memgraph.storage.statements import driver
from memgraph.storage.supports import HELD, OWN_GONE

MAX_LOOKED_AT: Final = 20_000
"""Grounds, and grounds of grounds, that are looked at; the rest counts as the lowest."""

_UNREAD: Final = ""

_TOLD = "SELECT kind, name, tier, max_memories FROM source_trust"
CAPTURED: Final = (
    "s.source_type, s.captured_by, s.source_path, s.conversation_id, s.workflow_run_id,"
    " s.content_sha256"
)
_OWN = (
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


def with_told(connection: sa.Connection, defaults: Trust) -> Trust:
    """The defaults of the settings with all that operators said."""
    told = {
        Named(SourceName(kind), name): Trusted(TrustTier(tier), most)
        for kind, name, tier, most in driver(connection).execute(_TOLD)
    }
    if not told:
        return defaults
    return Trust(defaults.captured_by, defaults.source_type, defaults.max_memories, told)


def told(connection: sa.Connection) -> list[TrustRow]:
    """What operators said, by kind and name."""
    found = driver(connection).execute(
        "SELECT kind, name, tier, max_memories, set_at, actor, reason FROM source_trust"
        " ORDER BY kind, name"
    )
    return [
        TrustRow(
            Named(SourceName(kind), name), Trusted(TrustTier(tier), most), set_at, actor, reason
        )
        for kind, name, tier, most, set_at, actor, reason in found
    ]


def tell(connection: sa.Connection, row: TrustRow) -> None:
    """Note what an operator says of a source; it takes the place of what was said before."""
    values = (row.named.kind.value, row.named.name, row.trusted.tier.value)
    driver(connection).execute(
        _SET, (*values, row.trusted.max_memories, row.set_at, row.actor, row.reason)
    )


def untell(connection: sa.Connection, named: Named) -> bool:
    """Take back what was said of a source; whether something was."""
    done = driver(connection).execute(
        "DELETE FROM source_trust WHERE kind = ? AND name = ?", (named.kind.value, named.name)
    )
    return int(done.rowcount) > 0


def tiers(
    connection: sa.Connection, trust: Trust, memory_ids: Collection[str]
) -> dict[str, TrustTier]:
    """With which tier each of some memories may replace others: see ``policy.trust.floors``."""
    wanted = list(dict.fromkeys(memory_ids))
    if trust.uniform:
        return dict.fromkeys(wanted, next(iter(trust.captured_by.values())))
    return floors(wanted, standings(connection, wanted), trust)


def protections(
    connection: sa.Connection, trust: Trust, memory_ids: Collection[str]
) -> dict[str, TrustTier]:
    """The tier against which each of some memories is protected: see ``policy.trust.ceiling``."""
    found = _read(connection, list(dict.fromkeys(memory_ids)), 0)
    return {one: ceiling(each, trust) for one, each in found.items()}


def protections_then(
    connection: sa.Connection, defaults: Trust, memory_ids: Collection[str], at: int
) -> dict[str, tuple[TrustTier, bool]]:
    """The tier that protected each of some memories at a time, and whether it is known.

    It is where all that an operator says of the sources that it had then was said by then, for a
    word takes the place of an earlier one. Elsewhere it is the tier in which these are now.

    Args:
        defaults: the settings' tiers, of which nobody knows what they were.
        at: milliseconds.
    """
    now = with_told(connection, defaults)
    since = {each.named: each.set_at for each in told(connection)}
    found = _read(connection, list(dict.fromkeys(memory_ids)), 0, at)
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


def may_replace(connection: sa.Connection, trust: Trust, new_id: str, old_id: str) -> bool:
    """Whether one memory is trusted far enough to replace another."""
    if trust.uniform:
        return True
    newer = tiers(connection, trust, [new_id])[new_id]
    return newer.level >= protections(connection, trust, [old_id])[old_id].level


def replaceable(
    connection: sa.Connection, trust: Trust, source: Captured, memory_ids: Collection[str]
) -> set[str]:
    """Those of some memories that a new one of this source, without grounds, may replace."""
    if trust.uniform:
        return set(memory_ids)
    newer = trust.tier(source)
    found = protections(connection, trust, memory_ids)
    return {one for one, tier in found.items() if newer.level >= tier.level}


def standings(connection: sa.Connection, memory_ids: Iterable[str]) -> dict[str, Standing]:
    """What memories stand on, and what their grounds do, ``MAX_LOOKED_AT`` of them at most."""
    found: dict[str, Standing] = {}
    layer = list(memory_ids)
    while layer and len(found) < MAX_LOOKED_AT:
        fresh = _read(connection, layer, MAX_LOOKED_AT)
        found |= fresh
        grounds = dict.fromkeys(ground for each in fresh.values() for ground in each.grounds)
        layer = [one for one in grounds if one not in found][: MAX_LOOKED_AT - len(found)]
    return found


def _read(
    connection: sa.Connection,
    memory_ids: Collection[str],
    most_grounds: int,
    at: int | None = None,
) -> dict[str, Standing]:
    """``at``: milliseconds; with the further sources of then, not of now."""
    execute = driver(connection).execute
    ids = json.dumps(list(memory_ids))
    own: dict[str, Captured] = {}
    own_gone: set[str] = set()
    for memory_id, gone, *row in execute(_OWN, (ids, at)):
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


def captured_from_row(row: Sequence[Any]) -> Captured:
    """From ``CAPTURED`` and the session of the memory."""
    source_type, captured_by, *names = row
    return Captured(SourceType(source_type), CapturedBy(captured_by), *names)
