"""Digests of tables: what their rows came to when a transaction of ours wrote last.

The digest of a table is the sum, modulo 2^256, of BLAKE2b over each row: it does not depend on the
order, and a transaction brings it up to date by what it changed alone (an incremental multiset
hash, Bellare and Micciancio 1997). Those of the tables in ``SEALED`` are in the journal, too, as
the ``state`` of the last entry that changed one of them; the others change without an entry.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from memgraph.store import journal
from memgraph.store.rows import compact_array
from memgraph.store.snapshot import Snapshot, Transaction, driver
from memgraph.store.sqlite import row_changes
from memgraph.store.sqlite.row_changes import Watched

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
_UPDATE: Final = (
    "INSERT INTO table_digests (name, rows, digest) VALUES (?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET rows = excluded.rows, digest = excluded.digest"
)


class Digest(NamedTuple):
    """How many rows, and the sum of their digests."""

    rows: int = 0
    total: int = 0

    def plus(self, rows: int, total: int) -> Digest:
        return Digest(self.rows + rows, (self.total + total) % _MODULUS)


def watch(connection: Any) -> None:
    """Begin to note what a driver connection changes, outside of a transaction; idempotent."""
    if not row_changes.is_watching(connection):
        row_changes.watch(connection, _watched(connection), _row_digest)


def keep(transaction: Transaction) -> str | None:
    """Bring the digests up to date with what this transaction changed.

    Returns:
        The state that the journal has to tell, where a table of ``SEALED`` changed; else None.
    """
    raw = driver(transaction)
    changes = row_changes.take(raw)
    if not changes:
        return None
    rows: dict[str, int] = defaultdict(int)
    totals: dict[str, int] = defaultdict(int)
    for name, sign, digest in changes:
        rows[name] += sign
        totals[name] += sign * int.from_bytes(digest, "big")
    known = _known(raw)
    if not known and journal.sealed_state(transaction) is None:
        # Nothing was ever counted: the rows may be of an earlier schema.
        return renew(transaction)
    changed = {
        name: known.get(name, Digest()).plus(rows[name], total)
        for name, total in totals.items()
        if rows[name] or total
    }
    _write(raw, changed)
    return _state(known | changed) if changed.keys() & SEALED.keys() else None


def renew(transaction: Transaction) -> str:
    """Make all digests anew from the rows, for whoever wrote them without triggers.

    Returns:
        The state for the journal.
    """
    raw = driver(transaction)
    if row_changes.is_watching(raw):
        row_changes.take(raw)
    found = dict(_found(raw))
    raw.execute("DELETE FROM table_digests")
    _write(raw, found)
    return _state(found)


def differing(snapshot: Snapshot) -> Iterator[tuple[str, Digest, Digest]]:
    """Yield the tables that are not as they were written last: name, then and now."""
    raw = driver(snapshot)
    known = _known(raw)
    if not known and journal.sealed_state(snapshot) is None:
        return
    for name, found in _found(raw):
        if found != known.get(name, Digest()):
            yield name, known.get(name, Digest()), found


def state(snapshot: Snapshot) -> str:
    """Return the state that the stored digests of the tables in ``SEALED`` come to."""
    return _state(_known(driver(snapshot)))


def _watched(raw: Any) -> list[Watched]:
    tables = {**SEALED, **COUNTED}
    found = [
        Watched(
            name, name, tuple(each for each in row_changes.columns_of(raw, name) if each not in out)
        )
        for name, out in tables.items()
    ]
    return [*found, Watched(*USES)]


def _found(raw: Any) -> Iterator[tuple[str, Digest]]:
    for name, table, columns in _watched(raw):
        rows = raw.execute(f"SELECT {', '.join(columns)} FROM {table}")
        yield name, _sum(_row_digest(name, *row) for row in rows)


def _sum(digests: Iterable[bytes]) -> Digest:
    found = [int.from_bytes(digest, "big") for digest in digests]
    return Digest(len(found), sum(found) % _MODULUS)


def _row_digest(name: str, *values: Any) -> bytes:
    try:
        text = compact_array((name, *values))
    except (TypeError, ValueError):
        # Bytes or a number that is none: nothing of ours is written so.
        text = repr((name, values))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def _known(raw: Any) -> dict[str, Digest]:
    rows = raw.execute("SELECT name, rows, digest FROM table_digests")
    return {name: Digest(count, _number(digest)) for name, count, digest in rows}


def _number(digest: Any) -> int:
    try:
        return int(digest, 16)
    except (TypeError, ValueError):
        return -1


def _write(raw: Any, digests: Mapping[str, Digest]) -> None:
    raw.executemany(
        _UPDATE, [(name, each.rows, f"{each.total:064x}") for name, each in digests.items()]
    )


def _state(digests: Mapping[str, Digest]) -> str:
    parts = [
        each
        for name in sorted(SEALED)
        for each in (
            name,
            digests.get(name, Digest()).rows,
            f"{digests.get(name, Digest()).total:064x}",
        )
    ]
    return hashlib.sha256(compact_array(parts).encode()).hexdigest()
