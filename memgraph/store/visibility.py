"""The rule of ``memgraph.rules.scope`` as a WHERE clause, with status and as-of.

Every query gives ``memories`` an alias and applies the condition where it selects rows, before any
ranking, limit or count.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from memgraph.clock import MAX_MS, MIN_MS
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, Scope, Sensitivity
from memgraph.rules.lifecycle import ENDED_BY, LOSER_CONFIDENCE
from memgraph.rules.scope import Viewer, predicate
from memgraph.store import tables
from memgraph.store.rows import EDGE_FIELDS, EDGE_STATE, MEMORY_FIELDS
from memgraph.store.statements import Column, among, greatest, least, listed, member, ordered, value

Table = sa.FromClause
AS_OF = value("view_as_of")

_RETRACTED = MemoryStatus.RETRACTED
ACTIVE = frozenset({MemoryStatus.ACTIVE})
STANDING = frozenset({MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED})
_USE = ("access_count", "last_accessed_at")
"""The fields that reveal uses by others; NULL unless the viewer may see uses."""


@dataclass(frozen=True, slots=True)
class View:
    """The view of a reader: who reads, as of which time, and memories of which statuses.

    Attributes:
        as_of: the time in milliseconds; None: now. Memories and edges stored later are hidden.
            Memories have the status that they had at the end of that millisecond, and
            edges and ends of validity are those of then, and so is what decisions did to their
            confidence; other values are those of today.
        statuses: the statuses to show, as of ``as_of`` if it is set; None: all three.
    """

    viewer: Viewer
    as_of: int | None = None
    statuses: frozenset[MemoryStatus] | None = None

    @property
    def shape(self) -> View:
        """The view without its ids and its time, for which statements are compiled.

        Equal shapes are the same object.
        """
        return _shape(type(self), self.viewer, self.as_of is None, self.statuses)  # type: ignore[arg-type]

    def where(self, m: Table) -> Column:
        """Return the condition that a row of ``memories`` is visible; bind it to ``params``."""
        terms = [_scope_condition(self.viewer, m)]
        if self.as_of is not None:
            terms.append(m.c.created_at <= AS_OF)
        if self.statuses is not None:
            terms.append(self.status(m).in_(sorted(self.statuses)))
        elif self.as_of is not None:
            terms.append(self.status(m).is_not(None))
        return sa.and_(*terms)

    def unerased(self, m: Table) -> Column:
        """Return the condition that a memory is not erased: an erased one never has a text."""
        if self.as_of is None:
            return sa.true()
        # Erased memories are retracted, so the text of most rows is not read.
        return sa.or_(m.c.status != _RETRACTED, m.c.content != "")

    def edge_where(self, e: Table) -> Column:
        """Return the condition that a ``memory_edges`` row is visible, if both of its ends are."""
        return sa.true() if self.as_of is None else e.c.created_at <= AS_OF

    def derived_where(self, d: Table) -> Column:
        """Return the condition that a ``memory_derivations`` row is visible, if its ends are."""
        if self.as_of is None:
            return sa.true()
        return sa.or_(d.c.added_at.is_(None), d.c.added_at <= AS_OF)

    def status(self, m: Table) -> Column:
        """Return the status of a memory as of the view's time."""
        if self.as_of is None:
            return m.c.status
        h = tables.statuses.alias("h")
        earlier = (
            sa.select(h.c.status)
            .where(
                h.c.memory_id == m.c.memory_id,
                h.c.since <= AS_OF,
                sa.or_(h.c.until.is_(None), h.c.until > AS_OF),
            )
            .order_by(h.c.since.desc(), h.c.status_id.desc())
            .limit(1)
            .correlate(m)
            .scalar_subquery()
        )
        # Read the history only of memories that have changed since; most have not.
        return sa.case((m.c.updated_at <= AS_OF, m.c.status), else_=earlier)

    def confidence(self, m: Table) -> Column:
        """Return the stored confidence of a memory, as the decisions of the time had left it."""
        current, e = m.c.confidence, tables.edges.alias("d")
        if self.as_of is None:
            return current
        then = self.of_edge(e, "resolution")
        is_lost, was_lost = (
            sa.func.coalesce(member(decision, "loser_id") == m.c.memory_id, sa.false())
            for decision in (e.c.resolution, then)
        )
        before, then_before = (
            member(decision, "loser_prior_confidence", current.type)
            for decision in (e.c.resolution, then)
        )
        lowered = least(then_before, sa.literal_column(str(LOSER_CONFIDENCE)))
        decided = sa.case(
            (is_lost & was_lost, current), (is_lost, before), (was_lost, lowered), else_=sa.null()
        )
        values = sa.select(sa.func.min(decided)).where(e.c.edge_type == EdgeType.CONTRADICTS)
        ends = (e.c.from_memory_id == m.c.memory_id) | (e.c.to_memory_id == m.c.memory_id)
        earlier = values.where(ends).correlate(m).scalar_subquery()
        # A decision updates the loser.
        return sa.case((m.c.updated_at <= AS_OF, current), else_=sa.func.coalesce(earlier, current))

    def last_accessed(self, m: Table) -> Column:
        """Return the time of a memory's last use, in milliseconds; NULL if it was used later."""
        current = m.c.last_accessed_at
        return current if self.as_of is None else sa.case((current < AS_OF, current))

    def updated(self, m: Table) -> Column:
        """Return the time of a memory's last change; if it changed later, of its last status."""
        current = m.c.updated_at
        if self.as_of is None:
            return current
        h = tables.statuses.alias("h")
        began = (
            sa.select(sa.func.max(h.c.since))
            .where(h.c.memory_id == m.c.memory_id, h.c.since <= AS_OF)
            .correlate(m)
            .scalar_subquery()
        )
        earlier = greatest(m.c.created_at, sa.func.coalesce(began, 0))
        return sa.case((current <= AS_OF, current), else_=earlier)

    def valid_until(self, m: Table) -> Column:
        """Return the end of a memory's validity: the one it was stored with, or an earlier one.

        A memory ends when it ceases to be active. What was replaced, lost a contradiction or was
        ended by a turn ends when what prevailed was said, however late that was decided, unless
        that was said first. NULL: it has no end, or what prevailed has no date, unless the memory
        had reached its own end before that was stored.
        """
        own = m.c.valid_until
        reached = sa.case((own <= self._end(m, stated_at), own))
        end = sa.func.coalesce(sa.func.nullif(self._end(m, _known_statement), _UNKNOWN), reached)
        return sa.case((self.status(m) == MemoryStatus.ACTIVE, m.c.valid_until), else_=end)

    def held_until(self, m: Table) -> Column:
        """Return the end of a memory's validity, or when an unknown one was stored."""
        end = self._end(m, stated_at)
        return sa.case((self.status(m) == MemoryStatus.ACTIVE, m.c.valid_until), else_=end)

    def _end(self, m: Table, stated: Callable[[sa.FromClause], Column]) -> Column:
        """Return when a memory ended that is not active.

        Args:
            stated: returns the time at which what prevailed was stated.
        """
        h, a = tables.statuses.alias("h"), tables.statuses.alias("a")
        active = sa.select(sa.func.max(a.c.status_id)).where(a.c.status == MemoryStatus.ACTIVE)
        active = active.where(a.c.memory_id == m.c.memory_id, self._begun(a)).correlate(m)
        since = h.c.status_id > sa.func.coalesce(active.scalar_subquery(), 0)
        ending = (h.c.memory_id == m.c.memory_id) & since & self._begun(h)
        ended = sa.select(sa.func.min(h.c.since)).where(ending).correlate(m)
        w, size = tables.memories.alias("w"), len(ENDED_BY)
        said = sa.select(sa.func.min(stated(w)))
        turn_id = sa.func.substr(h.c.reason, size + 1)
        said = said.select_from(ordered(h, (w, w.c.memory_id == turn_id)))
        # A person gives reasons for a retraction, in any words.
        by_turn = h.c.status == MemoryStatus.SUPERSEDED
        by_turn &= sa.func.substr(h.c.reason, 1, size) == ENDED_BY
        said = said.where(ending, by_turn, self._prevails(w, m, stated)).correlate(m)
        never: Column = sa.literal_column(str(MAX_MS))
        prevailed = (m.c.valid_until, self._replaced_at(m, stated), said.scalar_subquery())
        ends = (sa.func.coalesce(end, never) for end in prevailed)
        return least(ended.scalar_subquery(), *ends)

    def _begun(self, h: Table) -> Column:
        return sa.true() if self.as_of is None else h.c.since <= AS_OF

    def _replaced_at(self, m: Table, stated: Callable[[sa.FromClause], Column]) -> Column:
        """Return when what replaced a memory was said, if later than the memory itself."""
        e, w = tables.edges.alias("by"), tables.memories.alias("w")
        is_newer, memory_id = e.c.to_memory_id == m.c.memory_id, m.c.memory_id
        has_lost = member(self.of_edge(e, "resolution"), "loser_id") == memory_id
        has_lost &= e.c.edge_type == EdgeType.CONTRADICTS
        replaces = is_newer & (self.in_force(e) | has_lost)
        replaces |= (e.c.from_memory_id == memory_id) & has_lost
        other = sa.case((is_newer, e.c.from_memory_id), else_=e.c.to_memory_id)
        return (
            sa.select(sa.func.min(stated(w)))
            .select_from(ordered(e, (w, w.c.memory_id == other)))
            .where(replaces, self.edge_where(e), self._prevails(w, m, stated))
            .correlate(m)
            .scalar_subquery()
        )

    def _prevails(self, w: Table, m: Table, stated: Callable[[sa.FromClause], Column]) -> Column:
        """Return the condition that what replaced a memory is visible, holds and was said later."""
        is_later = stated_at(w) >= sa.func.coalesce(last_turn_at(m), stated_at(m))
        is_later |= stated(w) == _UNKNOWN
        return is_later & _scope_condition(self.viewer, w) & (self.status(w) != _RETRACTED)

    def attributes(self, m: Table) -> Column:
        """Return the attributes of a memory, with only visible memories in ``supersedes``."""
        stored = m.c.attributes
        w = tables.memories.alias("w")
        s = sa.func.json_each(stored, sa.literal_column("'$.supersedes'")).table_valued(
            "value", name="s"
        )
        is_empty = sa.func.count() == 0
        visible_ids = (
            sa.select(sa.case((is_empty, sa.null()), else_=sa.func.json_group_array(w.c.memory_id)))
            .select_from(ordered(s, (w, w.c.memory_id == s.c.value)))
            .where(_scope_condition(self.viewer, w))
            .correlate(m)
            .scalar_subquery()
        )
        supersedes = sa.func.json_object("supersedes", sa.func.json(visible_ids))
        # A null in the patch removes the key.
        return sa.case(
            (sa.func.instr(stored, '"supersedes"') == 0, stored),
            else_=sa.func.json_patch(stored, supersedes),
        )

    def memory_columns(self, m: Table) -> list[Column]:
        """Return ``MEMORY_FIELDS`` as of the view's time; bind them to ``params``."""
        as_it_was = {
            "status": self.status(m),
            "confidence": self.confidence(m),
            "attributes": self.attributes(m),
            "last_accessed_at": self.last_accessed(m),
            "updated_at": self.updated(m),
            "valid_until": self.valid_until(m),
            **({} if self.viewer.sees_use else dict.fromkeys(_USE, sa.null())),
        }
        return [as_it_was.get(name, m.c[name]).label(name) for name in MEMORY_FIELDS]

    def edge_columns(self, e: Table) -> list[Column]:
        """Return ``EDGE_FIELDS`` as of the view's time."""
        return [self.of_edge(e, name).label(name) for name in EDGE_FIELDS]

    def of_edge(self, e: Table, name: str) -> Column:
        """Return a column of an edge as of the view's time."""
        if self.as_of is None or name not in EDGE_STATE:
            return e.c[name]
        s = tables.edge_states.alias("s")
        period = (s.c.edge_id == e.c.edge_id) & (s.c.since <= AS_OF) & (s.c.until > AS_OF)
        earlier = sa.select(s.c[name]).where(period).correlate(e).scalar_subquery()
        # Read the former states only of edges that have changed since; most have not.
        return sa.case((e.c.changed_at > AS_OF, earlier), else_=e.c[name])

    def in_force(self, e: Table) -> Column:
        """Return the condition ``replaces_whole`` as of the view's time."""
        if self.as_of is None:
            return replaces_whole(e)
        is_whole = (self.of_edge(e, "weight") >= 1.0) & (self.of_edge(e, "partial") == sa.false())
        return (e.c.edge_type == EdgeType.UPDATES) & is_whole

    @property
    def params(self) -> dict[str, Any]:
        """The named values for ``where``; several clauses of a statement may share them."""
        return _scope_values(self.viewer) | {"view_as_of": self.as_of}


