"""Store and read the rows of ``memory_edges``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from memgraph.clock import MAX_MS
from memgraph.errors import Conflict, NotFound
from memgraph.ids import EDGE_PREFIX, SHORT_CHARS
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus
from memgraph.model.values import Edge
from memgraph.rules.lifecycle import DISMISSED, is_change_mark
from memgraph.store import memories, tables
from memgraph.store.redaction import readable_edges
from memgraph.store.rows import EDGE_FIELDS, EDGE_STATE, edge_from_row, json_text
from memgraph.store.snapshot import JournalledTransaction, Snapshot, Transaction
from memgraph.store.statements import (
    Column,
    among,
    bound,
    greatest,
    listed,
    member,
    ordered,
    prepared,
    value,
)
from memgraph.store.text_index import matching, saying
from memgraph.store.visibility import (
    ENDS,
    View,
    edge_ends,
    params_of,
    replaces_whole,
    shape_of,
    shown_by,
)

_DISMISSIBLE: Final = (EdgeType.CONTRADICTS, EdgeType.UPDATES)
SYMMETRIC = (EdgeType.CONTRADICTS, EdgeType.RELATED_TO)
MOST_NAMED: Final = 10


def insert(transaction: Transaction, *rows: Mapping[str, Any]) -> None:
    """Store edges; columns that a row leaves out get their defaults."""
    transaction.execute(sa.insert(tables.edges), rows)


def find(snapshot: Snapshot, from_id: str, to_id: str, edge_type: EdgeType) -> Edge | None:
    """Return the edge of a type between two memories; symmetric types match both directions."""
    symmetric = edge_type in SYMMETRIC
    e = tables.edges
    ends = (e.c.from_memory_id == bound(from_id)) & (e.c.to_memory_id == bound(to_id))
    if symmetric:
        ends |= (e.c.from_memory_id == bound(to_id)) & (e.c.to_memory_id == bound(from_id))
    row = snapshot.row(
        _columns(e)
        .where(e.c.edge_type == bound(edge_type.value), ends)
        .order_by(e.c.edge_id)
        .limit(1)
    )
    return edge_from_row(row) if row else None


def get(snapshot: Snapshot, edge_id: str) -> Edge:
    """Return an edge.

    Raises:
        NotFound: there is no edge with this id; see ``missing``.
    """
    row = snapshot.row(_columns(tables.edges).where(tables.edges.c.edge_id == bound(edge_id)))
    if row is None:
        raise missing(edge_id)
    return edge_from_row(row)


def missing(edge_id: str) -> NotFound:
    """Return the error for an edge that does not exist or is not visible."""
    return NotFound(f"no edge {edge_id[:80]!r}", edge_id=edge_id[:80])


def _columns(e: sa.FromClause) -> sa.Select[Any]:
    return sa.select(*(e.c[name] for name in EDGE_FIELDS))


# -- replacements -------------------------------------------------------------------------------


def successors(snapshot: Snapshot, memory_id: str) -> list[str]:
    """Return the memories that replaced one by Updates edges, each the successor of the former."""
    e, chain = tables.edges, [memory_id]
    newer = sa.select(e.c.from_memory_id).where(e.c.to_memory_id == value("id"), replaces_whole(e))
    newer = newer.order_by(e.c.from_memory_id)
    while (new := snapshot.column(newer, id=chain[-1])) and new[0] not in chain:
        chain += new
    return chain[1:]


def _is_retracted(s: sa.FromClause) -> Column:
    """Return the SQL condition that a successor is retracted, or is the memory itself."""
    m = tables.memories.alias("m")
    retracted = sa.exists().where(m.c.memory_id == s.c.new, m.c.status == MemoryStatus.RETRACTED)
    return (s.c.old == s.c.new) | among(s.c.new, "gone") | retracted.correlate(s)


def still_replaced(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    *,
    retracted: Collection[str] = (),
    ignored_edge: str | None = None,
) -> set[str]:
    """Return the memories that were replaced by, or lost to, a memory that is not retracted.

    A retracted successor does not count, but its own successors do, over any number of steps.

    Args:
        retracted: ids that also count as retracted.
        ignored_edge: the id of an edge that does not count.
    """
    values = {"ids": memory_ids, "gone": retracted}
    # Select the memories with a successor that is not retracted.
    # A successor replaced the memory or won a contradiction with it. Retracted successors are
    # followed to theirs.
    f = listed("ids", "f")
    start = sa.select(f.c.value.label("old"), f.c.value.label("new"))
    s = start.cte("successors", recursive=True)
    steps = []
    for near, far, kind in (
        ("to_memory_id", "from_memory_id", EdgeType.UPDATES),
        ("to_memory_id", "from_memory_id", EdgeType.CONTRADICTS),
        ("from_memory_id", "to_memory_id", EdgeType.CONTRADICTS),
    ):
        e = tables.edges.alias("e")
        has_lost = (e.c.edge_type == kind) & (member(e.c.resolution, "loser_id") == s.c.new)
        steps.append(
            sa.select(s.c.old, e.c[far])
            .select_from(ordered(s, (e, e.c[near] == s.c.new)))
            .where(
                replaces_whole(e) if kind is EdgeType.UPDATES else has_lost,
                e.c.edge_id.is_distinct_from(bound(ignored_edge)),
                _is_retracted(s),
            )
        )
    s = s.union(*steps)
    query = sa.select(s.c.old).distinct().where(s.c.old != s.c.new, ~_is_retracted(s))
    return set(snapshot.column(query, values))


def replaced_and_active(
    snapshot: Snapshot, memory_ids: Collection[str], view: View | None
) -> dict[str, str]:
    """Return the active memories that ``memory_ids`` fully replace, with the latest replacement.

    If a replaced memory is retracted, the memories that it had replaced count as well.

    Args:
        view: limits the result to visible memories; None: all.
    """
    # Select replaced memories that are active; retracted ones are followed further.
    f, e = listed(memory_ids, "f"), tables.edges.alias("e")
    start = sa.select(
        e.c.to_memory_id.label("old"), f.c.value.label("new"), e.c.created_at.label("at")
    )
    start = start.add_columns(e.c.edge_id)
    start = start.select_from(ordered(f, (e, e.c.from_memory_id == f.c.value))).where(
        replaces_whole(e)
    )
    r = start.cte("replaced", recursive=True)
    g, m = tables.memories.alias("g"), tables.memories.alias("m")
    further = sa.select(e.c.to_memory_id, r.c.new, e.c.created_at, e.c.edge_id)
    further = further.select_from(
        ordered(
            r,
            (g, (g.c.memory_id == r.c.old) & (g.c.status == MemoryStatus.RETRACTED)),
            (e, e.c.from_memory_id == r.c.old),
        )
    ).where(replaces_whole(e))
    r = r.union(further)
    query = (
        sa.select(m.c.memory_id, r.c.new)
        .select_from(ordered(r, (m, m.c.memory_id == r.c.old)))
        .where(m.c.status == MemoryStatus.ACTIVE, shown_by(view, m))
        .order_by(r.c.at, r.c.edge_id)
    )
    return dict(snapshot.rows(query, params_of(view)))


def losers(snapshot: Snapshot, memory_ids: Collection[str]) -> list[str]:
    """Return the memories that lost a decided contradiction, in the order of ``memory_ids``."""
    f, e = listed(memory_ids, "f"), tables.edges.alias("e")
    lost = (
        sa.exists()
        .where(e.c[end] == f.c.value, e.c.edge_type == EdgeType.CONTRADICTS)
        .where(member(e.c.resolution, "loser_id") == f.c.value)
        .correlate(f)
        for end in ("from_memory_id", "to_memory_id")
    )
    return snapshot.column(sa.select(f.c.value).where(sa.or_(*lost)).order_by(f.c.key))


def put_in_force(transaction: JournalledTransaction, edge: Edge, reason: str | None) -> None:
    """Let a partial or marking Updates edge replace the older memory completely.

    A mark of a contradiction becomes one that somebody stated; a mark of a change is resolved.
    """
    changes: dict[str, Any] = {"partial": sa.false(), "weight": 1.0, "reason": bound(reason)}
    if is_change_mark(edge):
        mark = {"weight": edge.weight, "partial": edge.partial, "reason": edge.reason}
        ends = {"winner_id": edge.from_id, "loser_id": edge.to_id}
        decision = {**ends, "reason": reason, "actor": transaction.actor, "mark": mark}
        changes |= _decided(transaction, decision)
    _change(transaction, edge.edge_id, changes)


def reopen_mark(transaction: JournalledTransaction, edge: Edge) -> None:
    """Make a mark that was put in force the open mark that it was."""
    mark = (edge.resolution or {})["mark"]
    changes = {name: bound(mark[name]) for name in ("weight", "partial", "reason")}
    _change(transaction, edge.edge_id, changes | _decided(transaction, None))


def of_memory(
    snapshot: Snapshot, memory_id: str, edge_types: Sequence[EdgeType] = tuple(EdgeType)
) -> list[Edge]:
    """Return the edges in and out of a memory, oldest first."""
    e = tables.edges
    end = (e.c.from_memory_id == bound(memory_id)) | (e.c.to_memory_id == bound(memory_id))
    query = (
        _columns(e)
        .where(end, among(e.c.edge_type, edge_types))
        .order_by(e.c.created_at, e.c.edge_id)
    )
    return snapshot.mapped(edge_from_row, query)


def set_resolution(
    transaction: JournalledTransaction, edge_id: str, resolution: Mapping[str, Any] | None
) -> None:
    """Set the resolution of a contradiction, or reopen it with None."""
    _change(transaction, edge_id, _decided(transaction, resolution))


def _change(
    transaction: JournalledTransaction, edge_id: str, changes: Mapping[str, Column]
) -> None:
    """Change an edge, and keep what it was until now."""
    e, at = tables.edges, bound(transaction.at)
    since, is_it = sa.func.coalesce(e.c.changed_at, e.c.created_at), e.c.edge_id == bound(edge_id)
    # If it changes twice at a time, or the clock was set back, nobody saw the state between.
    state = sa.select(e.c.edge_id, since, at, *(e.c[name] for name in EDGE_STATE))
    names = ("edge_id", "since", "until", *EDGE_STATE)
    query = state.where(is_it, since < at)
    transaction.write(sa.insert(tables.edge_states).from_select(names, query))
    changed_at = greatest(since, at)
    transaction.write(sa.update(e).where(is_it).values({"changed_at": changed_at, **changes}))


def _decided(
    transaction: JournalledTransaction, resolution: Mapping[str, Any] | None
) -> dict[str, Any]:
    return {
        "resolved_at": bound(None if resolution is None else transaction.at),
        "resolution": bound(None if resolution is None else json_text(resolution)),
    }


def counts(snapshot: Snapshot) -> dict[str, int]:
    """Return the number of edges by type."""
    kind = tables.edges.c.edge_type
    return dict(snapshot.rows(sa.select(kind, sa.func.count()).group_by(kind).order_by(kind)))


# -- pages of contradictions and marks of changes between visible memories -----------------------


@dataclass(frozen=True, slots=True)
class ContradictionFilter:
    """A filter of contradictions and marks of changes; the defaults leave nothing out.

    Attributes:
        words: each word must occur in one of the sides.
        memory_id: the id of one of the sides.
        oldest_first: sort the oldest first instead of the newest.
        changes: True: only marks of changes, Updates edges of a weight below 1; False: only
            contradictions.
        undecided: only open ones of which both sides are active.
    """

    words: tuple[str, ...] = ()
    memory_id: str | None = None
    oldest_first: bool = False
    changes: bool | None = None
    undecided: bool = False


EVERY: Final = ContradictionFilter()


def decided_by_facts(e: sa.FromClause, view: View) -> Column:
    """Return the condition that a fact of a mark's later turn replaced one of the earlier turn."""
    u, m = tables.edges.alias("u"), tables.memories.alias("m")
    new, old = tables.derivations.alias("new"), tables.derivations.alias("old")
    # The few facts of a turn are read first: there may be thousands of replacements.
    facts = ordered(
        new,
        (u, u.c.from_memory_id == new.c.memory_id),
        (old, old.c.memory_id == u.c.to_memory_id),
        (m, m.c.memory_id == u.c.to_memory_id),
    )
    return (
        sa.exists()
        .select_from(facts)
        .where(new.c.derived_from_id == e.c.from_memory_id)
        .where(old.c.derived_from_id == e.c.to_memory_id)
        .where(view.in_force(u), view.edge_where(u))
        .where(view.status(m) != MemoryStatus.ACTIVE)
        .correlate(e)
    )


