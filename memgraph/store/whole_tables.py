"""Digests of whole tables, to detect changes made outside memgraph.

The digest of a table is the sum, modulo 2^256, of BLAKE2b over each row. It does not depend on the
order of rows, and a transaction updates it from its changed rows alone (an incremental multiset
hash, Bellare and Micciancio 1997). The digests of the tables in ``SEALED`` are also part of the
journal, as the ``state`` of the last entry that changed one of them; other tables change without an
entry.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.store import journal, tables
from memgraph.store.rows import compact_array
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import Column, prepared, replacing

SEALED: Final[Mapping[str, frozenset[str]]] = {
    "memories": frozenset(
        {"pk", "orchestrator_id", "search_terms", "access_count", "last_accessed_at"}
    ),
    "memory_sources": frozenset(),
    "memory_status": frozenset({"status_id"}),
    "memory_derivations": frozenset(),
    "memory_supports": frozenset(),
    "memory_edges": frozenset(),
    "memory_edge_states": frozenset(),
}
"""The tables whose every change is journalled, with the columns to ignore: internal
keys, columns that are compared elsewhere, and counts of uses."""
COUNTED: Final[Mapping[str, frozenset[str]]] = {
    "bulletins": frozenset(),
    "entities": frozenset({"mention_count"}),
    "entity_aliases": frozenset(),
    "ingest_files": frozenset(),
    "memory_entities": frozenset(),
    "recall_items": frozenset(),
    "recalls": frozenset(),
}
"""The tables that may change without a journal entry, with the columns to ignore. Their digests
are stored only in ``table_digests``."""
UNCOUNTED: Final[Mapping[str, str]] = {
    "alembic_version": "the schema itself is compared",
    "audit_log": "a hash chain with an anchor protects it",
    "ingest_document_keys": "names by which files link to one another, read from the files",
    "ingest_parts": "the progress of a file that is being ingested",
    "ingest_pending_links": "links that wait for their target; a link made is journalled",
    "job_runs": "the history of jobs: at worst a job runs again, or later",
    "memory_comparisons": "an outbox: at worst a memory is not compared, or compared again",
    "memory_embeddings": "computed from the texts; vectors are checked with their index",
    "memory_metadata": "facts about the file, checked when it is opened",
    "memory_vector_changes": "the changes of vectors, for the caches of processes",
    "sessions": "the progress of consolidation: at worst a conversation is read again",
    "table_digests": "it contains the digests",
}
"""The tables without a digest, and the reason. The values of ``status_id`` are ignored
in all digests, because only their order matters. Indexes (full text, vectors) have their
own checks."""
_MODULUS: Final = 1 << 256
_PAGE: Final = 2_000


class DigestedColumns(NamedTuple):
    """The columns of a table that make up its digest."""

    table: str
    columns: tuple[str, ...]


class TableDigest(NamedTuple):
    """The digest of a table: the number of rows, and the sum of the rows' digests."""

    rows: int = 0
    total: int = 0

    def plus(self, rows: int, total: int) -> TableDigest:
        return TableDigest(self.rows + rows, (self.total + total) % _MODULUS)


def update(transaction: Transaction) -> str | None:
    """Update the digests with the row changes of this transaction.

    Returns:
        The state to record in the journal if a table in ``SEALED`` changed, or else None. It is the
        last recorded one if the stored digests do not fit that: a forged digest is never sealed.
    """
    differences = _differences(transaction)
    if not differences:
        return None
    written = stored(transaction)
    changed = {
        name: written.get(name, TableDigest()).plus(*difference)
        for name, difference in differences.items()
        if any(difference)
    }
    _write(transaction, changed)
    if not changed.keys() & SEALED.keys():
        return None
    sealed = journal.sealed_state(transaction)
    is_forged = sealed is not None and sealed != _state(written)
    return sealed if is_forged else _state(written | changed)


def _differences(transaction: Transaction) -> dict[str, TableDigest]:
    """Return the change of each digest by the transaction since the last call."""
    rows: dict[str, int] = defaultdict(int)
    totals: dict[str, int] = defaultdict(int)
    for name, sign, digest in transaction.engine.row_changes(transaction):
        rows[name] += sign
        totals[name] += sign * int.from_bytes(digest, "big")
    return {name: TableDigest(rows[name], total % _MODULUS) for name, total in totals.items()}


def renew(transaction: Transaction) -> str:
    """Recompute all digests from the rows, after writes without triggers.

    Returns:
        The state to record in the journal.
    """
    transaction.engine.row_changes(transaction)
    digests = dict(_current_digests(transaction))
    transaction.write(sa.delete(tables.table_digests))
    _write(transaction, digests)
    return _state(digests)


def differing(snapshot: Snapshot) -> Iterator[tuple[str, TableDigest, TableDigest]]:
    """Yield (name, stored digest, current digest) for each digest that does not match its rows."""
    written = stored(snapshot)
    for name, current in _current_digests(snapshot):
        if current != written.get(name, TableDigest()):
            yield name, written.get(name, TableDigest()), current


def state(snapshot: Snapshot) -> str:
    """Return the hash over the stored digests of the tables in ``SEALED``."""
    return _state(stored(snapshot))


def digested_columns(columns: Callable[[str], tuple[str, ...]]) -> list[DigestedColumns]:
    """Return the columns of each digest.

    Args:
        columns: takes a table name; returns the names of its columns in the order of creation.
    """
    return [
        DigestedColumns(table, tuple(column for column in columns(table) if column not in ignored))
        for table, ignored in {**SEALED, **COUNTED}.items()
    ]


def _current_digests(snapshot: Snapshot) -> Iterator[tuple[str, TableDigest]]:
    for table, columns in digested_columns(lambda name: snapshot.engine.columns(snapshot, name)):
        # Name the columns that exist, not those of the models: the schema may be damaged.
        listed: list[Column] = [sa.column(name) for name in columns]
        digest = TableDigest()
        for rows in snapshot.pages(sa.select(*listed).select_from(sa.table(table)), _PAGE):
            numbers = [int.from_bytes(row_digest(table, *row), "big") for row in rows]
            digest = digest.plus(len(numbers), sum(numbers))
        yield table, digest


def row_digest(name: str, *values: Any) -> bytes:
    """Return the digest of a row for the table digest ``name``."""
    try:
        text = compact_array((name, *values))
    except (TypeError, ValueError):
        # Bytes, NaN or infinity: memgraph never writes these.
        text = repr((name, values))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


@prepared
def _digests() -> sa.Select[Any]:
    digests = tables.table_digests.c
    return sa.select(digests.name, digests.rows, digests.digest)


@prepared
def _put_digest() -> sa.Insert:
    return replacing(tables.table_digests)


def stored(snapshot: Snapshot) -> dict[str, TableDigest]:
    """Return the stored digests, as of memgraph's last transaction."""
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
    _put_digest().write_all(transaction, rows)


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
