"""Queries for memories by source, and for the memories that depend on them.

A source is given by one name. A path means a file, or a folder with everything below it. A
conversation means that of a source, or the session of a turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

import sqlalchemy as sa

from memgraph.model.enums import EdgeType, MemoryStatus, SourceName
from memgraph.model.sources import DisputedPair, NamedSource, SourceInfo
from memgraph.store import tables
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, bound, listed, member, ordered, value
from memgraph.store.visibility import ENDS, View, memories_listed, replaces_whole

_NAME: Final = value("name")
# The engines fold only ASCII letters.
_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
_COLUMN: Final = {
    SourceName.PATH: "source_path",
    SourceName.CONVERSATION: "conversation_id",
    SourceName.RUN: "workflow_run_id",
    SourceName.CONTENT: "content_sha256",
}


def _is_named(s: sa.FromClause, kind: SourceName, name: Column) -> Column:
    """Return the condition that a source has a name or, for a path, lies below it."""
    own = s.c[_COLUMN[kind]]
    if kind is not SourceName.PATH:
        return own == name
    # "0" follows "/" in ASCII, so the paths below a folder lie between "folder/" and "folder0".
    folder = sa.func.rtrim(name, "/", type_=sa.Text)
    below = (own >= folder.concat("/")) & (own < folder.concat("0"))
    return (own == name) | below


def keys_of(
    kind: SourceName, name: Column = _NAME, *outer: sa.FromClause
) -> sa.Select[Any] | sa.CompoundSelect[Any]:
    """Select the keys of all memories of a source, whatever their status.

    Args:
        name: its name; by default the parameter ``name``.
        outer: the outer table that provides ``name``.
    """
    s, o = tables.sources.alias("s"), tables.memories.alias("o")
    own = sa.select(o.c.pk).select_from(s.join(o, o.c.source_id == s.c.source_id))
    keys = own.where(_is_named(s, kind, name)).correlate(*outer)
    if kind is SourceName.CONVERSATION:
        o = tables.memories.alias("o")
        return keys.union(sa.select(o.c.pk).where(o.c.session_id == name).correlate(*outer))
    return keys


def _memories_joined(
    kind: SourceName, name: Column = _NAME, *outer: sa.FromClause
) -> tuple[sa.FromClause, Any]:
    """Return the memories table of a source, and its join; see ``keys_of``."""
    f, m = keys_of(kind, name, *outer).subquery("f"), tables.memories.alias("m")
    return m, ordered(f, (m, m.c.pk == f.c.pk))


def memories_of(snapshot: Snapshot, source: NamedSource, view: View) -> list[str]:
    """Return the visible memories of a source, without retracted ones, oldest first."""
    m, joined = _memories_joined(source.kind)
    is_kept = m.c.status != MemoryStatus.RETRACTED
    query = sa.select(m.c.memory_id).select_from(joined).where(is_kept, view.where(m))
    return snapshot.column(query.order_by(m.c.pk), view.params, name=source.name)


def derived_from(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> dict[str, list[str]]:
    """Return the visible, unretracted memories derived from some memories, with their evidence.

    The evidence includes hidden memories, but neither retracted ones nor those that were added
    when the memory was stated again.
    """
    f, m = listed(memory_ids, "f"), tables.memories.alias("m")
    d = tables.derivations.alias("d")
    joined = ordered(
        f,
        (d, (d.c.derived_from_id == f.c.value) & d.c.added_at.is_(None)),
        (m, m.c.memory_id == d.c.memory_id),
    )
    derived = sa.select(m.c.memory_id, m.c.pk).distinct().select_from(joined)
    derived = derived.where(m.c.status != MemoryStatus.RETRACTED, view.where(m))
    derived_ids = snapshot.column(derived.order_by(m.c.pk), view.params)
    grounds: dict[str, list[str]] = {memory_id: [] for memory_id in derived_ids}
    f, g = listed(grounds, "f"), tables.memories.alias("g")
    joined = ordered(f, (d, d.c.memory_id == f.c.value), (g, g.c.memory_id == d.c.derived_from_id))
    pair = (d.c.memory_id, d.c.derived_from_id)
    query = sa.select(*pair).select_from(joined).where(g.c.status != MemoryStatus.RETRACTED)
    for memory_id, ground in snapshot.rows(query.order_by(*pair)):
        grounds[memory_id].append(ground)
    return grounds


def supported(snapshot: Snapshot, memory_ids: Collection[str]) -> set[str]:
    """Return the memories that have further sources."""
    f, p = listed(memory_ids, "f"), tables.supports.alias("p")
    counts = (p.c.memory_id == f.c.value) & p.c.ended_at.is_(None)
    query = sa.select(p.c.memory_id).distinct().select_from(ordered(f, (p, counts)))
    return set(snapshot.column(query))


def supported_by(snapshot: Snapshot, source: NamedSource, view: View) -> dict[str, list[str]]:
    """Return the visible memories that a source also states, oldest first.

    The values are the ids of the matching sources.
    """
    result: dict[str, list[str]] = {}
    s, p = tables.sources.alias("s"), tables.supports.alias("p")
    m = tables.memories.alias("m")
    counts = (p.c.source_id == s.c.source_id) & p.c.ended_at.is_(None)
    joined = s.join(p, counts).join(m, m.c.memory_id == p.c.memory_id)
    query = sa.select(m.c.memory_id, p.c.source_id).select_from(joined)
    query = query.where(_is_named(s, source.kind, _NAME), m.c.status != MemoryStatus.RETRACTED)
    selected = query.where(view.where(m)).order_by(m.c.pk, p.c.source_id)
    rows = snapshot.rows(selected, view.params, name=source.name)
    for memory_id, source_id in rows:
        result.setdefault(memory_id, []).append(source_id)
    return result


def _is_sent(m: sa.FromClause) -> Column:
    """Return the condition that a memory was said or stored by ``sender``."""
    a = tables.audit_log.alias("a")
    stored = sa.exists().where(
        a.c.subject == m.c.memory_id, a.c.action == "remember", a.c.actor == value("sender")
    )
    spoken = sa.func.lower(m.c.source_role) == value("speaker")
    return spoken | stored.correlate(m)


def names(
    snapshot: Snapshot,
    kind: SourceName,
    view: View,
    *,
    after: str,
    limit: int,
    sender: str | None = None,
) -> list[str]:
    """Return the names of sources with a visible memory, in order, after ``after``.

    Args:
        sender: only sources with a visible memory that was said by this speaker (ignoring case)
            or stored by this actor.
    """
    own = tables.sources.c[_COLUMN[kind]]
    ways = [sa.select(own.label("name")).distinct().where(own.is_not(None), own > bound(after))]
    if kind is SourceName.CONVERSATION:
        session_id = tables.sessions.c.session_id
        ways.append(sa.select(session_id).where(session_id > bound(after)))
    n = sa.union(*ways).subquery("n")
    m, joined = _memories_joined(kind, n.c.name, n)
    shown = sa.exists().select_from(joined).where(view.where(m))
    if sender is not None:
        shown = shown.where(_is_sent(m))
    query = sa.select(n.c.name).where(shown).order_by(n.c.name).limit(bound(limit))
    speaker = None if sender is None else sender.translate(_LOWER)
    return snapshot.column(query, view.params, sender=sender, speaker=speaker)


def info(snapshot: Snapshot, source: NamedSource, view: View) -> SourceInfo | None:
    """Return the totals of a source's visible memories; None if it has none."""
    m, joined = _memories_joined(source.kind)
    number, status, at = sa.func.count(), m.c.status, m.c.created_at
    columns: dict[str, Column] = {
        "memories": number,
        "active": number.filter(status == MemoryStatus.ACTIVE),
        "retracted": number.filter(status == MemoryStatus.RETRACTED),
        "first_at": sa.func.min(at),
        "last_at": sa.func.max(at),
    }
    query = sa.select(*columns.values()).select_from(joined).where(view.where(m))
    row = dict(zip(columns, snapshot.row(query, view.params, name=source.name), strict=True))
    return SourceInfo(kind=source.kind, name=source.name, **row) if row["memories"] else None


