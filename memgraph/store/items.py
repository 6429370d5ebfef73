"""The memories of one task, of one project or of everybody, as items: found, ordered, counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import sqlalchemy as sa

from memgraph.model.enums import MemoryStatus, MemoryType, Scope, Sensitivity
from memgraph.model.recall import MAX_TOKEN_BUDGET
from memgraph.model.values import Memory
from memgraph.rules.filters import PAYLOAD, Operator, Order, Term
from memgraph.rules.lifecycle import KEPT_TYPES
from memgraph.rules.namespaces import ITEM_TAG, ROOT, Namespace, after, parse_item_id, within
from memgraph.store.recall import Narrowing, plain_rows
from memgraph.store.rows import MEMORY_FIELDS, columns, memory_from_row
from memgraph.store.snapshot import Snapshot, Transaction, driver
from memgraph.store.statements import Column
from memgraph.store.visibility import View

# What an item is, as SQL over a row of ``memories m``, and the conditions of a filter on it.


# Up to here every whole number is a double of its own, and the driver can bind it.
_MAX_EXACT = 2**53


def _said(name: str, types: str, otherwise: str, proper: str) -> str:
    """What the attribute ``context_item`` says, if that is of one of the JSON types and proper;
    ``null`` is None. See ``memgraph.context.items``."""
    path = f"'$.context_item.{name}'"
    said = f"(m.attributes ->> {path})"
    return (
        f"CASE WHEN json_type(m.attributes, {path}) IN ({types})"
        f" AND ({said} IS NULL OR {said} {proper}) THEN {said} ELSE {otherwise} END"
    )


ID = "coalesce(m.item_id, m.memory_id)"
_PLAIN = {"kind": "lower(m.type)", "source": ":place_source"}
VALUES = {
    "context_item_id": ID,
    "kind": _said("kind", "'text'", _PLAIN["kind"], "<> ''"),
    "source": _said("source", "'text'", _PLAIN["source"], "<> ''"),
    "timestamp": "coalesce(m.event_time, m.created_at)",
    "importance": _said(
        "importance", "'real', 'integer', 'null'", "m.importance / 100.0", "BETWEEN 0 AND 1"
    ),
    "token_cost": _said(
        "token_cost", "'integer', 'null'", "m.token_cost", f"BETWEEN 0 AND {MAX_TOKEN_BUDGET}"
    ),
}
"""The fields of an item that have an order; they bind ``place_source``."""

_COMPARISONS = {
    Operator.EQ: "IS",
    Operator.NE: "IS NOT",
    Operator.GT: ">",
    Operator.GTE: ">=",
    Operator.LT: "<",
    Operator.LTE: "<=",
}


class Conditions:
    """A filter as SQL, as far as SQL can decide it.

    Attributes:
        parts: conditions that every item meets that passes.
        params: what they bind.
        rest: the terms that are still to be asked of each row.
    """

    def __init__(self, terms: Iterable[Term]) -> None:
        self.parts: list[str] = []
        self.params: dict[str, Any] = {}
        self.rest: list[Term] = []
        for number, term in enumerate(terms):
            self._add(term, f"term_{number}")

    def _add(self, term: Term, name: str) -> None:
        operands = term.operand if isinstance(term.operand, tuple) else (term.operand,)
        exact = _exact(term, operands, name) if all(map(_binds, operands)) else None
        hint = _hint(term, name)
        if hint is not None:
            self.parts.append(hint)
            self.params[f"{name}_spelled"] = json.dumps(term.operand, ensure_ascii=False)
        if exact is None:
            self.rest.append(term)
        else:
            self.parts.append(exact)
        if exact is not None or hint is not None:
            many = isinstance(term.operand, tuple)
            self.params[name] = json.dumps(term.operand) if many else term.operand


def _exact(term: Term, operands: tuple[Any, ...], name: str) -> str | None:
    """The term, its operand bound by ``name``; None: SQL cannot decide it."""
    listed = f"IN (SELECT value FROM json_each(:{name}))"
    if term.field == "tags":
        if term.operator not in (Operator.ANY, Operator.IN):
            return None
        return f"EXISTS (SELECT 1 FROM json_each(m.tags) t WHERE t.value {listed})"
    if term.field not in VALUES:
        return None
    value = VALUES[term.field]
    if term.operator is Operator.IN:
        # NULL is in no list, and nothing is known not to be in a list that holds it.
        return None if None in operands else f"coalesce({value} {listed}, 0)"
    return f"{value} {_COMPARISONS[term.operator]} :{name}"


def _hint(term: Term, name: str) -> str | None:
    """What must hold where a text is to be equal, and costs a tenth of looking into the JSON: the
    text stands there as our own encoder spells it."""
    if term.operator is not Operator.EQ or not isinstance(term.operand, str):
        return None
    if not _binds(term.operand):
        return None
    spelled = f"instr(m.attributes, :{name}_spelled)"
    if term.field == PAYLOAD:
        return f"({spelled} OR m.content = :{name} OR instr(m.content, :{name}_spelled))"
    if term.field in _PLAIN:
        return f"({_PLAIN[term.field]} = :{name} OR {spelled})"
    return None


def _binds(operand: Any) -> bool:
    """Whether the driver hands it over as it is: SQLite ends a text of JSON at a NUL."""
    if isinstance(operand, str):
        return "\x00" not in operand
    return operand is None or (isinstance(operand, int | float) and abs(operand) <= _MAX_EXACT)


# The SQL of items in namespaces, by ranges of the index on ``item_id``. SQLite's.


_MEMORY = columns(MEMORY_FIELDS, "m")
_IN_RANGE = "m.item_id >= :first AND m.item_id < :last"
_VALID = "(m.valid_until IS NULL OR m.valid_until > :at)"
_VALID_LATER = "(n.valid_until IS NULL OR n.valid_until > :at)"


@overload
def is_no_item(m: str) -> str: ...


@overload
def is_no_item(m: sa.FromClause) -> Column: ...


def is_no_item(m: str | sa.FromClause) -> str | Column:
    """Return whether a memory is no item of a store, as ``rules.namespaces.is_item`` has it.

    What a program keeps says nothing that a statement could be compared with, and may be gone soon.
    """
    if isinstance(m, str):
        return _is_no_item_text(m)
    in_store = sa.func.substr(sa.func.coalesce(m.c.item_id, ""), 1, len(ROOT)) == ROOT
    return (sa.func.instr(m.c.tags, f'"{ITEM_TAG}"') == 0) | ~in_store


def _is_no_item_text(alias: str) -> str:
    return (
        f"(instr({alias}.tags, '\"{ITEM_TAG}\"') = 0"
        f" OR coalesce({alias}.item_id, '') NOT GLOB '{ROOT}*')"
    )


@dataclass(frozen=True, slots=True)
class NamespacePlace:
    """Whose items: those of one scope and of one agent, or none, that a reader sees.

    Attributes:
        view: of active ones alone.
    """

    view: View
    scope: str
    scope_id: str | None
    agent_id: str | None

    def where(self, alias: str = "m") -> str:
        """The condition on items under an alias; it binds ``params``."""
        return (
            f"{alias}.scope = :item_scope"
            f" AND {alias}.scope_id IS :item_scope_id AND {alias}.agent_id IS :item_agent_id"
            f" AND NOT {is_no_item(alias)} AND {self.view.text.where(alias)}"
        )

    @property
    def params(self) -> dict[str, Any]:
        return self.view.params | {
            "item_scope": self.scope,
            "item_scope_id": self.scope_id,
            "item_agent_id": self.agent_id,
        }


def standing_in_namespace(
    snapshot: Snapshot, place: NamespacePlace, item_ids: Sequence[str]
) -> list[Memory]:
    """Active items of these ids, also such as are valid no more; oldest first."""
    statement = (
        f"SELECT {_MEMORY} FROM memories m"
        f" WHERE m.item_id IN (SELECT value FROM json_each(:ids)) AND {place.where()} ORDER BY m.pk"
    )
    values = place.params | {"ids": json.dumps(list(item_ids))}
    return [memory_from_row(row) for row in driver(snapshot).execute(statement, values)]


def newest(
    snapshot: Snapshot,
    place: NamespacePlace,
    prefix: Namespace,
    *,
    at: int,
    limit: int | None = None,
    offset: int = 0,
) -> list[int]:
    """Keys of the items in a namespace and below it, the last written first; None: of all."""
    first, last = within(prefix)
    statement = (
        f"SELECT m.pk FROM memories m WHERE {_IN_RANGE} AND {place.where()} AND {_VALID}"
        # Of two that share a name, since one was restored, the later one counts.
        " AND NOT EXISTS (SELECT 1 FROM memories n WHERE n.item_id = m.item_id AND n.pk > m.pk"
        f" AND {place.where('n')} AND {_VALID_LATER})"
        " ORDER BY m.updated_at DESC, m.pk DESC LIMIT :limit OFFSET :offset"
    )
    values = place.params | {"first": first, "last": last, "at": at, "offset": offset}
    rows = driver(snapshot).execute(statement, values | {"limit": -1 if limit is None else limit})
    return [pk for (pk,) in rows]


def by_key(snapshot: Snapshot, keys: Sequence[int]) -> list[Memory]:
    """The memories of these keys, in the order of the keys given."""
    rows = driver(snapshot).execute(
        f"SELECT m.pk, {_MEMORY} FROM memories m WHERE m.pk IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    )
    found = {row[0]: memory_from_row(row[1:]) for row in rows}
    return [found[key] for key in keys]


def prolong(transaction: Transaction, memory_ids: Sequence[str], *, at: int) -> None:
    """Let items stay their whole time again, those of them that stand and expire still.

    What was read is older than this transaction: they may have been put again meanwhile, for ever.
    """
    driver(transaction).execute(
        "UPDATE memories AS m SET valid_until = :at + (m.attributes ->> '$.ttl')"
        " WHERE m.memory_id IN (SELECT value FROM json_each(:ids)) AND m.status = 'active'"
        " AND m.attributes ->> '$.ttl' IS NOT NULL AND m.valid_until > :at",
        {"at": at, "ids": json.dumps(list(memory_ids))},
    )


def namespaces(
    snapshot: Snapshot, place: NamespacePlace, prefix: Namespace, *, at: int
) -> list[Namespace]:
    """Every namespace at or below a prefix that holds an item: one look at the index for each."""
    first, last = within(prefix)
    statement = (
        f"SELECT m.item_id FROM memories m WHERE {_IN_RANGE} AND {place.where()} AND {_VALID}"
        " ORDER BY m.item_id LIMIT 1"
    )
    values = place.params | {"last": last, "at": at}
    found: list[Namespace] = []
    while row := driver(snapshot).execute(statement, values | {"first": first}).fetchone():
        namespace, _ = parse_item_id(row[0])
        found.append(namespace)
        first = after(namespace)
    return found


ROWS_AT_A_TIME = 200

# Two looks into an index each of its own; with an OR, SQLite walks through the whole scope.
_OF_ID = (
    "SELECT pk FROM memories WHERE item_id = :item_id UNION ALL"
    " SELECT pk FROM memories WHERE memory_id = :item_id AND item_id IS NULL"
)
_KEPT_TYPES = ", ".join(f"'{each.value}'" for each in sorted(KEPT_TYPES))
# As ``policy.eviction`` has it.
_CONFIRMED = (
    "EXISTS (SELECT 1 FROM audit_log a WHERE a.subject = m.memory_id AND a.action = 'confirm')"
)
_EVICTION_ORDER = (
    f"m.type IN ({_KEPT_TYPES}) OR {_CONFIRMED},"
    f" coalesce({VALUES['importance']}, 0), {VALUES['timestamp']}, {ID}, m.pk"
)


class Found(NamedTuple):
    """An item by the name that its owner has for it, and the memory that it is."""

    item_id: str
    memory_id: str


@dataclass(frozen=True, slots=True)
class Place:
    """Whose items: one scope's that a reader sees, as they are at a time.

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
    def where(self) -> str:
        """The condition on a row of ``memories``; it binds ``params``."""
        if self.scope is Scope.GLOBAL:
            # The plus keeps the index on content hashes out: walking it from end to end, each row
            # of it fetched from somewhere else, takes four times as long as a plain scan.
            here = ["m.scope = 'global'", "+m.kind <> 'episode'"]
        else:
            # The second and the last repeat the condition of ix_memories_scope word for word.
            here = [
                f"m.scope = '{self.scope.value}'",
                "m.scope <> 'global'",
                "m.scope_id = :place_scope_id",
                "m.kind <> 'episode'",
            ]
        return " AND ".join(
            [
                *here,
                "m.status = 'active'",
                "(m.valid_until IS NULL OR m.valid_until > :place_at)",
                self.view.text.where("m"),
                # A program's store is no part of a tier: it neither fills nor empties one.
                is_no_item("m"),
            ]
        )

    @property
    def params(self) -> dict[str, Any]:
        """Named values for ``where`` and for what is selected."""
        return self.view.params | {
            "place_scope_id": self.scope_id,
            "place_source": self.source,
            "place_at": self.at,
        }


