"""Count events per time step: memories stored, superseded, contradicted or returned."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from operator import sub
from typing import Any, Final

import sqlalchemy as sa

from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.receipts import CONSOLE
from memgraph.store import tables
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, is_untrue, ordered, prepared, value
from memgraph.store.visibility import View

NEWEST_RECEIPTS: Final = 10_000
"""The maximum number of receipts counted; the newest in the period."""


EARLIER: Final = -1
"""The number of the step for everything before the first step."""


def _in_steps(at: Column, source: Any, *conditions: Column) -> sa.Select[Any]:
    """Select the number of rows per step; all rows before the first step count as ``EARLIER``."""
    place = (at - value("since")) // value("step")
    rows = sa.select(sa.case((at < value("since"), EARLIER), else_=place).label("place"))
    r = rows.select_from(source).where(at <= value("until"), *conditions).subquery("r")
    return sa.select(r.c.place, sa.func.count()).group_by(r.c.place)


@prepared
def _stored(view: View) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    return _in_steps(m.c.created_at, m, view.where(m))


@prepared
def _periods(view: View, status: MemoryStatus, *, ended: bool = False) -> sa.Select[Any]:
    """Count the periods of a status by their start, or with ``ended`` by their end."""
    h, m = tables.statuses.alias("h"), tables.memories.alias("m")
    joined = ordered(h, (m, m.c.memory_id == h.c.memory_id))
    at = h.c.until if ended else h.c.since
    return _in_steps(at, joined, h.c.status == status, view.where(m))


@prepared
def _contradictions(view: View, *, resolved: bool) -> sa.Select[Any]:
    e = tables.edges.alias("e")
    m, o = tables.memories.alias("m"), tables.memories.alias("o")
    ends = ((m, m.c.memory_id == e.c.from_memory_id), (o, o.c.memory_id == e.c.to_memory_id))
    at = e.c.resolved_at if resolved else e.c.created_at
    terms = (e.c.edge_type == EdgeType.CONTRADICTS, view.where(m), view.where(o))
    return _in_steps(at, ordered(e, *ends), *terms)


@prepared
def _hand_outs(view: View) -> sa.Select[Any]:
    r, i = tables.recalls.alias("r"), tables.recall_items.alias("i")
    m = tables.memories.alias("m")
    newest = sa.select(r.c.recall_id, r.c.same_as, r.c.created_at)
    newest = newest.where(r.c.created_at >= value("since"), r.c.created_at <= value("until"))
    newest = newest.where(r.c.bulletin_id.is_(None), r.c.step_id.is_distinct_from(CONSOLE))
    n = newest.order_by(r.c.created_at.desc()).limit(NEWEST_RECEIPTS).subquery("n")
    holder = sa.func.coalesce(n.c.same_as, n.c.recall_id)
    joined = ordered(i, (m, m.c.memory_id == i.c.memory_id))
    items = sa.select(sa.literal(1)).select_from(joined).where(i.c.recall_id == holder)
    hidden = sa.exists(items.where(is_untrue(view.where(m))).correlate(n))
    return _in_steps(n.c.created_at, n, sa.exists(items.correlate(n)), sa.not_(hidden))


def first_at(snapshot: Snapshot, view: View) -> int | None:
    """Return when the first visible memory was stored, in milliseconds; None without memories."""
    first: int | None = _first_at(view.shape).scalar(snapshot, view.params)
    return first


@prepared
def _first_at(view: View) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    return sa.select(m.c.created_at).where(view.where(m)).order_by(m.c.pk).limit(1)


def counts(
    snapshot: Snapshot, view: View, *, since: int, until: int, steps: int, hand_outs: bool
) -> dict[str, list[int]]:
    """Return the counts per step, and the levels at the end of each step, by name.

    The levels are ``total`` (memories stored so far), ``held`` (active memories) and ``open``
    (unresolved contradictions).

    Args:
        view: the viewer's view, with all statuses.
        since, until: the period, in milliseconds.
        steps: the number of equal steps.
        hand_outs: also count receipts, except for those with hidden memories, those of bulletins,
            and those of recalls by the console.
    """
    step = max((until - since) // steps + 1, 1)
    shape = view.shape
    statements = {
        "stored": _stored(shape),
        "superseded": _periods(shape, MemoryStatus.SUPERSEDED),
        "retracted": _periods(shape, MemoryStatus.RETRACTED),
        "contradicted": _contradictions(shape, resolved=False),
        "resolved": _contradictions(shape, resolved=True),
        "began": _periods(shape, MemoryStatus.ACTIVE),
        "ended": _periods(shape, MemoryStatus.ACTIVE, ended=True),
    }
    if hand_outs:
        statements["handed_out"] = _hand_outs(shape)
    series, before = {}, Counter[str]()
    for name, statement in statements.items():
        series[name] = [0] * steps
        rows = statement.rows(snapshot, view.params, since=since, until=until, step=step)
        for place, count in rows:
            if place == EARLIER:
                before[name] = count
            else:
                series[name][min(int(place), steps - 1)] += count

    def so_far(name: str) -> list[int]:
        return list(accumulate(series[name], initial=before[name]))[1:]

    def difference(name: str, other: str) -> list[int]:
        return list(map(sub, so_far(name), so_far(other)))

    levels = {
        "total": so_far("stored"),
        "held": difference("began", "ended"),
        "open": difference("contradicted", "resolved"),
    }
    # These two only serve to compute ``held``: a restored memory is counted in them repeatedly.
    del series["began"], series["ended"]
    return series | levels
