"""Read changes between two times.

An interval excludes its start and includes its end.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlmodel import col, select

from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus
from memgraph.model.tables import AuditRow
from memgraph.store import tables
from memgraph.store.rows import fetch
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import (
    Column,
    among,
    element,
    listed,
    member,
    ordered,
    value,
)
from memgraph.store.visibility import Table, View, edge_ends

EXCERPT_CHARS: Final = 200
DECISIONS: Final = ("resolve", "dismiss", "reopen")


class Interval(NamedTuple):
    """The time after ``since``, up to and including ``until``, in milliseconds."""

    since: int
    until: int


class StatusStart(NamedTuple):
    """The start of a status period. ``first``: 1 for the first status of a memory."""

    memory_id: str
    kind: str
    type: str
    text: str
    status: str
    at: int
    actor: str
    reason: str | None
    first: int


class ContradictingPair(NamedTuple):
    """A visible contradiction, with the first characters of both texts."""

    edge_id: str
    first_id: str
    second_id: str
    first_text: str
    second_text: str
    created_at: int


def _within(time: Column) -> Column:
    return (time > value("since")) & (time <= value("until"))


def _text(m: Table) -> Column:
    full_text = sa.case((m.c.summary == "", m.c.content), else_=m.c.summary)
    return sa.func.substr(full_text, 1, EXCERPT_CHARS)


def statuses_begun(snapshot: Snapshot, view: View, during: Interval) -> list[StatusStart]:
    """Return the statuses that began during an interval, except those of turns, newest first."""
    h, m, b = tables.statuses.alias("h"), tables.memories.alias("m"), tables.statuses.alias("b")
    earlier = sa.tuple_(b.c.since, b.c.status_id) < sa.tuple_(h.c.since, h.c.status_id)
    # A memory is stored with its first status.
    is_first = ~sa.exists().where(b.c.memory_id == h.c.memory_id, earlier).correlate(h)
    period = (h.c.status, h.c.since, h.c.actor, h.c.reason, is_first)
    query = (
        sa.select(m.c.memory_id, m.c.kind, m.c.type, _text(m), *period)
        .select_from(ordered(h, (m, m.c.memory_id == h.c.memory_id)))
        .where(_within(h.c.since), m.c.kind != MemoryKind.EPISODE, view.where(m))
        .order_by(h.c.since.desc(), h.c.status_id.desc())
    )
    return snapshot.mapped(StatusStart._make, query, view.params | during._asdict())


def turns_stored(snapshot: Snapshot, view: View, during: Interval) -> int:
    """Return the number of turns stored during an interval."""
    h, m = tables.statuses.alias("h"), tables.memories.alias("m")
    query = (
        sa.select(sa.func.count())
        .select_from(ordered(h, (m, m.c.memory_id == h.c.memory_id)))
        .where(_within(h.c.since), h.c.since == m.c.created_at)
        .where(h.c.status == MemoryStatus.ACTIVE, m.c.kind == MemoryKind.EPISODE, view.where(m))
    )
    return int(snapshot.scalar(query, view.params | during._asdict()))


def _pairs(view: View) -> tuple[sa.Select[Any], Table]:
    """Return a query for the ``ContradictingPair`` of visible contradictions, and its edges."""
    e = tables.edges.alias("e")
    a, b, joined = edge_ends(e)
    sides = (a.c.memory_id, b.c.memory_id, _text(a), _text(b))
    query = sa.select(e.c.edge_id, *sides, e.c.created_at).select_from(joined)
    return query.where(e.c.edge_type == EdgeType.CONTRADICTS, view.where(a), view.where(b)), e


def contradictions_found(
    snapshot: Snapshot, view: View, during: Interval
) -> list[ContradictingPair]:
    """Return contradictions between visible memories found during an interval, newest first."""
    query, e = _pairs(view)
    selected = query.where(_within(e.c.created_at)).order_by(
        e.c.created_at.desc(), e.c.edge_id.desc()
    )
    return snapshot.mapped(ContradictingPair._make, selected, view.params | during._asdict())


def pairs(
    snapshot: Snapshot, view: View, edge_ids: Collection[str]
) -> dict[str, ContradictingPair]:
    """Return the contradictions between visible memories with these edge ids, by edge id."""
    query, e = _pairs(view)
    rows = snapshot.rows(query.where(among(e.c.edge_id, sorted(edge_ids))), view.params)
    return {row[0]: ContradictingPair._make(row) for row in rows}


def decisions(snapshot: Snapshot, during: Interval) -> list[AuditRow]:
    """Return the journal entries that decided or reopened contradictions, newest first."""
    entries = select(AuditRow).where(AuditRow.at > during.since, AuditRow.at <= during.until)
    entries = entries.where(col(AuditRow.action).in_(DECISIONS))
    return fetch(snapshot, entries.order_by(col(AuditRow.seq).desc()))


def finders(
    snapshot: Snapshot, contradictions: Collection[ContradictingPair]
) -> dict[str, tuple[str, str]]:
    """Return who recorded contradictions and why, as (actor, reason) by edge id."""
    pairs = [(pair.edge_id, pair.first_id) for pair in contradictions]
    f, a = listed(pairs, "f"), tables.audit_log.alias("a")
    of_edge = element(f.c.value, 0)
    joined = sa.and_(
        a.c.subject == element(f.c.value, 1),
        a.c.action == "relate",
        member(a.c.details, "edge_id") == of_edge,
    )
    because = sa.func.coalesce(member(a.c.details, "reason"), "")
    query = sa.select(of_edge, a.c.actor, because).select_from(ordered(f, (a, joined)))
    return {edge_id: (actor, reason) for edge_id, actor, reason in snapshot.rows(query)}