def shape_of(view: View | None) -> View | None:
    """Return the shape of a view, or None for None (everything is visible)."""
    return None if view is None else view.shape


def params_of(view: View | None) -> dict[str, Any]:
    """Return the parameters of a view's condition; empty for None."""
    return {} if view is None else view.params


def shown_by(view: View | None, m: Table) -> Column:
    """Return the condition that a view shows a row of ``memories``; a view of None shows all."""
    return sa.true() if view is None else view.where(m)


@lru_cache(maxsize=256)
def _shape(
    kind: type[View], viewer: Viewer, now: bool, statuses: frozenset[MemoryStatus] | None
) -> View:
    placeholder = frozenset({"-"})
    normalised = replace(
        viewer,
        project_ids=placeholder if viewer.project_ids else viewer.project_ids,
        session_ids=placeholder if viewer.session_ids else viewer.session_ids,
        agent_id=None if viewer.agent_id is None else "-",
    )
    if normalised != viewer:
        return _shape(kind, normalised, now, statuses)  # type: ignore[arg-type]
    return kind(viewer, None if now else 0, statuses)


@lru_cache(maxsize=256)
def _scope_values(viewer: Viewer) -> dict[str, Any]:
    rule = predicate(viewer)
    by_scope: dict[Scope, list[str]] = {Scope.PROJECT: [], Scope.SESSION: []}
    for scope, scope_id in rule.grants:
        if scope_id is not None:
            by_scope[scope].append(scope_id)
    return {
        "view_agent_id": rule.agent_id,
        "view_project_ids": json.dumps(by_scope[Scope.PROJECT]),
        "view_session_ids": json.dumps(by_scope[Scope.SESSION]),
    }


