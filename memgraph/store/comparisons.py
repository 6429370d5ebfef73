"""Find memories to compare new ones with, and keep the outbox of those that wait for comparison.

A memory enters the outbox in the transaction that stores it, and leaves it in the transaction that
writes the result, so that neither a crash nor a failing model loses a comparison.

Every function works on the caller's snapshot or transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import (
    ComparisonStage,
    EdgeType,
    EmbeddingState,
    MemoryKind,
    MemoryStatus,
    Sensitivity,
    SourceType,
)
from memgraph.store import tables
from memgraph.store.sessions import ComparisonPlace
from memgraph.store.snapshot import InsertRows, Snapshot, Transaction
from memgraph.store.statements import (
    Column,
    among,
    as_read,
    bound,
    listed,
    ordered,
    prepared,
    row_count,
    value,
)
from memgraph.store.text_index import matching
from memgraph.store.visibility import is_unexpired, last_turn_at, stated_at, up_to


@dataclass(frozen=True, slots=True)
class ComparedMemory:
    """A fact or turn that is compared with others.

    Attributes:
        said_at: when it was said, in milliseconds; of an unknown author, when it was stored.
    """

    pk: int
    memory_id: str
    kind: str
    content: str
    said_at: int
    source_role: str | None
    captured_by: str
    source_type: str
    source_path: str | None
    content_sha256: str | None
    scope: str
    scope_id: str | None
    agent_id: str | None
    sensitivity: str

    @property
    def document(self) -> str | None:
        """The digest of the file that states it; None if it was said or typed."""
        is_said = self.source_type == SourceType.CHANNEL_TRANSCRIPT
        return None if is_said else self.content_sha256

    @property
    def place(self) -> ComparisonPlace:
        return ComparisonPlace(self.scope, self.scope_id, self.agent_id, self.sensitivity)


@dataclass(frozen=True, slots=True)
class WaitingMemory(ComparedMemory):
    """A memory in the outbox.

    Attributes:
        active: 1 if it is active and has not expired.
        entities: a JSON array of the keys of the entities that it mentions.
        known: a JSON array of the ids of memories that the model of its page saw; None: it is not
            from a page that a model has read.
    """

    attempts: int
    active: int
    entities: str
    known: str | None


_enqueue = InsertRows("memory_comparisons", ("memory_pk", "stage", "known"), or_ignore=True)


def _said_at(m: sa.FromClause, s: sa.FromClause) -> Column:
    """Return when a memory was said: never after it was stored, whatever it tells about.

    For a turn or a file that is its time, for a fact that of the last turn it was derived from.
    """
    is_dated = (m.c.kind == MemoryKind.EPISODE) | (s.c.source_type == SourceType.INGEST_FILE)
    told = sa.func.coalesce(last_turn_at(m), m.c.created_at)
    return sa.case((is_dated, stated_at(m)), else_=told)


@prepared
def _when_said() -> sa.Select[Any]:
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    query = sa.select(_said_at(m, s)).select_from(m.join(s, s.c.source_id == m.c.source_id))
    return query.where(m.c.memory_id == value("memory_id"))


def said_at(snapshot: Snapshot, memory_id: str) -> int:
    """Return when a stored memory was said, in milliseconds; see ``ComparedMemory``."""
    return int(_when_said().scalar(snapshot, memory_id=memory_id))


def _fields(m: sa.FromClause, s: sa.FromClause) -> tuple[Column, ...]:
    return (
        *(m.c.pk, m.c.memory_id, m.c.kind, m.c.content, _said_at(m, s), m.c.source_role),
        *(s.c.captured_by, s.c.source_type, s.c.source_path, s.c.content_sha256),
        *(m.c.scope, m.c.scope_id, m.c.agent_id, m.c.sensitivity),
    )


def _waiting() -> sa.Select[Any]:
    c, m, s = tables.comparisons, tables.memories.alias("m"), tables.sources.alias("s")
    n = tables.links.alias("n")
    entities = sa.select(sa.func.json_group_array(n.c.entity_pk)).where(n.c.memory_pk == m.c.pk)
    is_active = (m.c.status == MemoryStatus.ACTIVE) & is_unexpired(m)
    return (
        sa.select(
            *(*_fields(m, s), c.c.attempts, is_active),
            *(entities.correlate(m).scalar_subquery(), c.c.known),
        )
        .select_from(c.join(m, m.c.pk == c.c.memory_pk).join(s, s.c.source_id == m.c.source_id))
        .order_by(c.c.memory_pk.desc())
    )


def enqueue(
    transaction: Transaction,
    pks: Sequence[int],
    stage: ComparisonStage,
    known: str | None = None,
) -> None:
    """Queue memories for comparison; those that are queued already are left unchanged.

    Args:
        known: see ``WaitingMemory``.
    """
    _enqueue(transaction, [(pk, stage.value, known) for pk in pks])


def due(
    snapshot: Snapshot, stage: ComparisonStage, *, embedded: bool, at: int, limit: int
) -> list[WaitingMemory]:
    """Return the memories that are due for a stage, newest first.

    Args:
        embedded: leave out memories that an embedding model will embed first.
        at: the current time, in milliseconds.
    """
    c, e = tables.comparisons.c, tables.embeddings.alias("e")
    query = _waiting().where(c.next_attempt_at <= bound(at), c.stage == bound(stage.value))
    if embedded:
        untried = (e.c.state == EmbeddingState.PENDING, e.c.attempts == 0)
        query = query.where(~sa.exists().where(e.c.memory_pk == c.memory_pk, *untried))
    return snapshot.mapped(lambda row: WaitingMemory(*row), query.limit(bound(limit)))


def still_waiting(snapshot: Snapshot, pks: Sequence[int], stage: ComparisonStage) -> set[int]:
    """Return the keys that still wait for this stage, not finished by another worker."""
    c = tables.comparisons.c
    query = sa.select(c.memory_pk).where(among(c.memory_pk, pks), c.stage == bound(stage.value))
    return set(snapshot.column(query))


def move_on(transaction: Transaction, pks: Sequence[int], stage: ComparisonStage) -> None:
    """Move memories to another stage; they are due at once."""
    c = tables.comparisons
    reset = {"attempts": 0, "next_attempt_at": 0, "error_code": None}
    statement = (
        sa.update(c).where(among(c.c.memory_pk, pks)).values(stage=bound(stage.value), **reset)
    )
    transaction.write(statement)


def put_off(transaction: Transaction, pks: Sequence[int], until_ms: int, error_code: str) -> None:
    """Postpone memories until a time in milliseconds, and count the failed attempt."""
    c = tables.comparisons
    later = {"next_attempt_at": bound(until_ms), "error_code": bound(error_code)}
    update = sa.update(c).where(among(c.c.memory_pk, pks))
    transaction.write(update.values(attempts=c.c.attempts + 1, **later))


@prepared
def _is_any(failed: bool) -> sa.Select[Any]:
    c = tables.comparisons.c
    query = sa.select(c.memory_pk).limit(1)
    return query.where(c.error_code.is_not(None)) if failed else query


def is_failing(snapshot: Snapshot) -> bool:
    """Return True if any memory was postponed because a model failed."""
    return _is_any(True).row(snapshot) is not None


@prepared
def _joined_ids(marked: bool) -> sa.CompoundSelect[Any]:
    e, d, memory_id = tables.edges, tables.derivations, value("memory_id")
    types = (EdgeType.UPDATES, EdgeType.CONTRADICTS, EdgeType.RELATED_TO)
    ends = (e.c.from_memory_id, e.c.to_memory_id)
    grounds = (d.c.memory_id, d.c.derived_from_id)
    is_mark = (e.c.weight < 1.0) & e.c.resolution.is_(None) & (e.c.edge_type != types[-1])
    queries = []
    for near, far in (ends, ends[::-1]):
        query = sa.select(far).where(near == memory_id, e.c.edge_type.in_(types))
        queries.append(query if marked else query.where(~is_mark))
    queries += [sa.select(far).where(near == memory_id) for near, far in (grounds, grounds[::-1])]
    return sa.union(*(query.where(among(query.selected_columns[0], "others")) for query in queries))


def joined_ids(
    snapshot: Snapshot, memory_id: str, others: Collection[str], *, marked: bool = True
) -> set[str]:
    """Return the ids among ``others`` that need no comparison with a memory.

    One was derived from the other, or an edge of an earlier comparison or decision joins them.

    Args:
        marked: pairs with an open mark count.
    """
    statement = _joined_ids(marked)
    return set(statement.column(snapshot, memory_id=memory_id, others=sorted(others)))


def remove(transaction: Transaction, pks: Sequence[int]) -> int:
    """Remove memories from the outbox; return how many were removed."""
    c = tables.comparisons
    return transaction.write(sa.delete(c).where(among(c.c.memory_pk, pks)))


def waiting(snapshot: Snapshot) -> int:
    """Return the number of queued memories, including postponed ones."""
    return row_count(snapshot, "memory_comparisons")


def has_waiting(snapshot: Snapshot) -> bool:
    """Return True if any memory is queued; cheaper than ``waiting``."""
    return _is_any(False).row(snapshot) is not None


class ComparisonLocation(NamedTuple):
    """The place of a new memory, which selects the active ones to compare it with.

    Attributes:
        at: the time in milliseconds; memories that have expired by then are left out.
        before: select only memories with a lower key; None: all.
    """

    place: ComparisonPlace
    at: int
    before: int | None = None

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the statements below."""
        levels = up_to(Sensitivity(self.place.sensitivity))
        bound = {"sensitivities": levels, "at": self.at, "before": self.before}
        return {**self.place._asdict(), **bound}


