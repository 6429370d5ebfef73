"""The memories of one task, of one project or of everybody, as items: found, ordered, counted."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import MemoryKind, MemoryStatus, Scope, Sensitivity
from memgraph.model.recall import MAX_TOKEN_BUDGET
from memgraph.model.values import Memory
from memgraph.rules.filters import PAYLOAD, FilterTerm, Operator, SortOrder
from memgraph.rules.lifecycle import KEPT_TYPES
from memgraph.rules.namespaces import Namespace, after, parse_item_id, within
from memgraph.store import tables
from memgraph.store.rows import memory_from_row
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import (
    Column,
    among,
    each,
    listed,
    member,
    ordered,
    prepared,
    unindexed,
    value,
)
from memgraph.store.visibility import (
    View,
    happened_at,
    is_no_item,
    is_unexpired,
    memory_fields,
    up_to,
)

# What an item is, over a row of ``memories``, and the conditions of a filter on it.


# Up to here every whole number is a double of its own, and the driver can bind it.
_MAX_EXACT = 2**53


def _id(m: sa.FromClause) -> Column:
    return sa.func.coalesce(m.c.item_id, m.c.memory_id)


_PLAIN: dict[str, Callable[[sa.FromClause], Column]] = {
    "kind": lambda m: sa.func.lower(m.c.type),
    "source": lambda m: value("place_source"),  # noqa: ARG005
}
_FIELDS: dict[str, Callable[[sa.FromClause], Column]] = {
    "context_item_id": _id,
    "kind": lambda m: _item_member(m, "kind", ["text"], _PLAIN["kind"](m)),
    "source": lambda m: _item_member(m, "source", ["text"], _PLAIN["source"](m)),
    "timestamp": happened_at,
    "importance": lambda m: _item_member(
        m, "importance", ["real", "integer", "null"], m.c.importance.op("/")(sa.literal(100.0)), 1
    ),
    "token_cost": lambda m: _item_member(
        m, "token_cost", ["integer", "null"], m.c.token_cost, MAX_TOKEN_BUDGET
    ),
}
"""The fields of an item that have an order, over ``memories``; they bind ``place_source``."""


def _item_member(
    m: sa.FromClause, name: str, types: Sequence[str], default: Column, maximum: int | None = None
) -> Column:
    """Return a member of the attribute ``context_item`` if it is valid, else a default.

    It is of one of the JSON types, and a text not empty, a number in 0..``maximum``; ``null`` is
    None. See ``memgraph.context.items``.
    """
    type_ = None if maximum is None else sa.Numeric(asdecimal=False)
    stated = member(m.c.attributes, f"context_item.{name}", type_)
    proper = stated != "" if maximum is None else stated.between(sa.literal(0), sa.literal(maximum))
    its_type = sa.func.json_type(m.c.attributes, f"$.context_item.{name}")
    return sa.case((its_type.in_(types) & (stated.is_(None) | proper), stated), else_=default)


_COMPARISONS: dict[Operator, Callable[[Column, Column], Column]] = {
    Operator.EQ: lambda one, other: one.is_not_distinct_from(other),
    Operator.NE: lambda one, other: one.is_distinct_from(other),
    Operator.GT: operator.gt,
    Operator.GTE: operator.ge,
    Operator.LT: operator.lt,
    Operator.LTE: operator.le,
}


class _BoundTerm(NamedTuple):
    """A term of a filter, as it is bound.

    Attributes:
        name: of the value that is the operand; of the operand as JSON with ``_spelled`` behind it.
        decided: all of it.
        hinted: what must hold where a text is to be equal, and costs a tenth of looking into the
            JSON: the text stands there as our own encoder spells it.
    """

    name: str
    field: str
    operator: Operator
    decided: bool
    hinted: bool

    def conditions(self, m: sa.FromClause) -> list[Column]:
        """Return conditions on a row of ``memories`` that every matching item meets."""
        hint = [self._hint(m)] if self.hinted else []
        return [*hint, self._exact(m)] if self.decided else hint

    def _exact(self, m: sa.FromClause) -> Column:
        if self.field == "tags":
            t = each(m.c.tags, "t")
            return sa.exists().where(among(t.c.value, self.name)).correlate(m)
        field = _FIELDS[self.field](m)
        if self.operator is Operator.IN:
            # NULL is in no list, and nothing is known not to be in a list that holds it.
            return sa.func.coalesce(among(field, self.name), sa.false())
        return _COMPARISONS[self.operator](field, value(self.name))

    def _hint(self, m: sa.FromClause) -> Column:
        operand, spelled = value(self.name), value(f"{self.name}_spelled")
        in_attributes = sa.func.instr(m.c.attributes, spelled) > 0
        if self.field != PAYLOAD:
            return (_PLAIN[self.field](m) == operand) | in_attributes
        in_content = sa.func.instr(m.c.content, spelled) > 0
        return sa.or_(in_attributes, m.c.content == operand, in_content)


class ItemFilter:
    """A filter, as far as the database can decide it.

    Attributes:
        asked: what the database is asked.
        params: the values for that.
        rest: the terms that are still to be asked of each row.
    """

    def __init__(self, terms: Iterable[FilterTerm]) -> None:
        every = [(term, _bound_term(term, f"term_{number}")) for number, term in enumerate(terms)]
        self.asked = tuple(bound for _, bound in every if bound.decided or bound.hinted)
        self.rest = [term for term, bound in every if not bound.decided]
        self.params: dict[str, Any] = {}
        for term, bound in every:
            if bound.hinted:
                spelled = json.dumps(term.operand, ensure_ascii=False)
                self.params[f"{bound.name}_spelled"] = spelled
            many = isinstance(term.operand, tuple)
            self.params[bound.name] = json.dumps(term.operand) if many else term.operand


def _bound_term(term: FilterTerm, name: str) -> _BoundTerm:
    operands = term.operand if isinstance(term.operand, tuple) else (term.operand,)
    binds = all(map(_binds, operands))
    if term.field == "tags":
        decided = term.operator in (Operator.ANY, Operator.IN)
    else:
        has_null = term.operator is Operator.IN and None in operands
        decided = term.field in _FIELDS and not has_null
    is_text = term.operator is Operator.EQ and isinstance(term.operand, str)
    hinted = is_text and (term.field == PAYLOAD or term.field in _PLAIN)
    return _BoundTerm(name, term.field, term.operator, decided and binds, hinted and binds)


def _binds(operand: Any) -> bool:
    """Return True when the driver hands it over as it is: SQLite ends a text of JSON at a NUL."""
    if isinstance(operand, str):
        return "\x00" not in operand
    return operand is None or (isinstance(operand, int | float) and abs(operand) <= _MAX_EXACT)


# Items in namespaces, by ranges of the index on ``item_id``.


@dataclass(frozen=True, slots=True)
class NamespacePlace:
    """The items of one scope and one agent, or none, that a reader sees.

    Attributes:
        view: of active ones alone.
    """

    view: View
    scope: str
    scope_id: str | None
    agent_id: str | None

    @property
    def params(self) -> dict[str, Any]:
        """Return the values that ``_in_namespace`` binds."""
        return self.view.params | {
            "item_scope": self.scope,
            "item_scope_id": self.scope_id,
            "item_agent_id": self.agent_id,
        }


def _in_namespace(view: View, m: sa.FromClause) -> Column:
    """Return the condition on items; it binds ``NamespacePlace.params``."""
    return sa.and_(
        m.c.scope == value("item_scope"),
        m.c.scope_id.is_not_distinct_from(value("item_scope_id")),
        m.c.agent_id.is_not_distinct_from(value("item_agent_id")),
        ~is_no_item(m),
        view.where(m),
    )


def _is_in_range(m: sa.FromClause) -> Column:
    return (m.c.item_id >= value("first")) & (m.c.item_id < value("last"))


@prepared
def _active_in_namespace(view: View) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    query = memory_fields(m).where(among(m.c.item_id, "ids"), _in_namespace(view, m))
    return query.order_by(m.c.pk)


def active_in_namespace(
    snapshot: Snapshot, place: NamespacePlace, item_ids: Sequence[str]
) -> list[Memory]:
    """Return active items of these ids, expired ones too, oldest first."""
    return _active_in_namespace(place.view.shape).mapped(
        memory_from_row, snapshot, place.params, ids=item_ids
    )


@prepared
def _newest(view: View) -> sa.Select[Any]:
    m, n = tables.memories.alias("m"), tables.memories.alias("n")
    # Of two that share a name, since one was restored, the later one counts.
    later = sa.exists().where(
        n.c.item_id == m.c.item_id, n.c.pk > m.c.pk, _in_namespace(view, n), is_unexpired(n)
    )
    return (
        sa.select(m.c.pk)
        .where(_is_in_range(m), _in_namespace(view, m), is_unexpired(m), ~later.correlate(m))
        .order_by(m.c.updated_at.desc(), m.c.pk.desc())
        .limit(value("limit"))
        .offset(value("offset"))
    )


def newest(
    snapshot: Snapshot,
    place: NamespacePlace,
    prefix: Namespace,
    *,
    at: int,
    limit: int | None = None,
    offset: int = 0,
) -> list[int]:
    """Return keys of the items in a namespace and below it, the last written first.

    Args:
        limit: None: all of them.
    """
    first, last = within(prefix)
    return _newest(place.view.shape).column(
        snapshot,
        place.params,
        first=first,
        last=last,
        at=at,
        limit=-1 if limit is None else limit,
        offset=offset,
    )


def by_key(snapshot: Snapshot, keys: Sequence[int]) -> list[Memory]:
    """Return the memories of these keys, in the order of the keys."""
    return _of_keys().mapped(memory_from_row, snapshot, keys=keys)


@prepared
def _prolong() -> sa.Update:
    m, at = tables.memories, value("at")
    ttl = member(m.c.attributes, "ttl", sa.Integer())
    expires = (m.c.status == MemoryStatus.ACTIVE, ttl.is_not(None), m.c.valid_until > at)
    prolonged = sa.update(m).values(valid_until=at.op("+")(ttl))
    return prolonged.where(among(m.c.memory_id, "ids"), *expires)


def prolong(transaction: Transaction, memory_ids: Sequence[str], *, at: int) -> None:
    """Extend the lifetime of items that are active and expire.

    What was read is older than this transaction: they may have been put again meanwhile, for ever.
    """
    _prolong().write(transaction, at=at, ids=memory_ids)


@prepared
def _first_in_range(view: View) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    query = sa.select(m.c.item_id).where(_is_in_range(m), _in_namespace(view, m), is_unexpired(m))
    return query.order_by(m.c.item_id).limit(1)


def namespaces(
    snapshot: Snapshot, place: NamespacePlace, prefix: Namespace, *, at: int
) -> list[Namespace]:
    """Return every namespace at or below a prefix that contains an item.

    It costs one look at the index for each.
    """
    first, last = within(prefix)
    statement = _first_in_range(place.view.shape)
    values = place.params | {"last": last, "at": at}
    result: list[Namespace] = []
    while item_id := statement.scalar(snapshot, values, first=first):
        namespace, _ = parse_item_id(item_id)
        result.append(namespace)
        first = after(namespace)
    return result


ROWS_AT_A_TIME = 200


class NamedItem(NamedTuple):
    """An item by the name that its owner has for it, and the memory that it is."""

    item_id: str
    memory_id: str


@dataclass(frozen=True, slots=True)
class ItemPlace:
    """The items of one scope that a reader sees, at a time.

    Attributes:
        source: what items say of where they belong, where they do not say themselves.
        at: milliseconds; what is no longer valid then is no item.
    """

    scope: Scope
    scope_id: str | None
    source: str
    view: View
    at: int

    @property
    def params(self) -> dict[str, Any]:
        """Return the values that ``_in_place`` and ``_FIELDS`` bind."""
        return self.view.params | {
            "place_scope_id": self.scope_id,
            "place_source": self.source,
            "place_at": self.at,
        }


def _in_place(view: View, scope: Scope, m: sa.FromClause) -> Column:
    """Return the condition on a row of ``memories``; it binds ``ItemPlace.params``."""
    if scope is Scope.GLOBAL:
        # The index on content hashes is kept out: walking it from end to end, each row of it
        # fetched from somewhere else, takes four times as long as a plain scan.
        here = [m.c.scope == Scope.GLOBAL, unindexed(m.c.kind) != MemoryKind.EPISODE.value]
    else:
        # The second and the last repeat the condition of ix_memories_scope word for word.
        here = [
            m.c.scope == scope,
            m.c.scope != Scope.GLOBAL,
            m.c.scope_id == value("place_scope_id"),
            m.c.kind != MemoryKind.EPISODE,
        ]
    return sa.and_(
        *here,
        m.c.status == MemoryStatus.ACTIVE,
        is_unexpired(m, "place_at"),
        view.where(m),
        # A program's store is no part of a tier: it neither fills nor empties one.
        is_no_item(m),
    )


@prepared
def _find(view: View, scope: Scope) -> sa.Select[Any]:
    of, m, item_id = tables.memories, tables.memories.alias("m"), value("item_id")
    # Two looks into an index each of its own; with an OR, SQLite walks through the whole scope.
    f = sa.union_all(
        sa.select(of.c.pk).where(of.c.item_id == item_id),
        sa.select(of.c.pk).where(of.c.memory_id == item_id, of.c.item_id.is_(None)),
    ).subquery("f")
    query = memory_fields(m).select_from(ordered(f, (m, m.c.pk == f.c.pk)))
    return query.where(_in_place(view, scope, m)).order_by(m.c.pk.desc())


def find(snapshot: Snapshot, place: ItemPlace, item_id: str) -> list[Memory]:
    """Return the memories that are the item of an id, newest first.

    It is one, as long as nobody stored two.
    """
    statement = _find(place.view.shape, place.scope)
    return statement.mapped(memory_from_row, snapshot, place.params, item_id=item_id)


@prepared
def _count(view: View, scope: Scope) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    return sa.select(sa.func.count()).select_from(m).where(_in_place(view, scope, m))


def count(snapshot: Snapshot, place: ItemPlace) -> int:
    """Return how many items there are."""
    return int(_count(place.view.shape, place.scope).scalar(snapshot, place.params))


@prepared
def _select(
    view: View, scope: Scope, terms: tuple[_BoundTerm, ...], order: SortOrder, limit: int | None
) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    by = _FIELDS[order.field](m)
    query = sa.select(m.c.pk).where(_in_place(view, scope, m))
    query = query.where(*(condition for term in terms for condition in term.conditions(m)))
    query = query.order_by(by.is_(None), by.desc() if order.descending else by, _id(m), m.c.pk)
    return query.limit(limit)


def select(
    snapshot: Snapshot,
    place: ItemPlace,
    terms: Sequence[FilterTerm],
    order: SortOrder,
    limit: int | None = None,
) -> tuple[Iterator[Memory], list[FilterTerm]]:
    """Return memories in the order of the items that they are.

    Returns:
        The memories, read as they are asked for, and the terms that are still to be asked of each;
        while there are such terms, ``limit`` is left to the caller.
    """
    condition = ItemFilter(terms)
    bound = None if condition.rest else limit
    statement = _select(place.view.shape, place.scope, condition.asked, order, bound)
    # The keys alone: rows are read only when they are iterated over.
    keys = statement.column(snapshot, place.params | condition.params)
    return _in_order(snapshot, keys), condition.rest


@prepared
def _next_to_evict(view: View, scope: Scope) -> sa.Select[Any]:
    m, log = tables.memories.alias("m"), tables.audit_log.alias("a")
    # As ``rules.lifecycle`` has it.
    confirmed = sa.exists().where(log.c.subject == m.c.memory_id, log.c.action == "confirm")
    importance = sa.func.coalesce(_FIELDS["importance"](m), 0)
    return (
        sa.select(_id(m), m.c.memory_id)
        .where(_in_place(view, scope, m), _id(m).is_distinct_from(value("but")))
        .order_by(
            m.c.type.in_(sorted(KEPT_TYPES)) | confirmed.correlate(m),
            importance,
            happened_at(m),
            _id(m),
            m.c.pk,
        )
        .limit(value("number"))
    )


def next_to_evict(
    snapshot: Snapshot, place: ItemPlace, number: int, *, but: str | None = None
) -> list[NamedItem]:
    """Return so many items, the first to go first, without one; see ``rules.lifecycle``."""
    statement = _next_to_evict(place.view.shape, place.scope)
    return [
        NamedItem(*row) for row in statement.rows(snapshot, place.params, number=number, but=but)
    ]


@prepared
def _next_items(view: View, scope: Scope, number: int) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    query = sa.select(m.c.pk, m.c.memory_id).where(_in_place(view, scope, m))
    query = query.where(m.c.pk > value("after"), m.c.pk <= value("through"))
    return query.order_by(m.c.pk).limit(number)


def next_items(
    snapshot: Snapshot, place: ItemPlace, *, after: int, through: int, number: int
) -> list[tuple[int, str]]:
    """Return keys and ids of the next memories that are items, by key, up to a last one."""
    statement = _next_items(place.view.shape, place.scope, number)
    return statement.rows(snapshot, place.params, after=after, through=through)


@prepared
def _of_keys() -> sa.Select[Any]:
    f, m = listed("keys", "f", numbers=True), tables.memories.alias("m")
    query = memory_fields(m).select_from(ordered(f, (m, m.c.pk == f.c.value)))
    return query.order_by(f.c.key)


def _in_order(snapshot: Snapshot, pks: Sequence[int]) -> Iterator[Memory]:
    for start in range(0, len(pks), ROWS_AT_A_TIME):
        yield from map(
            memory_from_row, _of_keys().rows(snapshot, keys=pks[start : start + ROWS_AT_A_TIME])
        )


def is_id(text: Any) -> bool:
    """Return True when it may be the id of an item: the driver takes no lone surrogate."""
    if not isinstance(text, str):
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


# What became of a memory that was promoted.


def item_id_of(memory_id: str) -> str:
    """Return the item id of the promoted copy of a memory: there is only one in a place.

    It is made from the memory's own id, and does not tell that to those who may not see it.
    """
    return f"promoted-{hashlib.sha256(memory_id.encode()).hexdigest()[:32]}"


@prepared
def _promotions_of() -> sa.Select[Any]:
    m, d = tables.memories.alias("m"), tables.derivations.alias("d")
    derived = (d.c.memory_id == m.c.memory_id, d.c.derived_from_id == value("memory_id"))
    return (
        sa.select(m.c.memory_id, m.c.status)
        .where(
            m.c.item_id == value("item_id"),
            m.c.scope == value("scope"),
            m.c.scope_id.is_not_distinct_from(value("scope_id")),
            sa.exists().where(*derived).correlate(m),
        )
        .order_by(m.c.pk.desc())
    )


def promotions_of(
    snapshot: Snapshot, memory_id: str, scope: Scope, scope_id: str | None
) -> list[tuple[str, MemoryStatus]]:
    """Return ids and statuses of the promoted copies of a memory in one place, latest first.

    Anybody may give an item such an id, or put another item in its place: what was promoted is
    derived from the memory, too.
    """
    rows = _promotions_of().rows(
        snapshot,
        item_id=item_id_of(memory_id),
        scope=scope.value,
        scope_id=scope_id,
        memory_id=memory_id,
    )
    return [(promoted_id, MemoryStatus(status)) for promoted_id, status in rows]


# What one agent keeps for itself: which of its items are stored, and which are to go.


@dataclass(frozen=True, slots=True)
class AgentMemoryFilter:
    """A filter of an agent's own memories; None leaves nothing out.

    Attributes:
        clearance: no more sensitive than this.
        before: stored earlier than this, milliseconds.
        session_id, project_id: of session and project scopes only this one's.
    """

    agent_id: str
    clearance: Sensitivity
    before: int | None = None
    scope: Scope | None = None
    memory_ids: tuple[str, ...] | None = None
    session_id: str | None = None
    project_id: str | None = None


@prepared
def _items() -> sa.Select[Any]:
    m = tables.memories
    own = (m.c.agent_id == value("agent_id"), m.c.status == MemoryStatus.ACTIVE)
    query = sa.select(m.c.item_id, m.c.memory_id).where(*own, among(m.c.item_id, "item_ids"))
    return query.order_by(m.c.pk.desc())


def items(snapshot: Snapshot, agent_id: str, item_ids: Collection[str]) -> dict[str, str]:
    """Return memory ids of the agent's active memories that bear these item ids, by item id."""
    rows = _items().rows(snapshot, agent_id=agent_id, item_ids=item_ids)
    # Of two the older one, which comes last.
    return dict(rows)


