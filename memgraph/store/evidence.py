"""Walking from memories to their grounds and back, and along the newest endings.

Every walk is bounded: in its steps, in the rows of a step, in the endings that are looked at. What
the view does not show is passed by: neither a ground, nor a step on the way, nor a successor.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeAlias

import sqlalchemy as sa

from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.rules.evidence import (
    BASIS_EDGES,
    MAX_HOPS,
    Dependency,
    RefutedEvidence,
    broken_paths,
    leading_to,
)
from memgraph.rules.lifecycle import EndOfLife, lost_to, refuted
from memgraph.store import graph, receipts, tables
from memgraph.store.graph import Direction
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, listed, member, ordered, prepared, value
from memgraph.store.visibility import AS_OF, Table, View

# How memories came to their end, as ``memgraph.rules.lifecycle`` wants to know it.


def endings(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> dict[str, EndOfLife]:
    """Return the ending of each of some visible memories, as it is or was at the view's time.

    The statuses that the view shows do not matter: what is gone has an ending too.
    """
    anyone = View(view.viewer, view.as_of)
    rows = _endings(anyone.shape).rows(snapshot, anyone.params, ids=_listed(memory_ids))
    return {
        str(one): EndOfLife(MemoryStatus(status), reason, bool(lost))
        for one, status, reason, lost in rows
    }


@prepared
def _endings(view: View) -> sa.Select[Any]:
    f, m = listed("ids", "f"), tables.memories.alias("m")
    ended = (
        sa.select(m.c.memory_id, view.status(m).label("status"))
        .select_from(ordered(f, (m, m.c.memory_id == f.c.value)))
        .where(view.where(m))
        .subquery("ended")
    )
    h, e = tables.statuses.alias("h"), tables.edges.alias("e")
    reason = (
        sa.select(h.c.reason)
        .where(h.c.memory_id == ended.c.memory_id, _is_then(h, view))
        .order_by(*_last_first(h))
        .limit(1)
        .correlate(ended)
        .scalar_subquery()
    )
    lost = (
        sa.select(sa.literal(1))
        .where(e.c[end] == ended.c.memory_id, e.c.edge_type == EdgeType.CONTRADICTS)
        .where(member(view.resolution(e), "loser_id") == ended.c.memory_id)
        .correlate(ended)
        for end in ("from_memory_id", "to_memory_id")
    )
    # Only of those that came to an end: most have not.
    gone = ended.c.status != MemoryStatus.ACTIVE
    return sa.select(
        ended.c.memory_id,
        ended.c.status,
        sa.case((gone, reason)),
        sa.case((gone, sa.union_all(*lost).exists()), else_=sa.false()),
    )


@prepared
def _last_periods() -> sa.Select[Any]:
    h = tables.statuses.alias("h")
    last = sa.select(h.c.status, h.c.reason).where(h.c.memory_id == value("id"))
    return last.order_by(*_last_first(h)).limit(2)


def last_retractions(snapshot: Snapshot, memory_id: str) -> tuple[str | None, ...]:
    """Return the reasons of the last two periods of a retracted memory, as far as both are such."""
    rows = _last_periods().rows(snapshot, id=memory_id)
    told = takewhile(lambda row: row[0] == MemoryStatus.RETRACTED, rows)
    return tuple(reason for _, reason in told)


def _last_first(h: Table) -> tuple[Column, Column]:
    return h.c.since.desc(), h.c.status_id.desc()


def _is_then(h: Table, view: View) -> Column:
    """Return whether a period of ``memory_status`` is the one that the view is in."""
    if view.as_of is None:
        return h.c.until.is_(None)
    return (h.c.since <= AS_OF) & (h.c.until.is_(None) | (h.c.until > AS_OF))


def _listed(ids: Iterable[str]) -> str:
    return json.dumps(list(ids))


MAX_ROWS: Final = 2_000
"""Of one step from all memories of a walk together."""

_KINDS: Final = {one.value: one for one in BASIS_EDGES}
# In the order of the condition of the index ix_memory_edges_grounds, which has to be the same.
_TYPES: Final = tuple(sorted(BASIS_EDGES))


def _refutes(h: Table) -> Column:
    """Return the condition of the index ix_memory_status_ended, which has to be the same."""
    kept = ("cleared", "decayed", "evicted", "task_closed")
    reason = sa.func.coalesce(h.c.reason, "")
    return (h.c.status != MemoryStatus.ACTIVE) & reason.not_in(kept)


class EndedMemory(NamedTuple):
    """A memory with something on it came to its end. ``since``: when, milliseconds."""

    since: int
    memory_id: str


_Row: TypeAlias = tuple[str, str, str | None, str]
"""Dependent, ground, type of the edge (None: a derivation), id of the edge."""


class EvidenceWalk(NamedTuple):
    """The paths of a walk from memories to their grounds. ``cut``: a step had more rows than are
    read.
    """

    bases: tuple[Dependency, ...]
    cut: bool


def walked(
    snapshot: Snapshot,
    memory_ids: Iterable[str],
    view: View,
    direction: Direction,
    *,
    max_hops: int = MAX_HOPS,
    max_rows: int = MAX_ROWS,
) -> EvidenceWalk:
    """Return all that the memories stand on (OUT), or all that stands on them (IN), step by step.

    Args:
        view: who looks, and when; of any status.
    """
    anyone = View(view.viewer, view.as_of)
    rows, cut = _walked(snapshot, memory_ids, anyone, direction, max_hops, max_rows, anyone)
    return EvidenceWalk(tuple(map(_basis, rows)), cut)


def _walked(
    snapshot: Snapshot,
    memory_ids: Iterable[str],
    view: View,
    direction: Direction,
    max_hops: int,
    max_rows: int,
    shown: View | None,
) -> tuple[list[_Row], bool]:
    """Return the rows of a walk, and whether it was cut.

    Args:
        shown: None: whatever is met, seen or not.
    """
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


def _basis(row: _Row) -> Dependency:
    dependent, ground, edge_type, edge_id = row
    return Dependency(dependent, ground, _KINDS.get(edge_type or ""), edge_id)


def _step(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    view: View,
    direction: Direction,
    max_rows: int,
    shown: View | None,
) -> list[_Row]:
    """Return at most one row more than ``max_rows``; only of more does the order matter."""
    values = view.params | {"ids": _listed(memory_ids), "limit": max_rows + 1}
    shape = None if shown is None else shown.shape
    rows = _steps(direction, view.shape, shape, False).rows(snapshot, values)
    if len(rows) > max_rows:
        rows = _steps(direction, view.shape, shape, True).rows(snapshot, values)
    return rows


@prepared
def _steps(direction: Direction, view: View, shown: View | None, in_order: bool) -> sa.Select[Any]:
    f, m = listed("ids", "f"), tables.memories.alias("m")
    e, d = tables.edges.alias("e"), tables.derivations.alias("d")
    ends = {"from_memory_id": d.c.memory_id, "to_memory_id": d.c.derived_from_id}
    near, far = direction.value
    of_edge = (e.c[near] == f.c.value) & e.c.edge_type.in_(_TYPES) & view.edge_where(e)
    derived = sa.and_(ends[near] == f.c.value, view.derived_where(d))
    grounds = sa.select(
        e.c.from_memory_id.label("dependent"),
        e.c.to_memory_id.label("ground"),
        e.c.edge_type.label("type"),
        e.c.edge_id.label("edge"),
    ).with_hint(e, f"INDEXED BY {_INDEXES[direction]}", "sqlite")
    origins = sa.select(*ends.values(), sa.null(), sa.literal(""))
    legs = []
    for leg, row, condition, end in (
        (grounds, e, of_edge, e.c[far]),
        (origins, d, derived, ends[far]),
    ):
        joined = [(row, condition)]
        if shown is not None:
            joined.append((m, m.c.memory_id == end))
            leg = leg.where(shown.where(m))
        legs.append(leg.select_from(ordered(f, *joined)))
    both = sa.union_all(*legs).subquery()
    found = sa.select(both).limit(value("limit"))
    return found.order_by(*both.c) if in_order else found


_INDEXES: Final = {
    Direction.OUT: "ix_memory_edges_grounds",
    Direction.IN: "ix_memory_edges_to_memory_id",
}


def broken(
    snapshot: Snapshot, memory_ids: Iterable[str], view: View
) -> dict[str, tuple[Dependency, ...]]:
    """Return those of the memories that stand on a refuted ground, with the way down to it."""
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


@prepared
def _ended(view: View) -> sa.Select[Any]:
    f, h = listed("ids", "f"), tables.statuses.alias("h")
    period = (h.c.memory_id == f.c.value, h.c.status != MemoryStatus.ACTIVE, _is_then(h, view))
    return sa.select(f.c.value).where(sa.exists().where(*period).correlate(f))


def _ended_among(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> frozenset[str]:
    """Return those of some memories, seen or not, that are not active."""
    ids = _listed(sorted(memory_ids))
    return frozenset(_ended(view.shape).column(snapshot, ids=ids, view_as_of=view.as_of))


def refuted_among(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> dict[str, RefutedEvidence]:
    """Return the visible memories that hold no more: since when, and what took their place."""
    if not memory_ids:
        return {}
    ids = sorted(memory_ids)
    ended = endings(snapshot, ids, view)
    gone = [one for one in ids if refuted(ended.get(one, EndOfLife(MemoryStatus.ACTIVE)))]
    if not gone:
        return {}
    anyone = View(view.viewer, view.as_of)
    successors: dict[str, set[str]] = {}
    for old, new in graph.replacements(snapshot, gone, anyone, MAX_ROWS):
        successors.setdefault(old, set()).add(new)
    since = _since(snapshot, gone, view)
    return {one: RefutedEvidence(since[one], frozenset(successors.get(one, ()))) for one in gone}


@prepared
def _beginnings(view: View) -> sa.Select[Any]:
    f, h = listed("ids", "f"), tables.statuses.alias("h")
    since = (
        sa.select(h.c.since)
        .where(h.c.memory_id == f.c.value, _is_then(h, view))
        .order_by(*_last_first(h))
        .limit(1)
        .correlate(f)
    )
    return sa.select(f.c.value, since.scalar_subquery())


def _since(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> dict[str, int]:
    values = {"ids": _listed(memory_ids), "view_as_of": view.as_of}
    return {str(one): int(at) for one, at in _beginnings(view.shape).rows(snapshot, values)}


@prepared
def _newest_endings(view: View, is_next: bool) -> sa.Select[Any]:
    h, m = tables.statuses.alias("h"), tables.memories.alias("m")
    d, e = tables.derivations.alias("d"), tables.edges.alias("e")
    looked = (
        sa.select(h.c.since, h.c.memory_id)
        .with_hint(h, "INDEXED BY ix_memory_status_ended", "sqlite")
        .where(_refutes(h), _is_then(h, view))
        .order_by(h.c.since.desc(), h.c.memory_id.desc())
        .limit(value("looks"))
    )
    if is_next:
        # A row value keeps to the index, and the first term lets the walk begin at its place.
        here, last = sa.tuple_(h.c.since, h.c.memory_id), sa.tuple_(value("since"), value("id"))
        looked = looked.where(h.c.since <= value("since"), here < last)
    found = looked.subquery("found")
    derived = sa.exists().where(d.c.derived_from_id == m.c.memory_id).correlate(m)
    caused = sa.exists().where(e.c.to_memory_id == m.c.memory_id, e.c.edge_type.in_(_TYPES))
    used = view.where(m) & (derived | caused.correlate(m))
    return (
        sa.select(found.c.since, found.c.memory_id, used)
        .select_from(ordered(found, (m, m.c.memory_id == found.c.memory_id)))
        .order_by(found.c.since.desc(), found.c.memory_id.desc())
    )


def newest_endings(
    snapshot: Snapshot, view: View, *, after: EndedMemory | None, looks: int
) -> tuple[list[EndedMemory], EndedMemory | None]:
    """Return those of the next ``looks`` endings, newest first, that something stands on.

    One that was housekeeping is no such ending, nor is one that the view does not show.

    Args:
        after: where the walk before ended; None: from the newest.

    Returns:
        The endings, and the place after which to go on; None: there is no further one.
    """
    anyone = View(view.viewer, view.as_of)
    since, memory_id = after or (None, None)
    values = anyone.params | {"since": since, "id": memory_id, "looks": looks}
    rows = _newest_endings(anyone.shape, after is not None).rows(snapshot, values)
    met = [EndedMemory(int(at), str(one)) for at, one, wanted in rows if wanted]
    last = EndedMemory(int(rows[-1][0]), str(rows[-1][1])) if len(rows) == looks else None
    return met, last


def active_among(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> list[str]:
    """Return those of some memories that are visible and active, sorted."""
    active = View(view.viewer, view.as_of, frozenset({MemoryStatus.ACTIVE}))
    return sorted(_among(snapshot, memory_ids, active))


def _among(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> frozenset[str]:
    """Return those of some memories that the view shows."""
    return frozenset(receipts.visible_ids(snapshot, view, sorted(memory_ids)))


class EndReason(NamedTuple):
    """By whom, why and when (milliseconds) a memory came to its end.

    ``lost``: a contradiction, and with it that.
    """

    actor: str
    reason: str | None
    at: int
    lost: bool


def told_endings(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> dict[str, EndReason]:
    """Return how some visible memories came to their end; what has not is left out.

    Of what was taken back and is back as what it was, this is told of what had ended it.
    """
    ended = endings(snapshot, memory_ids, view)
    values = {"ids": _listed(memory_ids), "view_as_of": view.as_of}
    rows = _periods(view.shape).rows(snapshot, values)
    told = {
        one: EndReason(actor, reason, since, ended[one].lost)
        for one, _, actor, reason, since in rows
    }
    superseded = [one for one in told if ended[one].status is MemoryStatus.SUPERSEDED]
    told |= _replacements(snapshot, [one for one in superseded if not told[one].lost], view)
    return told | _decisions(snapshot, [one for one in superseded if told[one].lost], view)


@prepared
def _periods(view: View, *, all_before: bool = False) -> sa.Select[Any]:
    """Return the periods that a view is in, or those that began by then, in their order."""
    f, h = listed("ids", "f"), tables.statuses.alias("h")
    then = _is_then(h, view)
    if all_before:
        then = sa.true() if view.as_of is None else h.c.since <= AS_OF
    found = sa.select(h.c.memory_id, h.c.status, h.c.actor, h.c.reason, h.c.since).select_from(
        ordered(f, (h, sa.and_(h.c.memory_id == f.c.value, then)))
    )
    order = (h.c.since, h.c.status_id)
    return found.order_by(*((h.c.memory_id, *order) if all_before else order))


def _replacements(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> dict[str, EndReason]:
    """Return of superseded memories how they came to that when they were active last.

    Those that were retracted before are left out.
    """
    values = {"ids": _listed(memory_ids), "view_as_of": view.as_of}
    rows = _periods(view.shape, all_before=True).rows(snapshot, values)
    first: dict[str, tuple[str, EndReason]] = {}
    for one, status, actor, reason, since in rows:
        if status == MemoryStatus.ACTIVE:
            first.pop(one, None)
        else:
            first.setdefault(one, (status, EndReason(actor, reason, since, lost=False)))
    return {one: each for one, (how, each) in first.items() if how == MemoryStatus.SUPERSEDED}


@prepared
def _last_decisions(view: View) -> sa.Select[Any]:
    f, e = listed("ids", "f"), tables.edges.alias("e")
    resolution, legs = view.resolution(e), []
    for end in ("from_memory_id", "to_memory_id"):
        its = (e.c[end] == f.c.value) & (e.c.edge_type == EdgeType.CONTRADICTS)
        lost = member(resolution, "loser_id") == f.c.value
        decided = (resolution.label("told"), view.resolved_at(e).label("at"))
        leg = sa.select(f.c.value.label("lost"), *decided)
        legs.append(leg.select_from(ordered(f, (e, its & lost))))
    both = sa.union_all(*legs).subquery()
    told = (member(both.c.told, name) for name in ("actor", "winner_id", "reason"))
    return sa.select(both.c.lost, *told, both.c.at).order_by(both.c.at)


def _decisions(snapshot: Snapshot, memory_ids: Collection[str], view: View) -> dict[str, EndReason]:
    """Return of memories that lost a contradiction the last decision against each."""
    rows = _last_decisions(view.shape).rows(snapshot, view.params, ids=_listed(memory_ids))
    return {
        one: EndReason(actor, lost_to(winner, reason), at, lost=True)
        for one, actor, winner, reason, at in rows
        if actor is not None and reason is not None
    }