def of_same_name(snapshot: Snapshot, source: NamedSource) -> list[NamedSource]:
    """Return the other files that were dropped under the name of a file; the first hundred."""
    if source.kind is not SourceName.PATH:
        return []
    s, o = tables.sources.alias("s"), tables.sources.alias("o")
    f, n = tables.files.alias("f"), tables.files.alias("n")
    # Each memory has a source of its own: the contents are found before they are joined.
    own = sa.select(s.c.content_sha256).where(s.c.source_path == bound(source.name))
    dropped = sa.select(f.c.path).where(f.c.sha256.in_(own))
    same = sa.select(n.c.sha256).where(n.c.path.in_(dropped))
    query = sa.select(o.c.source_path).distinct().where(o.c.content_sha256.in_(same))
    query = query.where(o.c.source_path != bound(source.name)).order_by(o.c.source_path)
    return [NamedSource(source.kind, path) for path in snapshot.column(query.limit(100))]


def summaries(snapshot: Snapshot, memory_ids: Collection[str]) -> dict[str, str]:
    """Return the summaries of some memories by id."""
    m, joined = memories_listed()
    query = sa.select(m.c.memory_id, m.c.summary).select_from(joined)
    return dict(snapshot.rows(query, ids=memory_ids))


def _lost_to(w: sa.CTE) -> Iterator[tuple[sa.FromClause, Any, Column]]:
    """Yield the tables, joins and conditions of memories that others replaced or won against."""
    e, m = tables.edges.alias("e"), tables.memories.alias("m")
    won = (e.c.edge_type == EdgeType.CONTRADICTS) & (member(e.c.resolution, "winner_id") == w.c.id)
    for (near, far), condition in ((ENDS[0], replaces_whole(e)), *((way, won) for way in ENDS)):
        yield m, ordered(w, (e, e.c[near] == w.c.id), (m, m.c.memory_id == e.c[far])), condition