@prepared
def _items_of_agent(names: frozenset[str]) -> sa.Select[Any]:
    m = tables.memories
    narrower = {
        "before": m.c.created_at < value("before"),
        "scope": m.c.scope == value("scope"),
        "session_id": (m.c.scope != Scope.SESSION) | (m.c.scope_id == value("session_id")),
        "project_id": (m.c.scope != Scope.PROJECT) | (m.c.scope_id == value("project_id")),
        "memory_ids": among(m.c.memory_id, "memory_ids"),
    }
    return (
        sa.select(m.c.memory_id)
        .where(
            m.c.agent_id == value("agent_id"),
            m.c.status.in_([MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED]),
            among(m.c.sensitivity, "sensitivities"),
            *(condition for name, condition in narrower.items() if name in names),
        )
        .order_by(m.c.pk)
    )


def items_of_agent(snapshot: Snapshot, own: AgentMemoryFilter) -> list[str]:
    """Return the ids of the agent's memories that are not retracted, oldest first."""
    narrower = {
        "before": own.before,
        "scope": None if own.scope is None else own.scope.value,
        "session_id": own.session_id,
        "project_id": own.project_id,
        "memory_ids": own.memory_ids,
    }
    names = frozenset(name for name, bound in narrower.items() if bound is not None)
    return _items_of_agent(names).column(
        snapshot, narrower, agent_id=own.agent_id, sensitivities=up_to(own.clearance)
    )