def contradictions(
    snapshot: Snapshot,
    view: View,
    *,
    resolved: bool,
    limit: int,
    after: tuple[int, str] | None = None,
    criteria: ContradictionFilter = EVERY,
) -> list[Edge]:
    """Return a page of Contradicts edges and marks of changes, in order of time.

    Both ends are visible. A mark of a change is an Updates edge of a weight below 1, or one that
    was put in force since, and thereby resolved. An open mark of two turns is left out if a fact of
    the one replaced a fact of the other: that decided it. An open one of which a side is not
    active leaves nothing to decide: it is returned only for one of its memories.

    Args:
        view: the reader's view; with ``as_of``, the state at that time counts.
        resolved: True: resolved, accepted and dismissed ones, by ``resolved_at``; False: open
            ones, by ``created_at``.
        after: (that time, edge id) of the last edge on the previous page.
    """
    match = " AND ".join(f"({saying([word])})" for word in criteria.words)
    e = tables.edges.alias("e")
    a, b, paired = edge_ends(e)
    resolved_at = view.of_edge(e, "resolved_at")
    time = resolved_at if resolved else e.c.created_at
    query = (
        sa.select(*view.edge_columns(e))
        .select_from(paired)
        # Without the hint SQLite reads the memories of all decided edges, and sorts them.
        .with_hint(e, "INDEXED BY ix_memory_edges_contradictions", "sqlite")
        .where(
            _decidable(e),
            resolved_at.is_not(None) if resolved else resolved_at.is_(None),
            view.edge_where(e),
            view.where(a),
            view.where(b),
        )
    )
    if not resolved:
        query = query.where((view.of_edge(e, "weight") >= 1.0) | ~decided_by_facts(e, view))
    if criteria.undecided or not (resolved or criteria.memory_id):
        query = query.where(*(view.status(end) == MemoryStatus.ACTIVE for end in (a, b)))
    if criteria.changes is not None:
        edge_type = EdgeType.UPDATES if criteria.changes else EdgeType.CONTRADICTS
        query = query.where(e.c.edge_type == edge_type)
    if criteria.words:
        # The index is searched once, regardless of the view; the ends are joined already.
        matches = matching("words")
        query = query.where(a.c.pk.in_(matches) | b.c.pk.in_(matches))
    if criteria.memory_id is not None:
        query = query.where(bound(criteria.memory_id).in_([e.c.from_memory_id, e.c.to_memory_id]))
    if after is not None:
        last_position = sa.tuple_(*map(bound, after))
        position = sa.tuple_(time, e.c.edge_id)
        query = query.where(
            position > last_position if criteria.oldest_first else position < last_position
        )
    order = (time, e.c.edge_id) if criteria.oldest_first else (time.desc(), e.c.edge_id.desc())
    page = snapshot.mapped(
        edge_from_row,
        query.order_by(*order).limit(bound(limit)),
        view.params,
        words=snapshot.engine.phrases.expression(match),
    )
    return readable_edges(snapshot, view, page)