def replaced_by(
    snapshot: Snapshot, memory_ids: Collection[str], view: View
) -> list[tuple[str, str]]:
    """Return visible (superseded, successor) pairs with a successor among these memories.

    Retracted memories that one of these had replaced or won against count as one of them.
    """
    # Start from the given memories, and add retracted ones that they had replaced or won against:
    # nothing else keeps the memories that these had replaced superseded.
    went = sa.select(listed(memory_ids, "f").c.value.label("id")).cte("went", recursive=True)
    retracted = [
        sa.select(m.c.memory_id)
        .select_from(joined)
        .where(condition, m.c.status == MemoryStatus.RETRACTED)
        for m, joined, condition in _lost_to(went)
    ]
    went = went.union(*retracted)
    replaced = [
        sa.select(m.c.memory_id.label("old"), went.c.id.label("new"))
        .select_from(joined)
        .where(condition, m.c.status == MemoryStatus.SUPERSEDED)
        for m, joined, condition in _lost_to(went)
    ]
    r = sa.union(*replaced).subquery("r")
    m, n = tables.memories.alias("m"), tables.memories.alias("n")
    joined_ends = ordered(r, (m, m.c.memory_id == r.c.old), (n, n.c.memory_id == r.c.new))
    query = sa.select(r.c.old, r.c.new).select_from(joined_ends).where(view.where(m), view.where(n))
    return snapshot.rows(query.order_by(m.c.pk, r.c.new), view.params)


def decided_for(snapshot: Snapshot, replaced: Mapping[str, Collection[str]]) -> list[DisputedPair]:
    """Return the contradictions that memories lost to their given successors, by age."""
    pairs = [{"old": old, "new": new} for old, by in replaced.items() for new in by]
    p, e = listed(pairs, "p"), tables.edges.alias("e")
    loser, winner = member(p.c.value, "old"), member(p.c.value, "new")
    decided = e.c.edge_type == EdgeType.CONTRADICTS
    decided &= member(e.c.resolution, "loser_id") == loser
    # An order of a union is by names.
    order = [e.c[name].label(name) for name in ("created_at", "edge_id")]
    ways = (
        sa.select(*order, e.c.from_memory_id, e.c.to_memory_id).select_from(
            ordered(p, (e, (e.c[lost] == loser) & (e.c[won] == winner) & decided))
        )
        for lost, won in ENDS
    )
    rows = snapshot.rows(sa.union(*ways).order_by("created_at", "edge_id"))
    return [DisputedPair(edge_id=edge, from_id=near, to_id=far) for _, edge, near, far in rows]


def of_run(snapshot: Snapshot, workflow_run_id: str, view: View, *, limit: int) -> list[str]:
    """Return the visible memories of a run, the newest first."""
    s, m = tables.sources.alias("s"), tables.memories.alias("m")
    query = sa.select(m.c.memory_id).select_from(s.join(m, m.c.source_id == s.c.source_id))
    query = query.where(s.c.workflow_run_id == _NAME, view.where(m))
    selected = query.order_by(m.c.created_at.desc(), m.c.memory_id.desc()).limit(bound(limit))
    return snapshot.column(selected, view.params, name=workflow_run_id)