def find(snapshot: Snapshot, place: Place, item_id: str) -> list[Memory]:
    """The memories that are the item of an id: one, as long as nobody stored two; newest first."""
    rows = snapshot.execute(
        sa.text(
            f"SELECT {columns(MEMORY_FIELDS, 'm')} FROM ({_OF_ID}) f"
            f" CROSS JOIN memories m ON m.pk = f.pk WHERE {place.where} ORDER BY m.pk DESC"
        ),
        place.params | {"item_id": item_id},
    )
    return [memory_from_row(row) for row in rows]


def count(snapshot: Snapshot, place: Place) -> int:
    """How many items there are."""
    statement = f"SELECT count(*) FROM memories m WHERE {place.where}"
    [(number,)] = driver(snapshot).execute(statement, place.params)
    return int(number)


def select(
    snapshot: Snapshot,
    place: Place,
    terms: Sequence[Term],
    order: Order,
    limit: int | None = None,
) -> tuple[Iterator[Memory], list[Term]]:
    """Memories in the order of the items that they are.

    Returns:
        The memories, read as they are asked for, and the terms that are still to be asked of each;
        while there are such terms, ``limit`` is left to the caller.
    """
    condition = Conditions(terms)
    value = VALUES[order.field]
    direction = "DESC" if order.descending else "ASC"
    statement = (
        f"SELECT m.pk FROM memories m WHERE {' AND '.join([place.where, *condition.parts])}"
        f" ORDER BY {value} IS NULL, {value} {direction}, {ID}, m.pk"
    )
    if limit is not None and not condition.rest:
        statement += f" LIMIT {limit}"
    # The keys alone: rows that nobody comes to read are never read.
    rows = driver(snapshot).execute(statement, place.params | condition.params)
    return _in_order(snapshot, [pk for (pk,) in rows]), condition.rest


