"""Queries that check the rows of a possibly damaged database against its journal."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from memgraph.model.enums import EdgeType, EmbeddingState
from memgraph.store import tables
from memgraph.store.journal import SEALED_FIELDS
from memgraph.store.statements import Column, greatest, unindexed
from memgraph.store.text_index import metadata_of

Table = sa.FromClause


# -- rows for an audit, with their journal entries ------------------------------------------------


def _is_erased(memory_id: Column, outer: Table) -> Column:
    x = tables.audit_log.alias("x")
    return sa.exists().where(x.c.subject == memory_id, x.c.action == "erase").correlate(outer)


def entries() -> sa.Select[Any]:
    """Select the journal entries in order: the sealed fields, then the seal."""
    log = tables.audit_log
    sealed = (log.c.seq, log.c.at, log.c.actor, log.c.action, log.c.subject, log.c.details)
    return sa.select(*sealed, log.c.state, log.c.hash).order_by(log.c.seq)


def redactions() -> sa.Select[Any]:
    """Select the details of the entries that may record redacted entries, in order."""
    log = tables.audit_log
    records = log.c.action.in_(["erase", "accept_redactions"]) & log.c.subject.is_(None)
    return sa.select(log.c.details).where(records).order_by(log.c.seq)


def memories() -> sa.Select[Any]:
    """Select memories in order with their first journal entry; the sealed fields come first."""
    m, a = tables.memories.alias("m"), tables.audit_log.alias("a")
    entry = (a.c.subject == m.c.memory_id) & (a.c.action == "remember")
    return (
        sa.select(
            *(m.c[name] for name in SEALED_FIELDS),
            *(m.c.content_hash, m.c.search_terms, metadata_of(m)),
            *(a.c.seq, a.c.at, a.c.details, _is_erased(m.c.memory_id, m)),
        )
        .select_from(m.outerjoin(a, entry))
        .order_by(m.c.pk, a.c.seq)
    )


def lost_memories() -> sa.Select[Any]:
    """Select (memory id, entry number) of journalled memories that do not exist."""
    a, m = tables.audit_log.alias("a"), tables.memories.alias("m")
    is_there = sa.exists().where(m.c.memory_id == a.c.subject).correlate(a)
    lost = sa.select(a.c.subject, a.c.seq).where(a.c.action == "remember", ~is_there)
    return lost.order_by(a.c.seq)


def status_mismatches() -> sa.Select[Any]:
    """Select (memory id, status, open periods) unless one open period has that status."""
    m, s = tables.memories.alias("m"), tables.statuses.alias("s")
    is_open = (s.c.memory_id == m.c.memory_id) & s.c.until.is_(None)
    return (
        sa.select(m.c.memory_id, m.c.status, sa.func.aggregate_strings(s.c.status, ","))
        .select_from(m.outerjoin(s, is_open))
        .group_by(m.c.pk)
        .having((sa.func.count(s.c.status_id) != 1) | (sa.func.max(s.c.status) != m.c.status))
    )


def broken_histories() -> sa.Select[Any]:
    """Select (memory id, period id) of periods that do not follow the preceding one."""
    s, m = tables.statuses.alias("s"), tables.memories.alias("m")

    def over_periods(function: sa.FunctionElement[Any], name: str) -> Column:
        ordered = function.over(partition_by=s.c.memory_id, order_by=s.c.status_id)
        return ordered.label(name)

    p = (
        sa.select(
            *(s.c.memory_id, s.c.status_id, s.c.since, m.c.created_at),
            over_periods(sa.func.lag(s.c.since), "before"),
            over_periods(sa.func.lag(s.c.until), "ended"),
            over_periods(sa.func.row_number(), "place"),
        )
        .select_from(s.join(m, m.c.memory_id == s.c.memory_id))
        .subquery("p")
    )
    # If the clock was set back, a period ends at the time it began.
    follows = p.c.ended.is_(None) | (p.c.ended != greatest(p.c.before, p.c.since))
    broken = sa.case((p.c.place == 1, p.c.since != p.c.created_at), else_=follows)
    return sa.select(p.c.memory_id, p.c.status_id).where(broken)


def unjournalled_statuses() -> sa.Select[Any]:
    """Select (memory id, status, since) of later periods without a journal entry.

    Changes by a contradiction are journalled under its winner; jobs on many memories have entries
    without a subject.
    """
    h, a, e = tables.statuses.alias("s"), tables.audit_log.alias("a"), tables.edges.alias("e")
    f = tables.statuses.alias("f")
    earlier = sa.exists().where(f.c.memory_id == h.c.memory_id, f.c.status_id < h.c.status_id)
    later = sa.select(h.c.memory_id, h.c.status, h.c.since).where(earlier.correlate(h))
    s = later.cte("later").prefix_with("MATERIALIZED")
    # Use the index on subjects, because thousands of entries may have the same time.
    by_own_entry = sa.exists().where(
        a.c.subject == s.c.memory_id, unindexed(a.c.at) == s.c.since, a.c.action != "remember"
    )
    by_job = sa.exists().where(a.c.subject.is_(None), a.c.at == s.c.since)
    is_first = e.c.from_memory_id == s.c.memory_id
    other_end = sa.case((is_first, e.c.to_memory_id), else_=e.c.from_memory_id)
    by_contradiction = (
        sa.exists()
        .select_from(e.join(a, a.c.subject == other_end))
        .where(e.c.edge_type == EdgeType.CONTRADICTS, a.c.at == s.c.since)
        .where(s.c.memory_id.in_([e.c.from_memory_id, e.c.to_memory_id]))
        .where(a.c.action.in_(["resolve", "reopen"]))
    )
    conditions = (
        ~is_journalled.correlate(s) for is_journalled in (by_own_entry, by_job, by_contradiction)
    )
    return sa.select(s.c.memory_id, s.c.status, s.c.since).where(*conditions)


def vectors() -> sa.Select[Any]:
    """Select the number of memories with a vector."""
    e = tables.embeddings
    return sa.select(sa.func.count()).select_from(e).where(e.c.state == EmbeddingState.READY)


def without_vector() -> sa.Select[Any]:
    """Select the ids of memories that have no vector and are not queued for one."""
    m, e = tables.memories.alias("m"), tables.embeddings.alias("e")
    queued = sa.exists().where(e.c.memory_pk == m.c.pk).correlate(m)
    return sa.select(m.c.memory_id).where(~queued)


def miscounted_entities() -> sa.Select[Any]:
    """Select (entity id, stored mentions, counted mentions) where they differ."""
    e, link = tables.entities.alias("e"), tables.links
    counted = sa.select(link.c.entity_pk, sa.func.count().label("mentions"))
    n = counted.group_by(link.c.entity_pk).subquery("l")
    mentions = sa.func.coalesce(n.c.mentions, 0)
    query = sa.select(e.c.entity_id, e.c.mention_count, mentions)
    query = query.select_from(e.outerjoin(n, n.c.entity_pk == e.c.pk))
    return query.where(e.c.mention_count != mentions).order_by(e.c.pk)
