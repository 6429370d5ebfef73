"""Read the memories of a bulletin in index order: no query sorts or scans a whole type.

The conditions repeat those of the partial indexes in ``memgraph.model.tables``; otherwise SQLite
does not use the indexes. No function reads a clock: expiry is judged at the time of the last
journal entry, so that the same journal yields the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.conversation import HAPPENED
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, SourceType
from memgraph.rules.bulletin import MOST_COUNTED
from memgraph.rules.contradictions import ConflictSide
from memgraph.store import tables, visibility
from memgraph.store.edges import decided_by_facts
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, member, prepared, value
from memgraph.store.visibility import (
    Table,
    View,
    by_importance,
    edge_ends,
    is_unexpired,
    memories_listed,
)

# More than any bulletin shows of a text; avoids reading and copying long texts completely.
EXCERPT_CHARS = 2_000
MOST_READ = 200
"""The maximum number of rows read per section; the bulletin uses those that fit."""
MOST_CONFLICTS = 2_000


class BulletinExcerpt(NamedTuple):
    """The part of a memory that a bulletin shows.

    Attributes:
        valid_until: milliseconds; None if it has no end, or is an item whose end moves with every
            read, which the journal does not record.
        decision_status: free text, or None.
        path: the source file; None if it does not come from a file.
        source_role: who said it, or None.
        locator: its place in the file.
        section: the headings above it in the file, or None.
        happened: the year or the month of its event, if no day is known, or None.
    """

    memory_id: str
    type: str
    text: str
    confidence: float
    event_time: int | None
    created_at: int
    valid_until: int | None
    decision_status: str | None
    path: str | None
    kind: str
    source_role: str | None
    locator: str | None
    section: str | None
    happened: str | None

    @property
    def at(self) -> int | None:
        """Return the time of the event, or else of storage; None if unknown, as for a file."""
        if self.event_time is not None or self.path is not None:
            return self.event_time
        return self.created_at


class OpenConflict(NamedTuple):
    """An unresolved contradiction. A side from a file without a date has the time 0."""

    since: int
    first: ConflictSide
    second: ConflictSide


def journal_head(snapshot: Snapshot, as_of: int | None = None) -> tuple[int, int, str]:
    """Return (seq, time in milliseconds, seal) of the last journal entry, now or at ``as_of``.

    It is (0, 0, "") if the journal is empty.
    """
    row = _journal_head(as_of is None).row(snapshot, as_of=as_of)
    return (0, 0, "") if row is None else row


@prepared
def _journal_head(now: bool) -> sa.Select[Any]:
    log, earlier = tables.audit_log, tables.audit_log.alias("earlier")
    last = sa.select(log.c.seq, log.c.at, log.c.hash).order_by(log.c.seq.desc()).limit(1)
    if now:
        return last
    # Uses the index on times, and takes the last entry of that millisecond.
    time = sa.select(sa.func.max(earlier.c.at)).where(earlier.c.at <= value("as_of"))
    return last.where(log.c.at == time.scalar_subquery())


class SectionQuery(NamedTuple):
    """The query of a section: its condition on active memories, its index, and its order."""

    where: Callable[[Table, View], Column]
    by_index: str
    by: Callable[[Table, View], tuple[Column, ...]] = lambda m, _: by_importance(m)

    def read(self, snapshot: Snapshot, view: View, at: int, floor: float) -> list[BulletinExcerpt]:
        """Return the first memories with a stored confidence of at least ``floor``."""
        values = {"at": at, "floor": floor, "limit": MOST_READ}
        statement = _section(self, view.shape, True)
        return statement.mapped(BulletinExcerpt._make, snapshot, view.params, **values)

    def total(self, snapshot: Snapshot, view: View, at: int) -> int:
        """Return the number of memories in the section, at most ``MOST_COUNTED`` + 1."""
        values = {"at": at, "limit": MOST_COUNTED + 1}
        return len(_section(self, view.shape, False).rows(snapshot, view.params, **values))


@prepared
def _section(section: SectionQuery, view: View, shows: bool) -> sa.Select[Any]:
    """Select the first memories of a section that have not expired.

    Args:
        shows: select excerpts of memories above the confidence floor; False: select the keys of
            all, to count them.
    """
    m = tables.memories.alias("m")
    query = sa.select(*(_excerpt(m, view) if shows else [m.c.pk]))
    query = query.where(
        view.status(m) == MemoryStatus.ACTIVE, section.where(m, view), view.where(m)
    )
    if shows:
        query = query.where(view.confidence(m) >= value("floor"))
    if view.as_of is None:
        # The index has only active memories, so it cannot be used for an earlier time.
        query = query.with_hint(m, f"INDEXED BY {section.by_index}", "sqlite")
    query = query.where(view.unerased(m), is_unexpired(m))
    return query.order_by(*section.by(m, view)).limit(value("limit"))


def _of_type(type_: MemoryType) -> SectionQuery:
    return SectionQuery(lambda m, _: m.c.type == type_, "ix_memories_type_status")


def _is_open_todo(m: Table, _: View) -> Column:
    return sa.and_(
        m.c.type == MemoryType.TODO,
        sa.func.instr(m.c.tags, '"done"') == 0,
        sa.func.json_extract(m.c.attributes, "$.done").is_distinct_from(1),
    )


def _is_decision(m: Table, _: View) -> Column:
    return m.c.type == MemoryType.DECISION


KNOWLEDGE = SectionQuery(
    lambda m, _: (m.c.kind != MemoryKind.EPISODE) & m.c.type.in_(visibility.KNOWLEDGE),
    "ix_memories_knowledge",
)
"""Facts, identities, observations and events, without raw turns."""
GOALS = _of_type(MemoryType.GOAL)
PREFERENCES = _of_type(MemoryType.PREFERENCE)
OPEN_TODOS = SectionQuery(_is_open_todo, "ix_memories_open_todos")
"""Todos without ``attributes.done`` and without the tag ``done``."""
DECISIONS = SectionQuery(
    _is_decision,
    "ix_memories_decisions",
    lambda m, _: (m.c.event_time.desc(), m.c.created_at.desc(), m.c.pk.desc()),
)
UNCERTAIN = SectionQuery(
    lambda m, view: (m.c.kind != MemoryKind.EPISODE) & (view.confidence(m) < 0.5),
    "ix_memories_uncertain",
    lambda m, view: (view.confidence(m), m.c.created_at, m.c.pk),
)
"""Memories with a stored confidence under 0.5, the lowest first."""
# Two queries on one index, because no index is ordered by the first of two columns that is set.
_WALKS: Final = (
    DECISIONS._replace(where=lambda m, view: _is_decision(m, view) & m.c.event_time.is_not(None)),
    DECISIONS._replace(
        where=lambda m, view: _is_decision(m, view) & m.c.event_time.is_(None),
        by=lambda m, _: (m.c.created_at.desc(), m.c.pk.desc()),
    ),
)


def decisions(snapshot: Snapshot, view: View, at: int, floor: float) -> list[BulletinExcerpt]:
    """Return the newest decisions by date; those without a date come last."""
    excerpts = [excerpt for walk in _WALKS for excerpt in walk.read(snapshot, view, at, floor)]
    return sorted(
        excerpts,
        key=lambda excerpt: (
            excerpt.at is not None,
            excerpt.at or 0,
            excerpt.created_at,
            excerpt.memory_id,
        ),
        reverse=True,
    )


@prepared
def _excerpts(view: View) -> sa.Select[Any]:
    m, joined = memories_listed()
    lasts = m.c.valid_until > value("at")
    return (
        sa.select(*_excerpt(m, view))
        .select_from(joined)
        .where(view.status(m) == MemoryStatus.ACTIVE, view.where(m), view.unerased(m))
        .where(sa.func.coalesce(lasts, sa.true()))
    )


def excerpts(
    snapshot: Snapshot, view: View, memory_ids: Sequence[str], at: int
) -> dict[str, BulletinExcerpt]:
    """Return the memories that are visible, active and not expired, by id."""
    rows = _excerpts(view.shape).rows(snapshot, view.params, ids=memory_ids, at=at)
    return {row[0]: BulletinExcerpt._make(row) for row in rows}


@prepared
def _open_conflicts(view: View) -> sa.Select[Any]:
    e = tables.edges.alias("e")
    a, b, joined = edge_ends(e)
    query = sa.select(e.c.created_at, moment(a), a.c.memory_id, moment(b), b.c.memory_id)
    if view.as_of is None:
        query = query.with_hint(e, "INDEXED BY ix_memory_edges_contradictions", "sqlite")
    return (
        query.select_from(joined)
        .where(e.c.edge_type == EdgeType.CONTRADICTS, view.of_edge(e, "resolved_at").is_(None))
        .where(*(view.status(m) == MemoryStatus.ACTIVE for m in (a, b)))
        .where(view.edge_where(e), view.where(a), view.where(b))
        .where(view.unerased(a), view.unerased(b))
        .where((view.of_edge(e, "weight") >= 1.0) | ~decided_by_facts(e, view))
        .order_by(e.c.created_at.desc(), e.c.edge_id.desc())
        .limit(MOST_CONFLICTS)
    )


def open_conflicts(snapshot: Snapshot, view: View) -> list[OpenConflict]:
    """Return unresolved contradictions between visible, active memories, newest first."""
    return [
        OpenConflict(since, ConflictSide(time, memory_id), ConflictSide(other_time, other_id))
        for since, time, memory_id, other_time, other_id in _open_conflicts(view.shape).rows(
            snapshot, view.params
        )
    ]


def _excerpt(m: Table, view: View) -> list[Column]:
    text = sa.case(
        (m.c.summary == "", sa.func.substr(m.c.content, 1, EXCERPT_CHARS)), else_=m.c.summary
    )
    return [
        m.c.memory_id,
        m.c.type,
        text,
        view.confidence(m),
        m.c.event_time,
        m.c.created_at,
        view.valid_until(m),
        member(m.c.attributes, "decision_status"),
        _path(m),
        m.c.kind,
        m.c.source_role,
        _locator(m),
        member(m.c.attributes, "section"),
        member(m.c.attributes, HAPPENED),
    ]


def _path(m: Table) -> Column:
    s = tables.sources.alias("s")
    is_file = s.c.source_path.is_not(None) | (s.c.source_type == SourceType.INGEST_FILE)
    path = sa.select(sa.func.coalesce(s.c.source_path, ""))
    path = path.where(s.c.source_id == m.c.source_id, is_file)
    return path.correlate(m).scalar_subquery()


def _locator(m: Table) -> Column:
    s = tables.sources.alias("s")
    locator = sa.select(s.c.locator).where(s.c.source_id == m.c.source_id)
    return locator.correlate(m).scalar_subquery()


def moment(m: Table) -> Column:
    """Return the SQL expression for the time of a ``ConflictSide``; 0 for a file without a date."""
    said_at = sa.case((_path(m).is_(None), m.c.created_at), else_=0)
    return sa.func.coalesce(m.c.event_time, said_at)