def next_to_evict(
    snapshot: Snapshot, place: Place, number: int, *, but: str | None = None
) -> list[Found]:
    """So many items, the first to go first, without one; see ``memgraph.rules.lifecycle``."""
    rows = driver(snapshot).execute(
        f"SELECT {ID}, m.memory_id FROM memories m WHERE {place.where} AND {ID} IS NOT :but"
        f" ORDER BY {_EVICTION_ORDER} LIMIT {number}",
        place.params | {"but": but},
    )
    return [Found(*row) for row in rows]


def some(
    snapshot: Snapshot, place: Place, *, after: int, through: int, number: int
) -> list[tuple[int, str]]:
    """Keys and ids of the next memories that are items, by key, up to a last one."""
    rows = driver(snapshot).execute(
        f"SELECT m.pk, m.memory_id FROM memories m WHERE {place.where}"
        f" AND m.pk > :after AND m.pk <= :through ORDER BY m.pk LIMIT {number}",
        place.params | {"after": after, "through": through},
    )
    return [tuple(row) for row in rows]


def last_key(snapshot: Snapshot) -> int:
    """The key of the newest memory; 0: there is none."""
    [(last,)] = driver(snapshot).execute("SELECT max(pk) FROM memories")
    return int(last or 0)


def _in_order(snapshot: Snapshot, pks: Sequence[int]) -> Iterator[Memory]:
    for start in range(0, len(pks), ROWS_AT_A_TIME):
        rows = driver(snapshot).execute(
            f"SELECT {columns(MEMORY_FIELDS, 'm')} FROM json_each(?) f"
            " CROSS JOIN memories m ON m.pk = f.value ORDER BY f.key",
            (json.dumps(pks[start : start + ROWS_AT_A_TIME]),),
        )
        yield from map(memory_from_row, rows)


