"""The rule of ``memgraph.rules.scope`` as a WHERE clause, with status and as-of.

Every reader joins ``memories`` under an alias and puts the condition where the rows are chosen,
before any ranking, limit or count.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from memgraph.ids import first_ulid
from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType, Scope, Sensitivity
from memgraph.rules.namespaces import ITEM_TAG, ROOT
from memgraph.rules.scope import Viewer, predicate
from memgraph.store import tables
from memgraph.store.rows import EDGE_FIELDS, MEMORY_FIELDS
from memgraph.store.statements import Column, among, greatest, listed, member, ordered, value

Table = sa.FromClause
AS_OF = value("view_as_of")

REVISED = ("importance", "confidence", "decay_rate", "valid_until", "tags", "attributes")
"""Columns of ``memories`` whose earlier values are kept in ``memory_revisions``."""
_RECEIPTS = "rcl_"
# So many receipts of one memory are looked at for its last access before a time.
_MOST_RECEIPTS = 20
_RETRACTED = MemoryStatus.RETRACTED
ACTIVE = frozenset({MemoryStatus.ACTIVE})
STANDING = frozenset({MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED})
_USE = ("access_count", "last_accessed_at")
"""What a viewer is told of use that it may not have seen."""


@dataclass(frozen=True, slots=True)
class View:
    """The view of a reader: who, at which time, and memories of which status then.

    Attributes:
        as_of: milliseconds; None: as it is now. A memory stored later is not there; of one that
            changed later, status and values are those that it had at the end of that
            millisecond. So are the edges.
        statuses: shown statuses, those of ``as_of`` if it is given; None: all three.
    """

    viewer: Viewer
    as_of: int | None = None
    statuses: frozenset[MemoryStatus] | None = None

    @property
    def shape(self) -> View:
        """The view without its ids and its time, which statements are compiled for.

        Equal shapes are one object.
        """
        return _shape(type(self), self.viewer, self.as_of is None, self.statuses)  # type: ignore[arg-type]

    def where(self, m: Table) -> Column:
        """Return the condition on a row of ``memories``; it binds ``params``."""
        terms = [_scope_condition(self.viewer, m)]
        if self.as_of is not None:
            terms.append(m.c.created_at <= AS_OF)
        if self.statuses is not None:
            terms.append(self.status(m).in_(sorted(self.statuses)))
        elif self.as_of is not None:
            terms.append(self.status(m).is_not(None))
        if self.as_of is not None or self.statuses is None or _RETRACTED in self.statuses:
            terms.append(_is_not_buried(m))
        return sa.and_(*terms)

    def unerased(self, m: Table) -> Column:
        """Return whether a memory has a text: an erased one has none at any time."""
        if self.as_of is None:
            return sa.true()
        # Erased ones are retracted: of most rows no text is read.
        return sa.or_(m.c.status != _RETRACTED, m.c.content != "")

    def edge_where(self, e: Table) -> Column:
        """Return the condition on a row of ``memory_edges``; ``where`` holds for its ends."""
        return sa.true() if self.as_of is None else e.c.created_at <= AS_OF

    def derived_where(self, d: Table) -> Column:
        """Return the condition on a row of ``memory_derivations``; ``where`` holds for its ends."""
        if self.as_of is None:
            return sa.true()
        return sa.or_(d.c.added_at.is_(None), d.c.added_at <= AS_OF)

    def status(self, m: Table) -> Column:
        """Return the status that a memory has, or had."""
        if self.as_of is None:
            return m.c.status
        h = tables.statuses.alias("h")
        was = (
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
        # Most memories are as they were: only of the others the history is read.
        return sa.case((m.c.updated_at <= AS_OF, m.c.status), else_=was)

    def value(self, column: str, m: Table) -> Column:
        """Return the present or former value of one of the ``REVISED`` columns."""
        now = m.c[column]
        if self.as_of is None:
            return now
        r = tables.revisions.alias("r")
        is_later = (r.c.memory_id == m.c.memory_id, r.c.until > AS_OF)
        first = (
            sa.select(r.c[column])
            .where(*is_later)
            .order_by(r.c.until, r.c.revision_id)
            .limit(1)
            .correlate(m)
            .scalar_subquery()
        )
        unchanged = m.c.updated_at <= AS_OF
        if column == "decay_rate":
            # A migration changed rates and left ``updated_at`` as it was.
            return sa.func.coalesce(first, now)
        if column == "valid_until":
            # None is a value: whether there is a revision has to be asked.
            changed = sa.exists().where(*is_later).correlate(m)
            return sa.case((sa.or_(unchanged, ~changed), now), else_=first)
        return sa.case((unchanged, now), else_=sa.func.coalesce(first, now))

    def confidence(self, m: Table) -> Column:
        """Return the stored confidence that a memory has, or had."""
        return self.value("confidence", m)

    def last_accessed(self, m: Table) -> Column:
        """Return the last use of a memory in milliseconds, as far as receipts show it.

        Of a use after the view's time the last one before it is looked for in the newest
        receipts before that, and in what counts as one: that it was restored, or said again.
        Without any, nobody had used the memory.
        """
        now = m.c.last_accessed_at
        if self.as_of is None:
            return now
        i, r, a = (
            tables.recall_items.alias("i"),
            tables.recalls.alias("r0"),
            tables.recalls.alias("a"),
        )
        newest = (
            sa.select(r.c.recall_id, r.c.created_at)
            .select_from(ordered(i, (r, r.c.recall_id == i.c.recall_id)))
            .where(i.c.memory_id == m.c.memory_id, i.c.recall_id < value("view_receipt"))
            .where(*_is_use(r))
            .order_by(i.c.recall_id.desc())
            .limit(_MOST_RECEIPTS)
            .correlate(m)
            .subquery("r")
        )
        same = (
            sa.select(sa.func.max(a.c.created_at))
            .where(a.c.same_as == newest.c.recall_id, *_is_use(a))
            .scalar_subquery()
        )
        h, log = tables.statuses.alias("h"), tables.audit_log.alias("l")
        uses = sa.union_all(
            sa.select(
                sa.func.max(greatest(newest.c.created_at, sa.func.coalesce(same, 0))).label("at")
            ),
            sa.select(h.c.since)
            .where(h.c.memory_id == m.c.memory_id, h.c.status == MemoryStatus.ACTIVE)
            .where(h.c.since > m.c.created_at, h.c.since < AS_OF)
            .correlate(m),
            sa.select(log.c.at)
            .where(log.c.subject == m.c.memory_id, log.c.action == "strengthen", log.c.at < AS_OF)
            .correlate(m),
        ).subquery("x")
        before = sa.select(sa.func.max(uses.c.at)).scalar_subquery()
        return sa.case((now < AS_OF, now), else_=before)

    def updated(self, m: Table) -> Column:
        """Return when a memory was changed last, or had been.

        A confirmation of what was left no trace.
        """
        now = m.c.updated_at
        if self.as_of is None:
            return now

        def last(column: Column, rows: Table) -> Column:
            query = (
                sa.select(sa.func.max(column))
                .where(rows.c.memory_id == m.c.memory_id, column <= AS_OF)
                .correlate(m)
                .scalar_subquery()
            )
            return sa.func.coalesce(query, 0)

        h, r = tables.statuses.alias("h"), tables.revisions.alias("r")
        changes = (last(h.c.since, h), last(r.c.until, r))
        return sa.case((now <= AS_OF, now), else_=greatest(m.c.created_at, *changes))

    def attributes(self, m: Table) -> Column:
        """Return the attributes of a memory; ``supersedes`` has visible memories alone."""
        stored = self._attributes_then(m)
        w = tables.memories.alias("w")
        s = sa.func.json_each(stored, sa.literal_column("'$.supersedes'")).table_valued(
            "value", name="s"
        )
        none = sa.func.count() == 0
        won = (
            sa.select(sa.case((none, sa.null()), else_=sa.func.json_group_array(w.c.memory_id)))
            .select_from(ordered(s, (w, w.c.memory_id == s.c.value)))
            .where(_scope_condition(self.viewer, w))
            .correlate(m)
            .scalar_subquery()
        )
        supersedes = sa.func.json_object("supersedes", sa.func.json(won))
        # A null in the patch takes the key away.
        return sa.case(
            (sa.func.instr(stored, '"supersedes"') == 0, stored),
            else_=sa.func.json_patch(stored, supersedes),
        )

    def _attributes_then(self, m: Table) -> Column:
        stored = self.value("attributes", m)
        if self.as_of is None:
            return stored
        # The stamp of enriching is no change of a memory, and leaves no revision.
        stamps = sa.func.json_remove(stored, "$.enriched_at", "$.enriched_names")
        return sa.case(
            (member(m.c.attributes, "enriched_at", sa.Integer()) > AS_OF, stamps), else_=stored
        )

    def memory_columns(self, m: Table) -> list[Column]:
        """Return ``MEMORY_FIELDS`` as they are, or were; they bind ``params``."""
        as_it_was = {
            "status": self.status(m),
            "attributes": self.attributes(m),
            "last_accessed_at": self.last_accessed(m),
            "updated_at": self.updated(m),
            **({} if self.viewer.sees_use else dict.fromkeys(_USE, sa.null())),
            **{name: self.value(name, m) for name in REVISED if name != "attributes"},
        }
        return [as_it_was.get(name, m.c[name]).label(name) for name in MEMORY_FIELDS]

    def edge_columns(self, e: Table) -> list[Column]:
        """Return ``EDGE_FIELDS`` as they are, or were."""
        as_it_was = {
            "partial": self.partial(e),
            "resolved_at": self.resolved_at(e),
            "resolution": self.resolution(e),
        }
        return [as_it_was.get(name, e.c[name]).label(name) for name in EDGE_FIELDS]

    def partial(self, e: Table) -> Column:
        """Return whether an Updates edge is, or was, partial."""
        return self._edge_value("partial", e)

    def resolved_at(self, e: Table) -> Column:
        """Return when a contradiction was decided, None while it is, or was, open."""
        if self.as_of is None:
            return e.c.resolved_at
        # An edge that was decided before anything was kept has its last decision alone.
        stored = self._edge_value("resolved_at", e)
        return sa.case((stored <= AS_OF, stored))

    def resolution(self, e: Table) -> Column:
        """Return how a contradiction was decided; see ``resolved_at``."""
        if self.as_of is None:
            return e.c.resolution
        return sa.case((self.resolved_at(e).is_not(None), self._edge_value("resolution", e)))

    def _edge_value(self, column: str, e: Table) -> Column:
        if self.as_of is None:
            return e.c[column]
        r = tables.edge_revisions.alias("r")
        is_later = (r.c.edge_id == e.c.edge_id, r.c.until > AS_OF)
        first = (
            sa.select(r.c[column])
            .where(*is_later)
            .order_by(r.c.until, r.c.revision_id)
            .limit(1)
            .correlate(e)
            .scalar_subquery()
        )
        return sa.case((sa.exists().where(*is_later).correlate(e), first), else_=e.c[column])

    @property
    def params(self) -> dict[str, Any]:
        """Named values for ``where``; more than one clause may bind them."""
        values = _scope_values(self.viewer) | {"view_as_of": self.as_of}
        if self.as_of is not None:
            values["view_receipt"] = _RECEIPTS + first_ulid(self.as_of)
        return values


def shape_of(view: View | None) -> View | None:
    """Return the shape of a view; None: everything is visible."""
    return None if view is None else view.shape


def params_of(view: View | None) -> dict[str, Any]:
    """Return the values that the condition of a view binds."""
    return {} if view is None else view.params


def shown_by(view: View | None, m: Table) -> Column:
    """Return the condition that a view shows a row of ``memories``; None: it shows all."""
    return sa.true() if view is None else view.where(m)


@lru_cache(maxsize=256)
def _shape(
    kind: type[View], viewer: Viewer, now: bool, statuses: frozenset[MemoryStatus] | None
) -> View:
    some = frozenset({"-"})
    same = replace(
        viewer,
        project_ids=some if viewer.project_ids else viewer.project_ids,
        session_ids=some if viewer.session_ids else viewer.session_ids,
        agent_id=None if viewer.agent_id is None else "-",
    )
    if same != viewer:
        return _shape(kind, same, now, statuses)  # type: ignore[arg-type]
    return kind(viewer, None if now else 0, statuses)


def _is_use(r: Table) -> tuple[Column, ...]:
    """Return the conditions on a receipt of a use before the view's time.

    Looks at the past are none, nor are bulletins of before they were counted.
    """
    return (
        r.c.created_at < AS_OF,
        member(r.c.request, "as_of").is_(None),
        sa.or_(r.c.purpose.is_distinct_from("bulletin"), member(r.c.request, "used", sa.Boolean())),
    )


def _is_not_buried(m: Table) -> Column:
    """Hide a memory with a tombstone until its text is removed."""
    # An erased one is retracted: of most rows neither the text nor the journal is read.
    buried = tables.audit_log.alias("buried")
    tombstone = (buried.c.subject == m.c.memory_id, buried.c.action == "erase")
    return sa.or_(
        m.c.status != _RETRACTED,
        m.c.content == "",
        ~sa.exists().where(*tombstone).correlate(m),
    )


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
        # A plain 0 would make the planner forget the other terms, and with them partial indexes.
        return m.c.scope == sa.literal_column("''")
    terms = [m.c.sensitivity.in_(sorted(rule.sensitivities)), sa.or_(*granted)]
    if rule.agent_id is not None:
        own = m.c.agent_id == value("view_agent_id")
        terms.append(sa.or_(m.c.agent_id.is_(None), own) if rule.shared else own)
    return sa.and_(*terms)


# The types that a partial index (ix_memories_knowledge) holds together.
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


def is_unexpired(m: sa.FromClause, at: str = "at") -> Column:
    """Return whether a memory is still valid at the time that is bound as ``at``."""
    return m.c.valid_until.is_(None) | (m.c.valid_until > value(at))


def is_no_item(m: sa.FromClause) -> Column:
    """Return whether a memory is no item of a program's store; see ``rules.namespaces.is_item``.

    Items of a program are not compared with other statements, and may be gone soon.
    """
    in_store = sa.func.substr(sa.func.coalesce(m.c.item_id, ""), 1, len(ROOT)) == ROOT
    return (sa.func.instr(m.c.tags, f'"{ITEM_TAG}"') == 0) | ~in_store


def replaces_whole(e: sa.FromClause) -> Column:
    """Return whether an edge replaces all of an older memory."""
    return (e.c.edge_type == EdgeType.UPDATES) & (e.c.partial == sa.false())


def by_importance(m: sa.FromClause) -> tuple[Column, ...]:
    """Return the order by importance, then the newest first."""
    return m.c.importance.desc(), m.c.created_at.desc(), m.c.pk.desc()


def memory_fields(m: sa.FromClause) -> sa.Select[Any]:
    """Select ``MEMORY_FIELDS`` as they are stored."""
    return sa.select(*(m.c[name] for name in MEMORY_FIELDS))


def beginning(m: sa.FromClause, chars: Any) -> Column:
    """Return the first characters of a memory's content."""
    return sa.func.substr(m.c.content, 1, chars)


def memories_listed(name: str = "ids") -> tuple[sa.FromClause, Any]:
    """Return memories and the join that finds them by a list of their ids, in its order."""
    f, m = listed(name, "f"), tables.memories.alias("m")
    return m, ordered(f, (m, m.c.memory_id == f.c.value))


def edge_ends(e: sa.FromClause) -> tuple[sa.FromClause, sa.FromClause, Any]:
    """Return the memories at the two ends of an edge, and the join of the three."""
    a, b = tables.memories.alias("a"), tables.memories.alias("b")
    ends = ((a, a.c.memory_id == e.c.from_memory_id), (b, b.c.memory_id == e.c.to_memory_id))
    return a, b, ordered(e, *ends)


def up_to(clearance: Sensitivity) -> list[str]:
    """Return the sensitivities that a clearance covers."""
    return [level.value for level in Sensitivity if level.level <= clearance.level]