def _decidable(e: sa.FromClause) -> Column:
    """Return the condition of ``ix_memory_edges_contradictions``, in the words of that index."""
    is_or_was_mark = sa.or_(e.c.weight < 1.0, e.c.resolved_at.is_not(None))
    is_mark = sa.and_(e.c.edge_type == EdgeType.UPDATES, is_or_was_mark)
    return sa.or_(e.c.edge_type == EdgeType.CONTRADICTS, is_mark)


def full_id(snapshot: Snapshot, text: str, view: View) -> str:
    """Return the id of the contradiction, mark or change in force that a text names.

    A text names it by its id, by the last characters of its id, or by the id or short id of a
    memory that is a side of an open one, if that memory has no other; what is left to decide comes
    before what is not.

    Raises:
        NotFound: it names none.
        Conflict: it names several visible ones, or several memories; ``details["candidates"]``.
    """
    if text.startswith(EDGE_PREFIX):
        return text
    named: list[str] = []
    if memories.is_short(text):
        end = text.removeprefix("#").upper()
        e = tables.edges.alias("e")
        a, b, paired = edge_ends(e)
        end_is = sa.func.substr(e.c.edge_id, -SHORT_CHARS) == bound(end[-SHORT_CHARS:])
        query = (
            sa.select(e.c.edge_id)
            .select_from(paired)
            .where(end_is, view.where(a), view.where(b))
            .order_by(e.c.edge_id)
        )
        index = "INDEXED BY ix_memory_edges_contradictions"
        for candidates in (
            query.with_hint(e, index, "sqlite").where(_decidable(e)),
            query.where(e.c.edge_type == EdgeType.UPDATES),
        ):
            rows = snapshot.column(candidates, view.params)
            named = named or [edge_id for edge_id in rows if edge_id.endswith(end)]
    if not named:
        [memory_id] = memories.full_ids(snapshot, [text], view)
        for undecided in (True, False):
            criteria = ContradictionFilter(memory_id=memory_id, undecided=undecided)
            page = contradictions(
                snapshot, view, resolved=False, limit=MOST_NAMED, criteria=criteria
            )
            named = named or [edge.edge_id for edge in page]
    if len(named) > 1:
        raise Conflict(
            f"{text[:80]} names {len(named)} contradictions or marks: give the id of one",
            candidates=named,
        )
    if not named:
        raise NotFound(f"no contradiction or mark is named {text[:80]!r}", edge_id=text)
    return named[0]


