"""What an erasure writes: rows without their texts, clean indexes, its own entries in the journal.

Rows stay where something refers to them; their texts go. With ``secure_delete`` what SQLite frees
is overwritten, and FTS5 is told to remove words instead of marking them as removed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa

from memgraph.policy.erasure import MARK, redacted_words
from memgraph.storage import derived, embeddings, metadata, vectors
from memgraph.storage.statements import driver

ERASED_KEY: Final = "erased_through"
"""The journal's head of the last erasure: what was made of an earlier one must not be kept."""
_LISTED: Final = "(SELECT value FROM json_each(?))"
_IDS: Final = f"(SELECT memory_id FROM memories WHERE pk IN {_LISTED})"

# Of erased memories themselves; each takes the keys twice where it asks for ids and keys.
_BLANKED: Final = (
    (
        "memory_edges",
        f"UPDATE memory_edges SET reason = '{MARK}' WHERE reason IS NOT NULL"
        f" AND (from_memory_id IN {_IDS} OR to_memory_id IN {_IDS})",
    ),
    ("memory_status", f"UPDATE memory_status SET reason = 'erased' WHERE memory_id IN {_IDS}"),
    (
        "memory_revisions",
        f"UPDATE memory_revisions SET tags = '[]', attributes = '{{}}' WHERE memory_id IN {_IDS}",
    ),
    ("memory_comparisons", f"DELETE FROM memory_comparisons WHERE memory_pk IN {_LISTED}"),
    ("ingest_pending_links", f"DELETE FROM ingest_pending_links WHERE memory_id IN {_IDS}"),
    ("ingest_document_keys", f"DELETE FROM ingest_document_keys WHERE memory_id IN {_IDS}"),
    (
        "entities",
        "UPDATE entities SET summary = NULL WHERE summary IS NOT NULL AND pk IN"
        f" (SELECT entity_pk FROM memory_entities WHERE memory_pk IN {_LISTED})",
    ),
)
_MEMORIES: Final = (
    "UPDATE memories SET content = '', summary = '', search_terms = NULL, tags = '[]',"
    " attributes = '{}', item_id = NULL, source_role = NULL, token_cost = 0,"
    " content_hash = 'erased:' || memory_id,"
    f" updated_at = max(updated_at, ?) WHERE pk IN {_LISTED}"
)


_TOLD: Final = (
    "FROM audit_log WHERE action = 'erase' AND json_extract(details, '$.erasure_id') = ?"
    " AND subject IS"
)


@contextmanager
def thorough(connection: sa.Connection) -> Iterator[None]:
    """What is deleted inside is overwritten everywhere, the words of the text index too."""
    execute = driver(connection).execute
    execute("PRAGMA secure_delete = ON")
    _secure_index(connection, on=True)
    try:
        yield
    finally:
        execute("PRAGMA secure_delete = FAST")
    _secure_index(connection, on=False)


def _secure_index(connection: sa.Connection, *, on: bool) -> None:
    driver(connection).execute(
        "INSERT INTO memory_fts (memory_fts, rank) VALUES ('secure-delete', ?)", (int(on),)
    )


def retract(connection: sa.Connection, pks: Sequence[int], *, at: int, actor: str) -> None:
    """Retract memories as ``memories.set_status`` does it, all of them by a few statements."""
    execute = driver(connection).execute
    due = execute(
        f"SELECT pk, memory_id FROM memories WHERE pk IN {_LISTED} AND status <> 'retracted'",
        (json.dumps(list(pks)),),
    ).fetchall()
    if not due:
        return
    listed = json.dumps([pk for pk, _ in due])
    # A clock that was set back must not let a period begin before the one that it ends.
    execute(
        "INSERT INTO memory_status (memory_id, status, since, until, actor, reason)"
        " SELECT m.memory_id, 'retracted', max(?, coalesce((SELECT max(s.since)"
        " FROM memory_status s WHERE s.memory_id = m.memory_id AND s.until IS NULL), 0)),"
        f" NULL, ?, 'erased' FROM memories m WHERE m.pk IN {_LISTED}",
        (at, actor, listed),
    )
    execute(
        "UPDATE memory_status SET until = max(since, ?) WHERE until IS NULL"
        f" AND status <> 'retracted' AND memory_id IN {_IDS}",
        (at, listed),
    )
    execute(
        "UPDATE memories SET status = 'retracted', updated_at = max(updated_at, ?),"
        f" valid_until = coalesce(valid_until, ?) WHERE pk IN {_LISTED}",
        (at, at, listed),
    )
    vectors.refresh(connection, [memory_id for _, memory_id in due])


def blank(connection: sa.Connection, pks: Sequence[int], *, at: int) -> dict[str, int]:
    """Take every text from memories that are retracted already, and from what belongs to them.

    Returns:
        How many rows of each table changed.
    """
    execute = driver(connection).execute
    listed = json.dumps(list(pks))
    counts = {}
    _forget_vectors(connection, pks)
    counts["memories"] = execute(_MEMORIES, (at, listed)).rowcount
    counts["memory_embeddings"] = len(pks)
    counts["memory_edges"] = _resolutions(connection, listed)
    for table, statement in _BLANKED:
        changed = execute(statement, (listed,) * statement.count("json_each(?)")).rowcount
        counts[table] = counts.get(table, 0) + changed
    counts["memory_entities"] = _unlink(connection, pks)
    return {table: count for table, count in counts.items() if count}