def is_id(text: Any) -> bool:
    """Whether it may be the id of an item: the driver takes no lone surrogate."""
    if not isinstance(text, str):
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


# What a task, a project and everybody hold, read along indexes. Turns of talk are no items.


_AT = "coalesce(m.event_time, m.created_at)"
_OF_A_SCOPE = (
    "m.scope = :tier_scope AND m.scope_id = :tier_scope_id AND m.status = 'active'"
    " AND m.scope <> 'global' AND m.kind <> 'episode'"
)
_BY_IMPORTANCE = "m.importance DESC, m.created_at DESC, m.pk DESC"
# Two indexes hold all types between them: one of four, and one by type.
_KNOWLEDGE = "'Fact', 'Identity', 'Observation', 'Event'"
_KNOWLEDGE_INDEX, _TYPE_INDEX = "ix_memories_knowledge", "ix_memories_type_status"
_OTHERS = tuple(each for each in MemoryType if f"'{each.value}'" not in _KNOWLEDGE)


def first_and_last(
    snapshot: Snapshot, narrowing: Narrowing, scope: Scope, scope_id: str, limit: int
) -> list[Memory]:
    """What a task or project holds, in time order; of more the first half and the last half.

    Args:
        limit: memories at most, >= 2.
    """
    condition = f"{_OF_A_SCOPE} AND {narrowing.where('m')}"
    select = f"SELECT {_columns(narrowing)} FROM memories m"
    values = _of_scope(scope, scope_id)
    # Hardly ever does one hold more: then its ends are looked for.
    found = _memories(
        snapshot,
        narrowing,
        f"{select} WHERE {condition} ORDER BY {_AT}, m.pk LIMIT {limit + 1:d}",
        values,
    )
    if len(found) <= limit:
        return found
    ends = " UNION ".join(
        f"SELECT pk FROM (SELECT m.pk FROM memories m WHERE {condition}"
        f" ORDER BY {_AT} {way}, m.pk {way} LIMIT {limit // 2:d})"
        for way in ("ASC", "DESC")
    )
    return _memories(
        snapshot,
        narrowing,
        f"{select} WHERE m.pk IN ({ends}) ORDER BY {_AT}, m.pk",
        values,
    )