def _scope_condition(viewer: Viewer, m: Table) -> Column:
    rule = predicate(viewer)
    granted = []
    for scope in sorted({scope for scope, _ in rule.grants}):
        if scope is Scope.GLOBAL:
            granted.append(m.c.scope == scope)
        else:
            granted.append(
                sa.and_(m.c.scope == scope, among(m.c.scope_id, f"view_{scope.value}_ids"))
            )
    if not granted or not rule.sensitivities:
        # With a literal 0 the planner would drop the other terms, and thus miss partial indexes.
        return m.c.scope == sa.literal_column("''")
    terms = [m.c.sensitivity.in_(sorted(rule.sensitivities)), sa.or_(*granted)]
    if rule.agent_id is not None:
        is_own = m.c.agent_id == value("view_agent_id")
        terms.append(sa.or_(m.c.agent_id.is_(None), is_own) if rule.shared else is_own)
    return sa.and_(*terms)


# The types that share a partial index (ix_memories_knowledge).
KNOWLEDGE: Final = (
    MemoryType.FACT,
    MemoryType.IDENTITY,
    MemoryType.OBSERVATION,
    MemoryType.EVENT,
)
ENDS: Final = (("from_memory_id", "to_memory_id"), ("to_memory_id", "from_memory_id"))
"""The columns of an edge's two ends, in both orders."""