def _unlink(connection: sa.Connection, pks: Sequence[int]) -> int:
    """Take memories from what they name; gives how many entities are named less often now."""
    touched = derived.unlink(connection, pks)
    derived.recount(connection, touched, ())
    return len(touched)


def _forget_vectors(connection: sa.Connection, pks: Sequence[int]) -> None:
    vectors.wipe(connection, pks)
    embeddings.forget(connection, pks)


def _resolutions(connection: sa.Connection, listed: str) -> int:
    execute = driver(connection).execute
    changed = 0
    for table, key, ids in (
        ("memory_edges", "edge_id", f"from_memory_id IN {_IDS} OR to_memory_id IN {_IDS}"),
        (
            "memory_edge_revisions",
            "revision_id",
            "edge_id IN (SELECT edge_id FROM memory_edges"
            f" WHERE from_memory_id IN {_IDS} OR to_memory_id IN {_IDS})",
        ),
    ):
        rows = execute(
            f"SELECT {key}, resolution FROM {table} WHERE resolution IS NOT NULL AND ({ids})",
            (listed, listed),
        ).fetchall()
        for row_key, resolution in rows:
            execute(
                f"UPDATE {table} SET resolution = ? WHERE {key} = ?",
                (redacted_words(resolution, str), row_key),
            )
        changed += len(rows)
    return changed


def remove_entities(connection: sa.Connection, pks: Collection[int]) -> int:
    """Remove entities with their names; gives how many."""
    execute = driver(connection).execute
    listed = (json.dumps(sorted(pks)),)
    for table in ("memory_entities", "entity_aliases"):
        execute(f"DELETE FROM {table} WHERE entity_pk IN {_LISTED}", listed)
    return int(execute(f"DELETE FROM entities WHERE pk IN {_LISTED}", listed).rowcount)


def note_head(connection: sa.Connection, seq: int) -> None:
    """Keep what bulletins and other texts that wait in any process must not be older than."""
    metadata.put(connection, ERASED_KEY, str(seq))


def erased_through(connection: sa.Connection) -> int:
    """The journal's head at the last erasure; 0: there was none."""
    return int(metadata.get(connection, ERASED_KEY) or 0)


def fold(driver_connection: Any) -> bool:
    """Fold the WAL into the file and cut it to nothing; whether nobody was in the way."""
    busy, _, _ = driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def vacuum(driver_connection: Any) -> None:
    """Write the database anew: what lies in the free space of its pages is left behind.

    Rows keep their numbers: every table whose numbers are given out has an index or such a key.
    """
    try:
        driver_connection.execute("PRAGMA temp_store = FILE")
        driver_connection.execute("VACUUM")
    finally:
        driver_connection.execute("PRAGMA temp_store = MEMORY")


def tombstones(connection: sa.Connection, erasure_id: str) -> list[tuple[str, int, str]]:
    """(memory id, seq, seal) of the entries that stand for the memories of an erasure."""
    found = driver(connection).execute(f"SELECT subject, seq, hash {_TOLD} NOT NULL", (erasure_id,))
    return [(subject, seq, sealed) for subject, seq, sealed in found]


def buried_among(connection: sa.Connection, ids: Collection[str]) -> set[str]:
    """Those of the ids that an erasure took, or is about to take."""
    found = driver(connection).execute(
        f"SELECT subject FROM audit_log WHERE action = 'erase' AND subject IN {_LISTED}",
        (json.dumps(sorted(ids)),),
    )
    return {subject for (subject,) in found}


def told_of(connection: sa.Connection, erasure_id: str) -> list[dict[str, Any]]:
    """What the journal tells of the steps of an erasure: details of its entries about no memory."""
    found = driver(connection).execute(f"SELECT details {_TOLD} NULL", (erasure_id,))
    return [json.loads(details) for (details,) in found]


def note_redacted(connection: sa.Connection, sha256: str, redacted_sha256: str, at: int) -> None:
    """Keep the digest of a file as it is now that lines of it were redacted.

    ``manifest["redacted"]`` tells it: the lines that are left are the file's own ones.
    """
    driver(connection).execute(
        "UPDATE ingest_files SET manifest = json_set(manifest, '$.redacted',"
        " json_object('sha256', ?, 'at', ?)) WHERE sha256 = ?",
        (redacted_sha256, at, sha256),
    )


def empty_manifest(connection: sa.Connection, sha256: str, at: int) -> None:
    """Keep of a file that was removed no more than that it was there, and what came of it."""
    driver(connection).execute(
        "UPDATE ingest_files SET manifest = json_object('erased', json('true'), 'at', ?,"
        " 'items', json(coalesce(json_extract(manifest, '$.items'), '{}'))) WHERE sha256 = ?",
        (at, sha256),
    )