def most_important(
    snapshot: Snapshot,
    narrowing: Narrowing,
    scope: Scope,
    scope_id: str | None,
    limit: int,
) -> list[Memory]:
    """What a scope holds, the most important first, then the newest."""
    where = narrowing.where("m")
    if scope is Scope.GLOBAL:
        return _of_everybody(snapshot, narrowing, where, limit)
    return _memories(
        snapshot,
        narrowing,
        f"SELECT {_columns(narrowing)} FROM memories m WHERE {_OF_A_SCOPE} AND {where}"
        f" ORDER BY {_BY_IMPORTANCE} LIMIT {limit:d}",
        _of_scope(scope, scope_id),
    )


def by_ids(snapshot: Snapshot, narrowing: Narrowing, memory_ids: Collection[str]) -> list[Memory]:
    """Those of ``memory_ids`` that pass, in their order."""
    if not memory_ids:
        return []
    return _memories(
        snapshot,
        narrowing,
        f"SELECT {_columns(narrowing)} FROM json_each(:tier_ids) f"
        f" CROSS JOIN memories m ON m.memory_id = f.value WHERE {narrowing.where('m')}",
        {"tier_ids": json.dumps(list(memory_ids))},
    )


def _of_everybody(snapshot: Snapshot, narrowing: Narrowing, where: str, limit: int) -> list[Memory]:
    active = f"m.status = 'active' AND m.kind <> 'episode' AND m.scope = 'global' AND {where}"
    # Left to itself the planner gathers the four types one by one and sorts them all.
    ways = [
        (_KNOWLEDGE_INDEX, f"m.type IN ({_KNOWLEDGE})"),
        *((_TYPE_INDEX, f"m.type = '{each.value}'") for each in _OTHERS),
    ]
    legs = " UNION ALL ".join(
        "SELECT * FROM (SELECT m.pk, m.importance, m.created_at"
        f" FROM memories m INDEXED BY {index}"
        f" WHERE {of_type} AND {active} ORDER BY {_BY_IMPORTANCE} LIMIT {limit:d})"
        for index, of_type in ways
    )
    return _memories(
        snapshot,
        narrowing,
        f"SELECT {_columns(narrowing)} FROM memories m WHERE m.pk IN"
        f" (SELECT m.pk FROM ({legs}) m ORDER BY {_BY_IMPORTANCE} LIMIT {limit:d})"
        f" ORDER BY {_BY_IMPORTANCE}",
        {},
    )