def happened_at(m: sa.FromClause) -> Column:
    """Return the time of a memory's event, or else of its creation."""
    return sa.func.coalesce(m.c.event_time, m.c.created_at)


def stated_at(m: sa.FromClause) -> Column:
    """Return the time of a memory's event, but never one after its creation."""
    return least(happened_at(m), m.c.created_at)


# Earlier than every time.
_UNKNOWN: Final[Column] = sa.literal_column(str(MIN_MS - 1))


def is_undated(m: sa.FromClause) -> Column:
    """Return the condition that a memory is from a file without a date."""
    s = tables.sources.alias("f")
    is_of_file = sa.exists().where(s.c.source_id == m.c.source_id, s.c.source_path.is_not(None))
    return m.c.event_time.is_(None) & is_of_file.correlate(m)


def _known_statement(m: sa.FromClause) -> Column:
    """Return ``stated_at``, or ``_UNKNOWN`` for an undated memory."""
    return sa.case((is_undated(m), _UNKNOWN), else_=stated_at(m))


def last_turn_at(m: sa.FromClause) -> Column:
    """Return the time of the last turn that a memory was derived from; NULL if there is none."""
    d, t = tables.derivations.alias("d"), tables.memories.alias("t")
    evidence = d.join(t, t.c.memory_id == d.c.derived_from_id)
    last = sa.select(sa.func.max(stated_at(t))).select_from(evidence)
    last = last.where(d.c.memory_id == m.c.memory_id, t.c.kind == MemoryKind.EPISODE)
    return last.correlate(m).scalar_subquery()


