"""Digests of tables, as of the last transaction of memgraph.

The digest of a table is the sum, modulo 2^256, of BLAKE2b over each row: it does not depend on the
order, and a transaction brings it up to date by what it changed alone (an incremental multiset
hash, Bellare and Micciancio 1997). Those of the tables in ``SEALED`` are in the journal, too, as
the ``state`` of the last entry that changed one of them; the others change without an entry.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.store import journal, tables
from memgraph.store.rows import compact_array
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import Column, CompiledStatement, prepared, replacing, value

SEALED: Final[Mapping[str, frozenset[str]]] = {
    "memories": frozenset(
        {"pk", "orchestrator_id", "search_terms", "access_count", "last_accessed_at"}
    ),
    "memory_sources": frozenset(),
    "memory_status": frozenset({"status_id"}),
    "memory_derivations": frozenset(),
    "memory_supports": frozenset(),
    "memory_edges": frozenset(),
    "memory_edge_revisions": frozenset({"revision_id"}),
    "memory_revisions": frozenset({"revision_id"}),
    "source_trust": frozenset(),
}
"""Tables whose every change is journalled, each with the columns that do not count: keys that an
import gives anew, what is compared elsewhere, and what is used without a change."""
COUNTED: Final[Mapping[str, frozenset[str]]] = {
    "bulletins": frozenset(),
    "entities": frozenset({"mention_count"}),
    "entity_aliases": frozenset(),
    "event_failures": frozenset(),
    "events": frozenset(),
    "idempotency_keys": frozenset(),
    "ingest_document_keys": frozenset(),
    "ingest_files": frozenset(),
    "ingest_parts": frozenset(),
    "ingest_pending_links": frozenset(),
    "job_runs": frozenset(),
    "memory_entities": frozenset(),
    "recall_items": frozenset(),
    "recalls": frozenset(),
    "sessions": frozenset(),
}
"""Tables that may change without an entry of the journal: their digests stand nowhere else."""
USES: Final = (
    "memory_uses",
    "memories",
    ("pk", "memory_id", "orchestrator_id", "access_count", "last_accessed_at"),
)
"""Of memories what changes as they are read, and what an import gives anew."""
UNCOUNTED: Final[Mapping[str, str]] = {
    "alembic_version": "the schema itself is compared",
    "audit_log": "it is a chain of its own, with an anchor",
    "echo_lines": "when lines were handed out; at worst an echo is taken for news",
    "echo_pending": "lines on their way into echo_lines",
    "event_cursors": "how far subscribers have come; moved by each delivery",
    "leases": "who works on what; they run out by themselves",
    "memory_comparisons": "an outbox: what is missing is not compared, what is extra again",
    "memory_embeddings": "made from the texts; vectors are compared with their index",
    "memory_metadata": "facts about the file, checked when it is opened",
    "memory_vector_changes": "which vectors changed, for the copies that processes keep",
    "table_digests": "it is what the others are compared with",
}
"""Tables without a digest, and why. Of ``status_id`` and ``revision_id`` the order counts alone.
Indexes (full text, vectors) have checks of their own."""
_MODULUS: Final = 1 << 256


class DigestedColumns(NamedTuple):
    """Columns of a table that count together, under a name."""

    name: str
    table: str
    columns: tuple[str, ...]


class TableDigest(NamedTuple):
    """The digest of a table: the number of rows, and the sum of their digests."""

    rows: int = 0
    total: int = 0

    def plus(self, rows: int, total: int) -> TableDigest:
        return TableDigest(self.rows + rows, (self.total + total) % _MODULUS)


def update(transaction: Transaction) -> str | None:
    """Bring the digests up to date with what this transaction changed.

    Returns:
        The state that the journal has to tell, where a table of ``SEALED`` changed; else None.
    """
    differences = _differences(transaction)
    if not differences:
        return None
    written = stored(transaction)
    if not written and journal.sealed_state(transaction) is None:
        # Nothing was ever counted: the rows may be of an earlier schema.
        return renew(transaction)
    changed = {
        name: written.get(name, TableDigest()).plus(*difference)
        for name, difference in differences.items()
        if any(difference)
    }
    _write(transaction, changed)
    return _state(written | changed) if changed.keys() & SEALED.keys() else None


def _differences(transaction: Transaction) -> dict[str, TableDigest]:
    """Return by how much the transaction changed each digest."""
    rows: dict[str, int] = defaultdict(int)
    totals: dict[str, int] = defaultdict(int)
    for name, sign, digest in transaction.engine.row_changes(transaction):
        rows[name] += sign
        totals[name] += sign * int.from_bytes(digest, "big")
    return {name: TableDigest(rows[name], total % _MODULUS) for name, total in totals.items()}


def followed(
    transaction: Transaction, digests: Mapping[str, TableDigest]
) -> dict[str, TableDigest]:
    """Return digests with what the transaction changed since it was asked last."""
    differences = _differences(transaction)
    return {
        name: digests.get(name, TableDigest()).plus(*differences.get(name, TableDigest()))
        for name in {*digests, *differences}
    }


def unexplained(transaction: Transaction, digests: Mapping[str, TableDigest]) -> Iterator[str]:
    """Yield the tables whose stored digests are not ``followed``; ``audit_log`` where the journal
    has another state than they.
    """
    after, expected = stored(transaction), followed(transaction, digests)
    for name in {*after, *expected}:
        if expected.get(name, TableDigest()) != after.get(name, TableDigest()):
            yield name
    if journal.sealed_state(transaction) not in (None, _state(after)):
        yield "audit_log"


def renew(transaction: Transaction) -> str:
    """Recompute all digests from the rows, after writes without triggers.

    Returns:
        The state for the journal.
    """
    transaction.engine.row_changes(transaction)
    digests = dict(_found(transaction))
    _forget().write(transaction)
    _write(transaction, digests)
    return _state(digests)


def differing(snapshot: Snapshot) -> Iterator[tuple[str, TableDigest, TableDigest]]:
    """Yield the tables that are not as they were written last: name, then and now."""
    written = stored(snapshot)
    if not written and journal.sealed_state(snapshot) is None:
        return
    for name, current in _found(snapshot):
        if current != written.get(name, TableDigest()):
            yield name, written.get(name, TableDigest()), current


def state(snapshot: Snapshot) -> str:
    """Return the combined state of the stored digests of the tables in ``SEALED``."""
    return _state(stored(snapshot))


def digested_columns(columns: Callable[[str], tuple[str, ...]]) -> list[DigestedColumns]:
    """Return the columns that are digested.

    Args:
        columns: a table to the names of its columns in the order in which they were made.
    """
    tables = {**SEALED, **COUNTED}
    digested = [
        DigestedColumns(name, name, tuple(column for column in columns(name) if column not in out))
        for name, out in tables.items()
    ]
    return [*digested, DigestedColumns(*USES)]


@prepared
def _rows_of(table: str, columns: tuple[str, ...]) -> sa.Select[Any]:
    # Not those of the models: the schema may be damaged.
    listed: list[Column] = [sa.column(name) for name in columns]
    return sa.select(*listed).select_from(sa.table(table))


def _found(snapshot: Snapshot) -> Iterator[tuple[str, TableDigest]]:
    for name, table, columns in digested_columns(
        lambda table: snapshot.engine.columns(snapshot, table)
    ):
        rows = _rows_of(table, columns).cursor(snapshot)
        yield name, _sum(row_digest(name, *row) for row in rows)


def _sum(digests: Iterable[bytes]) -> TableDigest:
    numbers = [int.from_bytes(digest, "big") for digest in digests]
    return TableDigest(len(numbers), sum(numbers) % _MODULUS)


def row_digest(name: str, *values: Any) -> bytes:
    """Return the digest of a row that is counted under a name."""
    try:
        text = compact_array((name, *values))
    except (TypeError, ValueError):
        # Bytes or a number that is none: nothing of ours is written so.
        text = repr((name, values))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


@prepared
def _digests() -> sa.Select[Any]:
    digests = tables.table_digests.c
    return sa.select(digests.name, digests.rows, digests.digest)


@prepared
def _forget() -> sa.Delete:
    return sa.delete(tables.table_digests)


@prepared
def _put() -> sa.Insert:
    return replacing(tables.table_digests)


def stored(snapshot: Snapshot) -> dict[str, TableDigest]:
    """Return the digests as of the last transaction of memgraph."""
    rows = _digests().rows(snapshot)
    return {name: TableDigest(count, _number(digest)) for name, count, digest in rows}


def _number(digest: Any) -> int:
    try:
        return int(digest, 16)
    except (TypeError, ValueError):
        return -1


def _write(transaction: Transaction, digests: Mapping[str, TableDigest]) -> None:
    rows = (
        {"name": name, "rows": digest.rows, "digest": f"{digest.total:064x}"}
        for name, digest in digests.items()
    )
    _put().write_all(transaction, rows)


def _state(digests: Mapping[str, TableDigest]) -> str:
    parts = [
        part
        for name in sorted(SEALED)
        for part in (
            name,
            digests.get(name, TableDigest()).rows,
            f"{digests.get(name, TableDigest()).total:064x}",
        )
    ]
    return hashlib.sha256(compact_array(parts).encode()).hexdigest()


Columns = tuple[tuple[str, str], ...]
"""Columns, each with its field: its own name, or the id of what its key refers to."""
_REFERRED: Final = {"memory_id": "memories", "entity_id": "entities"}


def _table(name: str) -> sa.Table:
    return tables.memories.metadata.tables[name]


@prepared
def rows(table: str, columns: Columns, order: tuple[str, ...], state: str | None) -> sa.Select[Any]:
    """Select the rows of a table by the columns of an order.

    Args:
        state: only rows of this state; None: all.
    """
    t = _table(table).alias("t")
    joined: sa.FromClause = t
    selected = []
    for column, field in columns:
        if field == column:
            selected.append(t.c[column])
            continue
        other = _table(_REFERRED[field])
        joined = joined.join(other, other.c.pk == t.c[column])
        selected.append(other.c[field])
    query = sa.select(*selected).select_from(joined).order_by(*(t.c[name] for name in order))
    return query if state is None else query.where(t.c.state == state)


@prepared
def insertion(table: str, columns: Columns, extra: tuple[str, ...], state: str | None) -> sa.Insert:
    """Insert a row by the names of its fields.

    Args:
        extra: further columns, given by their names.
        state: of every row; None: it is one of the fields.
    """
    values = {column: _stored(column, field) for column, field in columns}
    values |= {name: value(name) for name in extra}
    if state is not None:
        values["state"] = sa.literal(state)
    return sa.insert(_table(table)).values(values).inline()


def _stored(column: str, field: str) -> Column:
    if field == column:
        return value(column)
    other = _table(_REFERRED[field])
    key = sa.select(other.c.pk).where(other.c[field] == value(field)).scalar_subquery()
    # An unknown id becomes a key that no row has: the engine would choose one for NULL.
    return sa.func.coalesce(key, -1)


def insert(
    transaction: Transaction, statement: CompiledStatement, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows, all or none.

    Raises:
        ConstraintViolated: the database refuses one; the transaction goes on.
    """
    engine = transaction.engine
    engine.insert_each(transaction, statement.text(engine), rows)