def _compared(row: Sequence[Any]) -> ComparedMemory:
    return ComparedMemory(*row)


def _memories_in(first: Any, pk: Column) -> tuple[sa.FromClause, sa.Select[Any]]:
    """Return the alias of memories, and a query for the ``ComparedMemory`` rows of a location.

    Args:
        first: the table that is read first, with the keys of candidates.
        pk: its column with the key of the memory.
    """
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    agent_id, before = value("agent_id", sa.Text()), value("before", sa.Integer())
    query = sa.select(*_fields(m, s)).where(
        m.c.kind.in_((MemoryKind.FACT, MemoryKind.EPISODE)),
        m.c.status == MemoryStatus.ACTIVE,
        m.c.scope == value("scope"),
        m.c.scope_id.is_not_distinct_from(value("scope_id")),
        m.c.agent_id.is_(None) | m.c.agent_id.is_not_distinct_from(agent_id),
        among(m.c.sensitivity, "sensitivities"),
        is_unexpired(m),
        before.is_(None) | (m.c.pk < before),
    )
    joined = ordered(first, (m, m.c.pk == pk)).join(s, s.c.source_id == m.c.source_id)
    return m, query.select_from(joined)


@prepared
def _memories_by_text() -> sa.Select[Any]:
    f = matching("match", "rank").subquery("f")
    _, query = _memories_in(f, f.c.pk)
    return query.order_by(f.c.rank, as_read(f.c.pk)).limit(value("most"))


