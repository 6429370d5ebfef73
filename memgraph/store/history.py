"""Changes between two times, and the former values of a memory.

A moment belongs to the time that it ends: an interval is without its beginning and with its end.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus
from memgraph.store import tables
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import (
    Column,
    among,
    element,
    listed,
    member,
    ordered,
    prepared,
    value,
)
from memgraph.store.visibility import Table, View

EXCERPT_CHARS: Final = 200
DECISIONS: Final = ("resolve", "dismiss", "reopen")


class Interval(NamedTuple):
    """After ``since`` until ``until``, milliseconds."""

    since: int
    until: int


class StatusStart(NamedTuple):
    """A status that began. ``first``: 1 where the memory came with it."""

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
    """A contradiction that is seen, with the beginnings of what its sides say."""

    edge_id: str
    first_id: str
    second_id: str
    first_text: str
    second_text: str
    created_at: int


class EdgeDecision(NamedTuple):
    """A journal entry about a contradiction; ``details`` is JSON."""

    seq: int
    at: int
    actor: str
    action: str
    details: str


class ConfidenceMove(NamedTuple):
    """A confidence before the first of its changes in an interval and after the last."""

    memory_id: str
    text: str
    at: int
    before: float
    after: float


def _within(time: Column) -> Column:
    return (time > value("since")) & (time <= value("until"))


def _text(m: Table) -> Column:
    long = sa.case((m.c.summary == "", m.c.content), else_=m.c.summary)
    return sa.func.substr(long, 1, EXCERPT_CHARS)


@prepared
def _begun(view: View) -> sa.Select[Any]:
    h, m, b = tables.statuses.alias("h"), tables.memories.alias("m"), tables.statuses.alias("b")
    earlier = sa.tuple_(b.c.since, b.c.status_id) < sa.tuple_(h.c.since, h.c.status_id)
    # The first status of a memory is how it came; what it had before has an end by then.
    came = ~sa.exists().where(b.c.memory_id == h.c.memory_id, earlier).correlate(h)
    period = (h.c.status, h.c.since, h.c.actor, h.c.reason, came)
    return (
        sa.select(m.c.memory_id, m.c.kind, m.c.type, _text(m), *period)
        .select_from(ordered(h, (m, m.c.memory_id == h.c.memory_id)))
        .where(_within(h.c.since), m.c.kind != MemoryKind.EPISODE, view.where(m))
        .order_by(h.c.since.desc(), h.c.status_id.desc())
    )


def begun(snapshot: Snapshot, view: View, during: Interval) -> list[StatusStart]:
    """Return every status but that of turns that began during an interval, the newest first."""
    rows = _begun(view.shape).rows(snapshot, view.params, **during._asdict())
    return [StatusStart._make(row) for row in rows]


@prepared
def _said(view: View) -> sa.Select[Any]:
    h, m = tables.statuses.alias("h"), tables.memories.alias("m")
    return (
        sa.select(sa.func.count())
        .select_from(ordered(h, (m, m.c.memory_id == h.c.memory_id)))
        .where(_within(h.c.since), h.c.since == m.c.created_at)
        .where(h.c.status == MemoryStatus.ACTIVE, m.c.kind == MemoryKind.EPISODE, view.where(m))
    )


def said(snapshot: Snapshot, view: View, during: Interval) -> int:
    """Return how many turns were stored during an interval."""
    return int(_said(view.shape).scalar(snapshot, view.params, **during._asdict()))


def _pairs(view: View) -> tuple[sa.Select[Any], Table]:
    """Return the ``ContradictingPair`` of every visible contradiction, and the edges."""
    e, a, b = tables.edges.alias("e"), tables.memories.alias("a"), tables.memories.alias("b")
    ends = ((a, a.c.memory_id == e.c.from_memory_id), (b, b.c.memory_id == e.c.to_memory_id))
    sides = (a.c.memory_id, b.c.memory_id, _text(a), _text(b))
    found = sa.select(e.c.edge_id, *sides, e.c.created_at).select_from(ordered(e, *ends))
    return found.where(e.c.edge_type == EdgeType.CONTRADICTS, view.where(a), view.where(b)), e


@prepared
def _contradicted(view: View) -> sa.Select[Any]:
    found, e = _pairs(view)
    return found.where(_within(e.c.created_at)).order_by(e.c.created_at.desc(), e.c.edge_id.desc())


def contradicted(snapshot: Snapshot, view: View, during: Interval) -> list[ContradictingPair]:
    """Return contradictions that were found during an interval, both sides seen, newest first."""
    rows = _contradicted(view.shape).rows(snapshot, view.params, **during._asdict())
    return [ContradictingPair._make(row) for row in rows]


@prepared
def _pairs_of(view: View) -> sa.Select[Any]:
    found, e = _pairs(view)
    return found.where(among(e.c.edge_id, "ids"))


def pairs(
    snapshot: Snapshot, view: View, edge_ids: Collection[str]
) -> dict[str, ContradictingPair]:
    """Return those of some contradictions of which both sides are seen, by edge id."""
    ids = json.dumps(sorted(edge_ids))
    rows = _pairs_of(view.shape).rows(snapshot, view.params, ids=ids)
    return {row[0]: ContradictingPair._make(row) for row in rows}


@prepared
def _decisions() -> sa.Select[Any]:
    log = tables.audit_log
    told = sa.select(log.c.seq, log.c.at, log.c.actor, log.c.action, log.c.details)
    return told.where(_within(log.c.at), log.c.action.in_(DECISIONS)).order_by(log.c.seq.desc())


def decisions(snapshot: Snapshot, during: Interval) -> list[EdgeDecision]:
    """Return what the journal tells of decided and reopened contradictions, the newest first."""
    return [EdgeDecision._make(row) for row in _decisions().rows(snapshot, during._asdict())]


@prepared
def _who_found() -> sa.Select[Any]:
    f, a = listed("pairs", "f"), tables.audit_log.alias("a")
    edge_id, first_id = element(f.c.value, 0), element(f.c.value, 1)
    joined = sa.and_(
        a.c.subject == first_id,
        a.c.action == "relate",
        member(a.c.details, "edge_id") == edge_id,
    )
    reason = sa.func.coalesce(member(a.c.details, "reason"), "")
    return sa.select(edge_id, a.c.actor, reason).select_from(ordered(f, (a, joined)))


def who_found(
    snapshot: Snapshot, found: Collection[ContradictingPair]
) -> dict[str, tuple[str, str]]:
    """Return (actor, reason) of the entry that joined the sides of contradictions, by edge id."""
    given = json.dumps([(one.edge_id, one.first_id) for one in found])
    rows = _who_found().rows(snapshot, pairs=given)
    return {edge_id: (actor, reason) for edge_id, actor, reason in rows}


@prepared
def _moved(then: View, view: View) -> sa.Select[Any]:
    r, f, m = (
        tables.revisions.alias("r"),
        tables.revisions.alias("f"),
        tables.memories.alias("m"),
    )
    last, first = sa.func.max(r.c.until), sa.func.min(r.c.revision_id)
    changed = (
        sa.select(r.c.memory_id, last.label("at"), first.label("first_id"))
        .where(_within(r.c.until))
        .group_by(r.c.memory_id)
        .cte("changed")
        .prefix_with("MATERIALIZED")
    )
    after = then.confidence(m)
    return (
        sa.select(m.c.memory_id, _text(m), changed.c.at, f.c.confidence, after)
        .select_from(
            ordered(
                changed,
                (f, f.c.revision_id == changed.c.first_id),
                (m, m.c.memory_id == changed.c.memory_id),
            )
        )
        .where(m.c.created_at <= value("since"), view.where(m), after != f.c.confidence)
        .order_by(changed.c.at.desc(), m.c.memory_id.desc())
    )


def moved(snapshot: Snapshot, view: View, during: Interval) -> list[ConfidenceMove]:
    """Return memories that were there before an interval with another confidence after it."""
    then = View(view.viewer, during.until)
    values = view.params | then.params | during._asdict()
    return [
        ConfidenceMove._make(row) for row in _moved(then.shape, view.shape).rows(snapshot, values)
    ]


@prepared
def _revisions() -> sa.Select[Any]:
    r = tables.revisions
    kept = (r.c.until, r.c.importance, r.c.confidence, r.c.decay_rate, r.c.valid_until, r.c.tags)
    found = sa.select(*kept).where(r.c.memory_id == value("memory_id"))
    return found.order_by(r.c.until, r.c.revision_id)


def revisions(snapshot: Snapshot, memory_id: str) -> list[tuple[Any, ...]]:
    """Return (until, importance, confidence, decay_rate, valid_until, tags as JSON) of the past."""
    return _revisions().rows(snapshot, memory_id=memory_id)
