"""Read changes between two times, newest first.

An interval excludes its start and includes its end.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlmodel import select

from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus
from memgraph.model.tables import AuditRow
from memgraph.rules.erasure import MARK
from memgraph.store import tables
from memgraph.store.erasure import ACTION, RESTORE
from memgraph.store.rows import fetch
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, among, member, ordered, value
from memgraph.store.visibility import Table, View, edge_ends

EXCERPT_CHARS: Final = 200
DECISIONS: Final = ("resolve", "accept", "dismiss", "reopen")


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


class ErasedMemory(NamedTuple):
    """An erased memory, with the time, the actor and the id of its erasure."""

    memory_id: str
    kind: str
    type: str
    at: int
    actor: str
    erasure_id: str


class RestoreEntry(NamedTuple):
    """The time, the actor and the reason of a restore, and the time of the backup."""

    at: int
    actor: str
    reason: str
    taken_at: str | None


class EdgeEnds(NamedTuple):
    """A visible contradiction or mark: the older memory and the newer one, with the first
    characters of their texts."""

    edge_id: str
    edge_type: str
    first_id: str
    second_id: str
    first_text: str
    second_text: str
    created_at: int


def _within(time: Column) -> Column:
    return (time > value("since")) & (time <= value("until"))


def _text(m: Table) -> Column:
    # Only erased memories have no text.
    own = sa.case((m.c.summary != "", m.c.summary), (m.c.content != "", m.c.content), else_=MARK)
    return sa.func.substr(own, 1, EXCERPT_CHARS)


def _is_stored_turn(h: Table, m: Table) -> Column:
    """Return the condition that a turn was stored with this status."""
    is_stored = (h.c.since == m.c.created_at) & (h.c.status == MemoryStatus.ACTIVE)
    return is_stored & (m.c.kind == MemoryKind.EPISODE)


def statuses_begun(snapshot: Snapshot, view: View, during: Interval) -> list[StatusStart]:
    """Return the statuses that began during an interval, newest first, except stored turns."""
    h, m, b = tables.statuses.alias("h"), tables.memories.alias("m"), tables.statuses.alias("b")
    earlier = sa.tuple_(b.c.since, b.c.status_id) < sa.tuple_(h.c.since, h.c.status_id)
    # A memory is stored with its first status.
    is_first = ~sa.exists().where(b.c.memory_id == h.c.memory_id, earlier).correlate(h)
    period = (h.c.status, h.c.since, h.c.actor, h.c.reason, is_first)
    query = (
        sa.select(m.c.memory_id, m.c.kind, m.c.type, _text(m), *period)
        .select_from(ordered(h, (m, m.c.memory_id == h.c.memory_id)))
        .where(_within(h.c.since), ~_is_stored_turn(h, m), view.where(m))
        .order_by(h.c.since.desc(), h.c.status_id.desc())
    )
    return snapshot.mapped(StatusStart._make, query, view.params | during._asdict())


def turns_stored(snapshot: Snapshot, view: View, during: Interval) -> int:
    """Return the number of turns stored during an interval."""
    h, m = tables.statuses.alias("h"), tables.memories.alias("m")
    query = (
        sa.select(sa.func.count())
        .select_from(ordered(h, (m, m.c.memory_id == h.c.memory_id)))
        .where(_within(h.c.since), _is_stored_turn(h, m), view.where(m))
    )
    return int(snapshot.scalar(query, view.params | during._asdict()))


def erased(snapshot: Snapshot, view: View, during: Interval) -> list[ErasedMemory]:
    """Return the memories that were erased during an interval, turns included, newest first."""
    log, m = tables.audit_log.alias("l"), tables.memories.alias("m")
    erasure = (log.c.at, log.c.actor, member(log.c.details, "erasure_id"))
    query = (
        sa.select(m.c.memory_id, m.c.kind, m.c.type, *erasure)
        .select_from(ordered(log, (m, m.c.memory_id == log.c.subject)))
        .where(_within(log.c.at), log.c.action == ACTION, view.where(m))
        .order_by(log.c.seq.desc())
    )
    return snapshot.mapped(ErasedMemory._make, query, view.params | during._asdict())


def pairs(snapshot: Snapshot, view: View, edge_ids: Collection[str]) -> dict[str, EdgeEnds]:
    """Return the edges between visible memories with these ids, by id."""
    e = tables.edges.alias("e")
    a, b, joined = edge_ends(e)
    ends = (column for m in (a, b) for column in (m.c.created_at, m.c.memory_id, _text(m)))
    query = (
        sa.select(e.c.edge_id, e.c.edge_type, e.c.created_at, *ends)
        .select_from(joined)
        .where(view.where(a), view.where(b))
        .where(among(e.c.edge_id, sorted(edge_ids)))
    )
    result = {}
    for edge_id, edge_type, at, *sides in snapshot.rows(query, view.params):
        newer, older = sides[:3], sides[3:]
        # A change leads from the newer memory; a contradiction may have been stated either way.
        if edge_type == EdgeType.CONTRADICTS:
            older, newer = sorted((older, newer))
        ids, texts = (older[1], newer[1]), (older[2], newer[2])
        result[edge_id] = EdgeEnds(edge_id, edge_type, *ids, *texts, at)
    return result


def pair_entries(snapshot: Snapshot, during: Interval) -> list[AuditRow]:
    """Return the journal entries that recorded contradictions, or decided or reopened pairs."""
    log = tables.audit_log.c
    recorded = (log.action == "relate") & sa.func.json_valid(log.details)
    recorded &= member(log.details, "type") == EdgeType.CONTRADICTS
    entries = select(AuditRow).where(log.at > during.since, log.at <= during.until)
    entries = entries.where(log.action.in_(DECISIONS) | recorded)
    return fetch(snapshot, entries.order_by(log.seq.desc()))


def restores(snapshot: Snapshot, during: Interval) -> list[RestoreEntry]:
    """Return the restores of backups during an interval."""
    log = tables.audit_log.c
    fields = (member(log.details, name) for name in ("reason", "backup.stamp.at"))
    query = sa.select(log.at, log.actor, *fields).where(_within(log.at), log.subject.is_(None))
    query = query.where(log.action == RESTORE, sa.func.json_valid(log.details))
    return snapshot.mapped(RestoreEntry._make, query.order_by(log.seq.desc()), during._asdict())