def memories_by_text(
    snapshot: Snapshot, match: str, location: ComparisonLocation, limit: int
) -> list[ComparedMemory]:
    """Return memories that match an FTS5 expression, best BM25 score first."""
    expression = snapshot.engine.phrases.expression(match)
    return _memories_by_text().mapped(
        _compared, snapshot, location.params, match=expression, most=limit
    )


@prepared
def _memories_of_entity() -> sa.Select[Any]:
    n = tables.links.alias("n")
    newest = sa.select(n.c.memory_pk).where(n.c.entity_pk == value("entity"))
    e = newest.order_by(n.c.memory_pk.desc()).limit(value("looked_at")).subquery("e")
    m, query = _memories_in(e, e.c.memory_pk)
    return query.order_by(m.c.pk.desc()).limit(value("most"))


def memories_of_entities(
    snapshot: Snapshot, entity_pks: Collection[int], location: ComparisonLocation, limit: int
) -> list[ComparedMemory]:
    """Return memories that mention entities, newest first, at most ``limit`` for each entity."""
    found: dict[int, ComparedMemory] = {}
    for entity in sorted(entity_pks):
        rows = _memories_of_entity().rows(
            snapshot, location.params, entity=entity, looked_at=4 * limit, most=limit
        )
        for row in rows:
            found.setdefault(row[0], _compared(row))
    return list(found.values())


@prepared
def _memories_by_key() -> sa.Select[Any]:
    k = listed("pks", "k", numbers=True)
    return _memories_in(k, k.c.value)[1].order_by(k.c.key)


@prepared
def _newest_facts() -> sa.Select[Any]:
    f = tables.memories.alias("f")
    is_there = (
        *(f.c.kind == MemoryKind.FACT, f.c.status == MemoryStatus.ACTIVE),
        *(f.c.scope == value("scope"), f.c.scope_id.is_not_distinct_from(value("scope_id"))),
    )
    newest = sa.select(f.c.pk).where(*is_there).order_by(f.c.pk.desc()).limit(value("most"))
    n = newest.subquery("n")
    m, query = _memories_in(n, n.c.pk)
    return query.order_by(m.c.pk.desc())


def newest_facts(
    snapshot: Snapshot, location: ComparisonLocation, limit: int
) -> list[ComparedMemory]:
    """Return the facts at a location among the ``limit`` newest of its scope, newest first."""
    return _newest_facts().mapped(_compared, snapshot, location.params, most=limit)


def memories_by_key(
    snapshot: Snapshot, pks: Sequence[int], location: ComparisonLocation
) -> list[ComparedMemory]:
    """Return the memories at a location among these keys, in the order of ``pks``."""
    return _memories_by_key().mapped(_compared, snapshot, location.params, pks=pks)