def is_unexpired(m: sa.FromClause) -> Column:
    """Return the condition that a memory is still valid at the time that is bound as ``at``."""
    return m.c.valid_until.is_(None) | (m.c.valid_until > value("at"))


def replaces_whole(e: sa.FromClause) -> Column:
    """Return the condition that an edge is in force: it replaces the whole of an older memory."""
    is_whole = (e.c.weight >= 1.0) & (e.c.partial == sa.false())
    return (e.c.edge_type == EdgeType.UPDATES) & is_whole


def by_importance(m: sa.FromClause) -> tuple[Column, ...]:
    """Return the ordering by importance, highest first, then newest first."""
    return m.c.importance.desc(), m.c.created_at.desc(), m.c.pk.desc()


def memory_fields(m: sa.FromClause) -> sa.Select[Any]:
    """Select ``MEMORY_FIELDS`` as they are stored."""
    return sa.select(*(m.c[name] for name in MEMORY_FIELDS))


def beginning(m: sa.FromClause, chars: Any) -> Column:
    """Return the first characters of a memory's content."""
    return sa.func.substr(m.c.content, 1, chars)


def memories_listed(name: str = "ids") -> tuple[sa.FromClause, Any]:
    """Return the table of memories, and its join with a bound list of ids, in the list's order."""
    f, m = listed(name, "f"), tables.memories.alias("m")
    return m, ordered(f, (m, m.c.memory_id == f.c.value))


def edge_ends(e: sa.FromClause) -> tuple[sa.FromClause, sa.FromClause, Any]:
    """Return the tables of the memories at both ends of an edge, and the join of all three."""
    a, b = tables.memories.alias("a"), tables.memories.alias("b")
    ends = ((a, a.c.memory_id == e.c.from_memory_id), (b, b.c.memory_id == e.c.to_memory_id))
    return a, b, ordered(e, *ends)


def up_to(clearance: Sensitivity) -> list[str]:
    """Return the sensitivities that a clearance covers."""
    return [level.value for level in Sensitivity if level.level <= clearance.level]
