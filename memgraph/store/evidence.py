"""Walking from memories to their grounds and back, and along the newest endings.

Every walk is bounded: in its steps, in the rows of a step, in the endings that are looked at. What
the view does not show is passed by: neither a ground, nor a step on the way, nor a successor.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from itertools import takewhile
from typing import Final, NamedTuple, TypeAlias

from memgraph.model.enums import MemoryStatus
from memgraph.rules.evidence import BASIS_EDGES, MAX_HOPS, Basis, Refuted, broken_paths, leading_to
from memgraph.rules.lifecycle import Ending, lost_to, refuted
from memgraph.store import graph
from memgraph.store.graph import Direction
from memgraph.store.recall import plain_rows
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

# How memories came to their end, as ``memgraph.rules.lifecycle`` wants to know it.


def endings(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> dict[str, Ending]:
    """The ending of each of some visible memories, as it is or as it was at the view's time.

    The statuses that the view shows do not matter: what is gone has an ending too.
    """
    anyone = View(view.viewer, view.as_of)
    status = anyone.text.status("m")
    # Only of those that came to an end: most have not.
    found = plain_rows(
        snapshot,
        "SELECT memory_id, status,"
        f" CASE WHEN status <> 'active' THEN {_reason(anyone)} END,"
        f" CASE WHEN status <> 'active' THEN {_lost(anyone)} ELSE 0 END"
        f" FROM (SELECT m.memory_id, {status} AS status FROM json_each(:ids) f"
        f" CROSS JOIN memories m ON m.memory_id = f.value WHERE {anyone.text.where('m')}) ended",
        anyone.params | {"ids": json.dumps(list(memory_ids))},
    )
    return {
        str(one): Ending(MemoryStatus(status), reason, bool(lost))
        for one, status, reason, lost in found
    }


def last_retractions(snapshot: Snapshot, memory_id: str) -> tuple[str | None, ...]:
    """The reasons of the last two periods of a retracted memory, as far as both are such."""
    found = plain_rows(
        snapshot,
        "SELECT status, reason FROM memory_status WHERE memory_id = :id"
        " ORDER BY since DESC, status_id DESC LIMIT 2",
        {"id": memory_id},
    )
    told = takewhile(lambda row: row[0] == MemoryStatus.RETRACTED, found)
    return tuple(reason for _, reason in told)


def _reason(view: View) -> str:
    then = "h.until IS NULL"
    if view.as_of is not None:
        then = "h.since <= :view_as_of AND (h.until IS NULL OR h.until > :view_as_of)"
    return (
        "(SELECT h.reason FROM memory_status h WHERE h.memory_id = ended.memory_id"
        f" AND {then} ORDER BY h.since DESC, h.status_id DESC LIMIT 1)"
    )


def _lost(view: View) -> str:
    ends = " UNION ALL ".join(
        f"SELECT 1 FROM memory_edges e WHERE e.{end} = ended.memory_id"
        " AND e.edge_type = 'Contradicts'"
        f" AND json_extract({view.text.resolution('e')}, '$.loser_id') = ended.memory_id"
        for end in ("from_memory_id", "to_memory_id")
    )
    return f"EXISTS ({ends})"


MAX_ROWS: Final = 2_000
"""Of one step from all memories of a walk together."""

_KINDS: Final = {one.value: one for one in BASIS_EDGES}
# Word for word the condition of the index ix_memory_edges_grounds.
_TYPES: Final = ", ".join(f"'{one.value}'" for one in sorted(BASIS_EDGES))
# Word for word the condition of the index ix_memory_status_ended.
_REFUTING: Final = (
    "h.status <> 'active'"
    " AND coalesce(h.reason, '') NOT IN ('cleared', 'decayed', 'evicted', 'task_closed')"
)


class Ended(NamedTuple):
    """A memory with something on it came to its end. ``since``: when, milliseconds."""

    since: int
    memory_id: str


_Row: TypeAlias = tuple[str, str, str | None, str]
"""Dependent, ground, type of the edge (None: a derivation), id of the edge."""


class Walk(NamedTuple):
    """Who stands on what, as far as a walk went; ``cut``: a step had more rows than are read."""

    bases: tuple[Basis, ...]
    cut: bool


def walked(
    snapshot: Snapshot,
    memory_ids: Iterable[str],
    view: View,
    direction: Direction,
    *,
    max_hops: int = MAX_HOPS,
    max_rows: int = MAX_ROWS,
) -> Walk:
    """All that the memories stand on (OUT), or all that stands on them (IN), step by step.

    Args:
        view: who looks, and when; of any status.
    """
    anyone = View(view.viewer, view.as_of)
    rows, cut = _walked(snapshot, memory_ids, anyone, direction, max_hops, max_rows, anyone)
    return Walk(tuple(map(_basis, rows)), cut)


def _walked(
    snapshot: Snapshot,
    memory_ids: Iterable[str],
    view: View,
    direction: Direction,
    max_hops: int,
    max_rows: int,
    shown: View | None,
) -> tuple[list[_Row], bool]:
    """The rows of a walk, and whether it was cut; ``shown`` None: whatever is met, seen or not."""
    walk: list[_Row] = []
    frontier = list(memory_ids)
    passed = set(frontier)
    cut = False
    out = direction is Direction.OUT
    for _ in range(max_hops):
        if not frontier:
            break
        rows = _step(snapshot, frontier, view, direction, max_rows, shown)
        if len(rows) > max_rows:
            cut, rows = True, rows[:max_rows]
        walk += rows
        # As they are met: a set alone would have no order.
        fresh = dict.fromkeys(row[1] if out else row[0] for row in rows)
        frontier = [one for one in fresh if one not in passed]
        passed.update(frontier)
    return walk, cut


def _basis(row: _Row) -> Basis:
    dependent, ground, edge_type, edge_id = row
    return Basis(dependent, ground, _KINDS.get(edge_type or ""), edge_id)


def _step(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    view: View,
    direction: Direction,
    max_rows: int,
    shown: View | None,
) -> list[_Row]:
    """At most one row more than ``max_rows``; only where there are more does their order matter."""
    near, far = direction.value
    derived = {"from_memory_id": "d.memory_id", "to_memory_id": "d.derived_from_id"}
    index = {
        Direction.OUT: "ix_memory_edges_grounds",
        Direction.IN: "ix_memory_edges_to_memory_id",
    }
    legs = (
        "SELECT e.from_memory_id AS dependent, e.to_memory_id AS ground, e.edge_type AS type,"
        " e.edge_id AS edge FROM json_each(:ids) f"
        f" CROSS JOIN memory_edges e INDEXED BY {index[direction]}"
        f" ON e.{near} = f.value AND e.edge_type IN ({_TYPES})"
        f" AND {view.text.edge_where('e')}{_met(shown, f'e.{far}')}",
        "SELECT d.memory_id, d.derived_from_id, NULL, '' FROM json_each(:ids) f"
        f" CROSS JOIN memory_derivations d ON {derived[near]} = f.value"
        f" AND {view.text.derived_where('d')}{_met(shown, derived[far])}",
    )
    both = f"SELECT * FROM ({' UNION ALL '.join(legs)})"
    values = view.params | {"ids": json.dumps(list(memory_ids)), "limit": max_rows + 1}
    rows = plain_rows(snapshot, f"{both} LIMIT :limit", values)
    if len(rows) > max_rows:
        ordered = f"{both} ORDER BY dependent, ground, type, edge LIMIT :limit"
        rows = plain_rows(snapshot, ordered, values)
    return rows


def _met(shown: View | None, end: str) -> str:
    if shown is None:
        return ""
    return f" CROSS JOIN memories m ON m.memory_id = {end} WHERE {shown.text.where('m')}"


def broken(
    snapshot: Snapshot, memory_ids: Iterable[str], view: View
) -> dict[str, tuple[Basis, ...]]:
    """Those of the memories that stand on a refuted ground, each with the way down to it."""
    wanted = sorted(set(memory_ids))
    anyone = View(view.viewer, view.as_of)
    # Most grounds hold. So the way goes along indexes alone, and who may see what is asked where
    # one does not; unless there is so much that what is hidden would take the room of the rest.
    rows, cut = _walked(snapshot, wanted, anyone, Direction.OUT, MAX_HOPS, MAX_ROWS, None)
    if cut:
        rows, _ = _walked(snapshot, wanted, anyone, Direction.OUT, MAX_HOPS, MAX_ROWS, anyone)
    ended = _ended_among(snapshot, {row[1] for row in rows}, view)
    if not ended:
        return {}
    leading = leading_to(rows, ended)
    seen = _among(snapshot, {end for row in leading for end in row[:2]}, anyone)
    bases = [_basis(row) for row in leading if row[0] in seen and row[1] in seen]
    gone = refuted_among(snapshot, ended & seen, view)
    paths = broken_paths(bases, gone)
    return {one: paths[one] for one in wanted if one in paths}


def _ended_among(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> frozenset[str]:
    """Those of some memories, seen or not, that are not active."""
    found = plain_rows(
        snapshot,
        "SELECT f.value FROM json_each(:ids) f WHERE EXISTS (SELECT 1 FROM memory_status h"
        f" WHERE h.memory_id = f.value AND h.status <> 'active' AND {_period(view)})",
        {"ids": json.dumps(sorted(memory_ids)), "view_as_of": view.as_of},
    )
    return frozenset(one for (one,) in found)


def refuted_among(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> dict[str, Refuted]:
    """Those of some visible memories that no longer hold: since when, and what took their place."""
    if not memory_ids:
        return {}
    ids = sorted(memory_ids)
    ended = endings(snapshot, ids, view)
    gone = [one for one in ids if refuted(ended.get(one, Ending(MemoryStatus.ACTIVE)))]
    if not gone:
        return {}
    anyone = View(view.viewer, view.as_of)
    successors: dict[str, set[str]] = {}
    for old, new in graph.replacements(snapshot, gone, anyone, MAX_ROWS):
        successors.setdefault(old, set()).add(new)
    since = _since(snapshot, gone, view)
    return {one: Refuted(since[one], frozenset(successors.get(one, ()))) for one in gone}


def _since(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> dict[str, int]:
    found = plain_rows(
        snapshot,
        "SELECT f.value, (SELECT h.since FROM memory_status h WHERE h.memory_id = f.value"
        f" AND {_period(view)} ORDER BY h.since DESC, h.status_id DESC LIMIT 1)"
        " FROM json_each(:ids) f",
        {"ids": json.dumps(list(memory_ids)), "view_as_of": view.as_of},
    )
    return {str(one): int(since) for one, since in found}


def _period(view: View) -> str:
    """The condition on a row of ``memory_status``: the period that the view is in."""
    if view.as_of is None:
        return "h.until IS NULL"
    return "h.since <= :view_as_of AND (h.until IS NULL OR h.until > :view_as_of)"


def newest_endings(
    snapshot: Snapshot, view: View, *, after: Ended | None, looks: int
) -> tuple[list[Ended], Ended | None]:
    """Of the next ``looks`` endings, the newest first, those that something stands on.

    One that was housekeeping is no such ending, nor is one that the view does not show.

    Args:
        after: where the walk before ended; None: from the newest.

    Returns:
        The endings, and the place after which to go on; None: there is no further one.
    """
    anyone = View(view.viewer, view.as_of)
    # A row value keeps to the index, and the first term lets the walk begin at its place.
    place = (
        "" if after is None else " AND h.since <= :since AND (h.since, h.memory_id) < (:since, :id)"
    )
    looked = (
        "SELECT h.since AS since, h.memory_id AS memory_id"
        " FROM memory_status h INDEXED BY ix_memory_status_ended"
        f" WHERE {_REFUTING} AND {_period(view)}{place}"
        " ORDER BY h.since DESC, h.memory_id DESC LIMIT :looks"
    )
    used = (
        "EXISTS (SELECT 1 FROM memory_derivations d WHERE d.derived_from_id = m.memory_id)"
        " OR EXISTS (SELECT 1 FROM memory_edges e WHERE e.to_memory_id = m.memory_id"
        f" AND e.edge_type IN ({_TYPES}))"
    )
    statement = (
        f"SELECT l.since, l.memory_id, {anyone.text.where('m')} AND ({used}) FROM ({looked}) l"
        " CROSS JOIN memories m ON m.memory_id = l.memory_id"
        " ORDER BY l.since DESC, l.memory_id DESC"
    )
    since, memory_id = after or (None, None)
    values = view.params | {"since": since, "id": memory_id, "looks": looks}
    rows = plain_rows(snapshot, statement, values)
    met = [Ended(int(at), str(one)) for at, one, wanted in rows if wanted]
    last = Ended(int(rows[-1][0]), str(rows[-1][1])) if len(rows) == looks else None
    return met, last


def active_among(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> list[str]:
    """Those of some memories that are visible and active, sorted."""
    active = View(view.viewer, view.as_of, frozenset({MemoryStatus.ACTIVE}))
    return sorted(_among(snapshot, memory_ids, active))


def _among(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> frozenset[str]:
    """Those of some memories that the view shows."""
    found = plain_rows(
        snapshot,
        "SELECT m.memory_id FROM json_each(:ids) f CROSS JOIN memories m"
        f" ON m.memory_id = f.value WHERE {view.text.where('m')}",
        view.params | {"ids": json.dumps(sorted(memory_ids))},
    )
    return frozenset(one for (one,) in found)


class ToldEnding(NamedTuple):
    """By whom, why and when (milliseconds) a memory came to its end.

    ``lost``: a contradiction, and with it that.
    """

    actor: str
    reason: str | None
    at: int
    lost: bool


def told_endings(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> dict[str, ToldEnding]:
    """Of some visible memories that came to an end.

    Of what was taken back and is back as what it was, this is told of what had ended it.
    """
    ended = endings(snapshot, memory_ids, view)
    found = plain_rows(
        snapshot,
        "SELECT h.memory_id, h.actor, h.reason, h.since FROM json_each(:ids) f"
        f" CROSS JOIN memory_status h ON h.memory_id = f.value AND {_period(view)}"
        " ORDER BY h.since, h.status_id",
        {"ids": json.dumps(list(memory_ids)), "view_as_of": view.as_of},
    )
    told = {
        one: ToldEnding(actor, reason, since, ended[one].lost)
        for one, actor, reason, since in found
    }
    superseded = [one for one in told if ended[one].status is MemoryStatus.SUPERSEDED]
    told |= _replacements(snapshot, [one for one in superseded if not told[one].lost], view)
    return told | _decisions(snapshot, [one for one in superseded if told[one].lost], view)


def _replacements(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> dict[str, ToldEnding]:
    """Of superseded memories, how they came to that when they were active last.

    Those that were retracted before are left out.
    """
    then = "1" if view.as_of is None else "h.since <= :view_as_of"
    found = plain_rows(
        snapshot,
        "SELECT h.memory_id, h.status, h.actor, h.reason, h.since FROM json_each(:ids) f"
        f" CROSS JOIN memory_status h ON h.memory_id = f.value AND {then}"
        " ORDER BY h.memory_id, h.since, h.status_id",
        {"ids": json.dumps(list(memory_ids)), "view_as_of": view.as_of},
    )
    first: dict[str, tuple[str, ToldEnding]] = {}
    for one, status, actor, reason, since in found:
        if status == MemoryStatus.ACTIVE:
            first.pop(one, None)
        else:
            first.setdefault(one, (status, ToldEnding(actor, reason, since, lost=False)))
    return {one: each for one, (how, each) in first.items() if how == MemoryStatus.SUPERSEDED}


def _decisions(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> dict[str, ToldEnding]:
    """Of memories that lost a contradiction, the last decision against each."""
    resolution = view.text.resolution("e")
    ends = " UNION ALL ".join(
        f"SELECT f.value AS lost, {resolution} AS told, {view.text.resolved_at('e')} AS at"
        f" FROM json_each(:ids) f CROSS JOIN memory_edges e ON e.{end} = f.value"
        " AND e.edge_type = 'Contradicts'"
        f" AND json_extract({resolution}, '$.loser_id') = f.value"
        for end in ("from_memory_id", "to_memory_id")
    )
    found = plain_rows(
        snapshot,
        "SELECT lost, told ->> '$.actor', told ->> '$.winner_id', told ->> '$.reason', at"
        f" FROM ({ends}) ORDER BY at",
        view.params | {"ids": json.dumps(list(memory_ids))},
    )
    return {
        one: ToldEnding(actor, lost_to(winner, reason), at, lost=True)
        for one, actor, winner, reason, at in found
        if actor is not None and reason is not None
    }