# -- the journal of a contradiction, and dismissed pairs -------------------------------------------


def was_confirmed(snapshot: Snapshot, memory_id: str, *, until: int = MAX_MS) -> bool:
    """Return True if a memory was confirmed by a time in milliseconds."""
    log = tables.audit_log
    of_memory = (log.c.subject == bound(memory_id), log.c.action == "confirm")
    row = snapshot.row(sa.select(log.c.seq).where(*of_memory, log.c.at <= bound(until)).limit(1))
    return row is not None


@prepared
def _dismissed_alike(view: View | None) -> sa.Select[Any]:
    x, y, a, b = (tables.memories.alias(name) for name in "xyab")
    e = tables.edges.alias("e")

    def is_copy(copy: sa.FromClause, side: sa.FromClause) -> Column:
        return sa.and_(
            copy.c.content_hash == side.c.content_hash,
            copy.c.kind != MemoryKind.EPISODE,
            copy.c.scope == side.c.scope,
            copy.c.scope_id.is_not_distinct_from(side.c.scope_id),
            copy.c.agent_id.is_not_distinct_from(side.c.agent_id),
        )

    queries = (
        sa.select(e.c.edge_id)
        .select_from(
            ordered(
                x,
                (y, y.c.memory_id == value("other")),
                (a, is_copy(a, x)),
                (e, (e.c[near] == a.c.memory_id) & e.c.edge_type.in_(_DISMISSIBLE)),
                (b, (b.c.memory_id == e.c[far]) & is_copy(b, y)),
            )
        )
        .where(x.c.memory_id == value("one"), member(e.c.resolution, "outcome") == DISMISSED)
        .where(shown_by(view, a), shown_by(view, b))
        for near, far in ENDS
    )
    matches = sa.union_all(*queries).subquery()
    return sa.select(sa.func.min(matches.c.edge_id))


def dismissed_alike(
    snapshot: Snapshot, one_id: str, other_id: str, view: View | None
) -> str | None:
    """Return the id of a dismissed contradiction or mark between copies of two memories, or None.

    A copy has the same text, scope and agent.

    Args:
        view: ignore contradictions with memories that it does not show; None: ignore none.
    """
    edge_id: str | None = _dismissed_alike(shape_of(view)).scalar(
        snapshot, params_of(view), one=one_id, other=other_id
    )
    return edge_id
