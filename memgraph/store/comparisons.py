"""Find facts to compare new facts with, and keep the outbox of facts that wait for comparison.

A fact enters the outbox in the transaction that stores it, and leaves it in the transaction that
writes the result, so that neither a crash nor a failing model loses a comparison.

Every function works on the caller's snapshot or transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import (
    ComparisonStage,
    EdgeType,
    MemoryKind,
    MemoryStatus,
    Sensitivity,
)
from memgraph.store import tables
from memgraph.store.sessions import ComparisonPlace
from memgraph.store.snapshot import InsertRows, Snapshot, Transaction
from memgraph.store.statements import (
    Column,
    among,
    as_read,
    least,
    listed,
    ordered,
    prepared,
    row_count,
    value,
)
from memgraph.store.text_index import matching
from memgraph.store.visibility import (
    View,
    happened_at,
    is_no_item,
    is_unexpired,
    params_of,
    shape_of,
    up_to,
)


class ComparedFact(NamedTuple):
    """An active fact that is a candidate for comparison with a new fact.

    Attributes:
        time: the earlier of its event time and its time of storage, in milliseconds.
        twin: 1 if it has exactly the agent and the sensitivity of the new fact.
        seen: 1 if the view shows it.
    """

    pk: int
    memory_id: str
    content: str
    type: str
    confidence: float
    decay_rate: float
    time: int
    captured_by: str
    source_type: str
    source_path: str | None
    content_sha256: str | None
    agent_id: str | None
    twin: int
    seen: int


class WaitingFact(NamedTuple):
    """A fact in the outbox, with its place and source.

    Attributes:
        active: 1 if it is active and has not expired.
        entities: a JSON array of the keys of the entities that it mentions.
        roles: a JSON array of the speakers of the turns that it was derived from.
    """

    pk: int
    stage: str
    attempts: int
    memory_id: str
    active: int
    content: str
    time: int
    scope: str
    scope_id: str | None
    agent_id: str | None
    sensitivity: str
    captured_by: str
    source_type: str
    source_path: str | None
    content_sha256: str | None
    entities: str
    roles: str


_enqueue = InsertRows("memory_comparisons", ("memory_pk", "stage"), or_ignore=True)


def _said_at(m: sa.FromClause) -> Column:
    return least(happened_at(m), m.c.created_at)


def _source_of(s: sa.FromClause) -> tuple[Column, ...]:
    return (s.c.captured_by, s.c.source_type, s.c.source_path, s.c.content_sha256)


def _waiting() -> sa.Select[Any]:
    """Select the columns of ``WaitingFact``, oldest first."""
    c, m, s = tables.comparisons, tables.memories.alias("m"), tables.sources.alias("s")
    n, d, t = tables.links.alias("n"), tables.derivations.alias("d"), tables.memories.alias("t")
    entities = sa.select(sa.func.json_group_array(n.c.entity_pk)).where(n.c.memory_pk == m.c.pk)
    roles = (
        sa.select(sa.func.json_group_array(t.c.source_role.distinct()))
        .select_from(d.join(t, t.c.memory_id == d.c.derived_from_id))
        .where(d.c.memory_id == m.c.memory_id, t.c.kind == MemoryKind.EPISODE)
    )
    return (
        sa.select(
            *(c.c.memory_pk, c.c.stage, c.c.attempts, m.c.memory_id),
            (m.c.status == MemoryStatus.ACTIVE) & is_unexpired(m),
            *(m.c.content, _said_at(m), m.c.scope, m.c.scope_id, m.c.agent_id, m.c.sensitivity),
            *_source_of(s),
            *(query.correlate(m).scalar_subquery() for query in (entities, roles)),
        )
        .select_from(c.join(m, m.c.pk == c.c.memory_pk).join(s, s.c.source_id == m.c.source_id))
        .order_by(c.c.memory_pk)
    )


def enqueue(transaction: Transaction, pks: Sequence[int], stage: ComparisonStage) -> None:
    """Queue facts for comparison; facts that are queued already are left unchanged."""
    _enqueue(transaction, [(pk, stage.value) for pk in pks])


@prepared
def _due() -> sa.Select[Any]:
    c = tables.comparisons.c
    is_due = (c.next_attempt_at <= value("at"), among(c.stage, "stages"))
    return _waiting().where(*is_due).limit(value("limit"))


def due(
    snapshot: Snapshot, stages: Collection[ComparisonStage], *, at: int, limit: int
) -> list[WaitingFact]:
    """Return the facts that are due for one of these stages, oldest first.

    Args:
        at: the current time, in milliseconds.
    """
    return _due().mapped(WaitingFact._make, snapshot, at=at, stages=sorted(stages), limit=limit)


@prepared
def _waiting_facts() -> sa.Select[Any]:
    return _waiting().where(among(tables.comparisons.c.memory_pk, "pks"))


def waiting_facts(snapshot: Snapshot, pks: Sequence[int], *, at: int) -> list[WaitingFact]:
    """Return the queued facts among these memories, oldest first."""
    return _waiting_facts().mapped(WaitingFact._make, snapshot, at=at, pks=pks)


@prepared
def _still_waiting() -> sa.Select[Any]:
    c = tables.comparisons.c
    return sa.select(c.memory_pk).where(among(c.memory_pk, "pks"), c.stage == value("stage"))


def still_waiting(snapshot: Snapshot, pks: Sequence[int], stage: ComparisonStage) -> set[int]:
    """Return the keys that still wait for this stage, not finished by another worker."""
    return set(_still_waiting().column(snapshot, pks=pks, stage=stage.value))


@prepared
def _move_on() -> sa.Update:
    c = tables.comparisons
    reset = {"attempts": 0, "next_attempt_at": 0, "error_code": None}
    return sa.update(c).where(among(c.c.memory_pk, "pks")).values(stage=value("to"), **reset)


def move_on(transaction: Transaction, pks: Sequence[int], stage: ComparisonStage) -> None:
    """Move facts to another stage; they are due at once."""
    _move_on().write(transaction, pks=pks, to=stage.value)


@prepared
def _put_off() -> sa.Update:
    c = tables.comparisons
    later = {"next_attempt_at": value("until"), "error_code": value("code")}
    update = sa.update(c).where(among(c.c.memory_pk, "pks"))
    return update.values(attempts=c.c.attempts + 1, **later)


def put_off(transaction: Transaction, pks: Sequence[int], until_ms: int, error_code: str) -> None:
    """Postpone facts until a time in milliseconds, and count the failed attempt."""
    _put_off().write(transaction, pks=pks, until=until_ms, code=error_code)


@prepared
def _is_any(failed: bool) -> sa.Select[Any]:
    c = tables.comparisons.c
    query = sa.select(c.memory_pk).limit(1)
    return query.where(c.error_code.is_not(None)) if failed else query


def is_failing(snapshot: Snapshot) -> bool:
    """Return True if any fact was postponed because a model failed."""
    return _is_any(True).row(snapshot) is not None


@prepared
def _joined_ids() -> sa.CompoundSelect[Any]:
    e, memory_id = tables.edges, value("memory_id")
    ends = (e.c.from_memory_id, e.c.to_memory_id)
    types = (EdgeType.UPDATES, EdgeType.CONTRADICTS, EdgeType.RELATED_TO)
    return sa.union(
        *(
            sa.select(far).where(near == memory_id, e.c.edge_type.in_(types), among(far, "others"))
            for near, far in (ends, ends[::-1])
        )
    )


def joined_ids(snapshot: Snapshot, memory_id: str, others: Collection[str]) -> set[str]:
    """Return the ids among ``others`` that an earlier comparison linked with a fact."""
    return set(_joined_ids().column(snapshot, memory_id=memory_id, others=sorted(others)))


@prepared
def _remove() -> sa.Delete:
    c = tables.comparisons
    return sa.delete(c).where(among(c.c.memory_pk, "pks"))


def remove(transaction: Transaction, pks: Sequence[int]) -> int:
    """Remove facts from the outbox; return how many were removed."""
    return _remove().write(transaction, pks=pks)


def waiting(snapshot: Snapshot) -> int:
    """Return the number of queued facts, including postponed ones."""
    return row_count(snapshot, "memory_comparisons")


def has_waiting(snapshot: Snapshot) -> bool:
    """Return True if any fact is queued; cheaper than ``waiting``."""
    return _is_any(False).row(snapshot) is not None


class FactLocation(NamedTuple):
    """The place of a new fact, which selects the active facts to compare it with.

    Attributes:
        at: the time in milliseconds; facts that have expired by then are left out.
        view: the view of the writer; None: everything is visible.
        before: select only facts with a lower key; None: all.
    """

    place: ComparisonPlace
    at: int
    view: View | None = None
    before: int | None = None

    @property
    def shape(self) -> View | None:
        """Return the view's shape, for which statements are compiled."""
        return shape_of(self.view)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the statements below."""
        levels = up_to(Sensitivity(self.place.sensitivity))
        bound = {"sensitivities": levels, "at": self.at, "before": self.before}
        return {**self.place._asdict(), **bound, **params_of(self.view)}


def _facts_in(first: Any, pk: Column, view: View | None) -> tuple[sa.FromClause, sa.Select[Any]]:
    """Return the alias of memories, and a query for the ``ComparedFact`` rows of a location.

    Args:
        first: the table that is read first, with the keys of candidates.
        pk: its column with the key of the memory.
        view: the view of the writer; None: everything is visible.
    """
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    agent_id, before = value("agent_id", sa.Text()), value("before", sa.Integer())
    is_own = m.c.agent_id.is_not_distinct_from(agent_id)
    query = sa.select(
        *(m.c.pk, m.c.memory_id, m.c.content, m.c.type, m.c.confidence, m.c.decay_rate),
        _said_at(m),
        *_source_of(s),
        m.c.agent_id,
        is_own & (m.c.sensitivity == value("sensitivity")),
        sa.literal(1) if view is None else view.where(m),
    ).where(
        *(m.c.kind == MemoryKind.FACT, is_no_item(m), m.c.status == MemoryStatus.ACTIVE),
        m.c.scope == value("scope"),
        m.c.scope_id.is_not_distinct_from(value("scope_id")),
        m.c.agent_id.is_(None) | is_own,
        among(m.c.sensitivity, "sensitivities"),
        is_unexpired(m),
        before.is_(None) | (m.c.pk < before),
    )
    joined = ordered(first, (m, m.c.pk == pk)).join(s, s.c.source_id == m.c.source_id)
    return m, query.select_from(joined)


def frequencies(snapshot: Snapshot, stems: Collection[str], *, exact: int) -> dict[str, int]:
    """Return the number of memories with each stem, without stems that do not occur.

    Args:
        exact: numbers up to this are exact; higher ones may miss the newest memories.
    """
    if not stems:
        return {}
    counts = snapshot.engine.texts.frequencies(snapshot, stems)
    frequent = {stem: count for stem, count in counts.items() if count > exact}
    others = set(stems) - set(frequent)
    return frequent | (snapshot.engine.phrases.frequencies(snapshot, others) if others else {})


@prepared
def _facts_by_text(view: View | None) -> sa.Select[Any]:
    f = matching("match", "rank").subquery("f")
    _, query = _facts_in(f, f.c.pk, view)
    return query.order_by(f.c.rank, as_read(f.c.pk)).limit(value("most"))


def facts_by_text(
    snapshot: Snapshot, match: str, location: FactLocation, limit: int
) -> list[ComparedFact]:
    """Return facts that match an FTS5 expression, best BM25 score first."""
    expression = snapshot.engine.phrases.expression(match)
    return _facts_by_text(location.shape).mapped(
        ComparedFact._make, snapshot, location.params, match=expression, most=limit
    )


@prepared
def _facts_of_entity(view: View | None) -> sa.Select[Any]:
    n = tables.links.alias("n")
    newest = sa.select(n.c.memory_pk).where(n.c.entity_pk == value("entity"))
    e = newest.order_by(n.c.memory_pk.desc()).limit(value("looked_at")).subquery("e")
    m, query = _facts_in(e, e.c.memory_pk, view)
    return query.order_by(m.c.pk.desc()).limit(value("most"))


def facts_of_entities(
    snapshot: Snapshot, entity_pks: Collection[int], location: FactLocation, limit: int
) -> list[ComparedFact]:
    """Return facts that mention entities, newest first for each entity, at most ``limit`` each."""
    statement, values = _facts_of_entity(location.shape), location.params
    facts: dict[int, ComparedFact] = {}
    for entity in sorted(entity_pks):
        rows = statement.rows(snapshot, values, entity=entity, looked_at=4 * limit, most=limit)
        for fact in map(ComparedFact._make, rows):
            facts.setdefault(fact.pk, fact)
    return list(facts.values())


@prepared
def _facts_by_key(view: View | None) -> sa.Select[Any]:
    k = listed("pks", "k", numbers=True)
    return _facts_in(k, k.c.value, view)[1].order_by(k.c.key)


def facts_by_key(
    snapshot: Snapshot, pks: Sequence[int], location: FactLocation
) -> list[ComparedFact]:
    """Return the facts at a location among these memories, in the order of ``pks``."""
    return _facts_by_key(location.shape).mapped(
        ComparedFact._make, snapshot, location.params, pks=pks
    )