def _of_scope(scope: Scope, scope_id: str | None) -> dict[str, Any]:
    return {"tier_scope": scope.value, "tier_scope_id": scope_id}


def _columns(narrowing: Narrowing) -> str:
    return narrowing.view.text.memory_columns("m")


def _memories(
    snapshot: Snapshot, narrowing: Narrowing, statement: str, values: dict[str, Any]
) -> list[Memory]:
    rows = plain_rows(snapshot, statement, narrowing.params | values)
    return [memory_from_row(row) for row in rows]


# What became of a memory that was promoted.


_OF = (
    "SELECT m.memory_id, m.status FROM memories m"
    " WHERE m.item_id = ? AND m.scope = ? AND m.scope_id IS ? AND EXISTS (SELECT 1"
    " FROM memory_derivations d WHERE d.memory_id = m.memory_id AND d.derived_from_id = ?)"
    " ORDER BY m.pk DESC"
)


def item_id_of(memory_id: str) -> str:
    """The item id of what a memory is promoted to: there can be only one such in a place.

    It is made from the memory's own id, and does not tell that to those who may not see it.
    """
    return f"promoted-{hashlib.sha256(memory_id.encode()).hexdigest()[:32]}"


def of(
    snapshot: Snapshot, memory_id: str, scope: Scope, scope_id: str | None
) -> list[tuple[str, MemoryStatus]]:
    """Ids and statuses of what a memory was promoted to in one place, the latest first.

    Anybody may give an item such an id, or put another item in its place: what was promoted is
    derived from the memory, too.
    """
    values = (item_id_of(memory_id), scope.value, scope_id, memory_id)
    found = driver(snapshot).execute(_OF, values)
    return [(one, MemoryStatus(status)) for one, status in found]


# What one agent keeps for itself: which of its items are stored, and which are to go.


_ITEMS = (
    "SELECT m.item_id, m.memory_id FROM memories m"
    " WHERE m.agent_id = ? AND m.status = 'active'"
    " AND m.item_id IN (SELECT value FROM json_each(?)) ORDER BY m.pk DESC"
)


@dataclass(frozen=True, slots=True)
class Own:
    """Which of an agent's memories; None leaves nothing out.

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


def items(snapshot: Snapshot, agent_id: str, item_ids: Collection[str]) -> dict[str, str]:
    """Memory ids of the agent's active memories that bear these item ids, by item id."""
    found = driver(snapshot).execute(_ITEMS, (agent_id, json.dumps(list(item_ids))))
    # Of two the older one, which comes last.
    return dict(found.fetchall())


def items_of_agent(snapshot: Snapshot, own: Own) -> list[str]:
    """Return the ids of what was not taken back, oldest first."""
    terms = [
        "m.agent_id = :agent_id",
        "m.status IN ('active', 'superseded')",
        "m.sensitivity IN (SELECT value FROM json_each(:sensitivities))",
    ]
    shown = [each.value for each in Sensitivity if each.level <= own.clearance.level]
    values: dict[str, Any] = {"agent_id": own.agent_id, "sensitivities": json.dumps(shown)}
    for term, value in (
        ("m.created_at < :before", own.before),
        ("m.scope = :scope", own.scope),
        ("(m.scope <> 'session' OR m.scope_id = :session_id)", own.session_id),
        ("(m.scope <> 'project' OR m.scope_id = :project_id)", own.project_id),
    ):
        if value is not None:
            terms.append(term)
            values[term.rpartition(":")[2].rstrip(")")] = value
    if own.memory_ids is not None:
        terms.append("m.memory_id IN (SELECT value FROM json_each(:memory_ids))")
        values["memory_ids"] = json.dumps(own.memory_ids)
    statement = f"SELECT m.memory_id FROM memories m WHERE {' AND '.join(terms)} ORDER BY m.pk"
    return [memory_id for (memory_id,) in driver(snapshot).execute(statement, values)]
