"""What an erasure writes: rows without their texts, redacted journal entries, clean indexes.

Rows stay where something refers to them; their texts go. With ``secure_delete`` what SQLite frees
is overwritten, and FTS5 is told to remove words instead of marking them as removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.policy.erasure import MARK, Scrub, redacted_details, redacted_words, scrubbed
from memgraph.storage import derived, embeddings, metadata, vectors
from memgraph.storage.statements import driver

ERASED_KEY: Final = "erased_through"
"""The journal's head of the last erasure: what was made of an earlier one must not be kept."""
_LISTED: Final = "(SELECT value FROM json_each(?))"
_IDS: Final = f"(SELECT memory_id FROM memories WHERE pk IN {_LISTED})"
_PAGE: Final = 2_000

# (table, key, columns): every text that is no memory's own and may say what one says.
_SWEPT: Final = (
    ("memories", "pk", ("tags", "attributes")),
    ("memory_revisions", "revision_id", ("tags", "attributes")),
    ("memory_edges", "rowid", ("reason", "resolution")),
    ("memory_edge_revisions", "revision_id", ("resolution",)),
    ("memory_status", "status_id", ("reason",)),
    ("entities", "pk", ("summary",)),
    ("recalls", "rowid", ("query", "request", "viewer", "left_out", "purpose", "actor")),
    ("recall_items", "recall_id, rank", ("explanation",)),
    ("bulletins", "rowid", ("body",)),
    ("events", "seq", ("payload",)),
    ("event_failures", "rowid", ("payload",)),
    ("job_runs", "rowid", ("counts", "rejected", "reason")),
    ("idempotency_keys", "rowid", ("answer",)),
    ("ingest_files", "rowid", ("manifest",)),
    ("ingest_pending_links", "link_id", ("reason",)),
    ("memory_metadata", "rowid", ("value",)),
    ("source_trust", "rowid", ("reason",)),
    ("echo_pending", "pending_id", ("text",)),
)
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
    ("ingest_pending_links", f"DELETE FROM ingest_pending_links WHERE memory_id IN {_IDS}"),
    ("ingest_document_keys", f"DELETE FROM ingest_document_keys WHERE memory_id IN {_IDS}"),
    (
        "entities",
        "UPDATE entities SET summary = NULL WHERE summary IS NOT NULL AND pk IN"
        f" (SELECT entity_pk FROM memory_entities WHERE memory_pk IN {_LISTED})",
    ),
    ("memory_entities", f"DELETE FROM memory_entities WHERE memory_pk IN {_LISTED}"),
    (
        "idempotency_keys",
        "UPDATE idempotency_keys SET status = NULL, answer = NULL WHERE answer IS NOT NULL AND"
        f" EXISTS (SELECT 1 FROM json_each(memory_ids) i WHERE i.value IN {_IDS})",
    ),
    (
        "recalls",
        "UPDATE recalls SET query = '' WHERE query <> '' AND coalesce(same_as, recall_id) IN"
        f" (SELECT recall_id FROM recall_items WHERE memory_id IN {_IDS})",
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


class Redacted(NamedTuple):
    """An entry of the journal: its number, its seal, the SHA-256 of its details as they are now."""

    seq: int
    hash: str
    details: str


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
    """Retract memories, all of them by three statements: one by one would hold up who writes.

    As ``memories.set_status`` does it; the vectors go with the texts.
    """
    execute = driver(connection).execute
    listed = json.dumps(list(pks))
    due = execute(
        f"SELECT pk FROM memories WHERE pk IN {_LISTED} AND status <> 'retracted'", (listed,)
    )
    listed = json.dumps([pk for (pk,) in due])
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
    return {table: count for table, count in counts.items() if count}


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


def sweep(connection: sa.Connection, says: Callable[[bytes], bool], scrub: Scrub) -> dict[str, int]:
    """Scrub every other text of the database.

    Args:
        says: whether any of the erased strings stands in some bytes.
        scrub: takes them out of a text.

    Returns:
        How many rows of each table changed.
    """
    counts = {}
    for table, key, columns in _SWEPT:
        changed = _sweep(connection, table, key, columns, says, scrub)
        if changed:
            counts[table] = changed
    return counts


def _sweep(
    connection: sa.Connection,
    table: str,
    key: str,
    columns: Sequence[str],
    says: Callable[[bytes], bool],
    scrub: Scrub,
) -> int:
    keys = key.split(", ")
    some = " OR ".join(f"{column} IS NOT NULL" for column in columns)
    cursor = driver(connection).execute(
        f"SELECT {key}, {', '.join(columns)} FROM {table} WHERE {some}"
    )
    changed = []
    while page := cursor.fetchmany(_PAGE):
        texts = (each for row in page for each in row[len(keys) :] if each)
        if not says("\0".join(texts).encode("utf-8", "surrogatepass")):
            continue
        for row in page:
            values = [each if each is None else scrubbed(each, scrub) for each in row[len(keys) :]]
            if values != list(row[len(keys) :]):
                changed.append((*values, *row[: len(keys)]))
    sets = ", ".join(f"{column} = ?" for column in columns)
    where = " AND ".join(f"{each} = ?" for each in keys)
    driver(connection).executemany(f"UPDATE {table} SET {sets} WHERE {where}", changed)
    return len(changed)


def redact_bulletins(connection: sa.Connection, memory_ids: Collection[str]) -> int:
    """Take the lines that cite erased memories out of kept bulletins; gives of how many."""
    execute = driver(connection).execute
    rows = execute(
        "SELECT b.bulletin_id, b.body, b.memory_ids FROM bulletins b WHERE EXISTS"
        f" (SELECT 1 FROM json_each(b.memory_ids) i WHERE i.value IN {_LISTED})",
        (json.dumps(sorted(memory_ids)),),
    ).fetchall()
    for bulletin_id, body, cited in rows:
        gone = [each for each in json.loads(cited) if each in memory_ids]
        lines = [MARK if any(each in line for each in gone) else line for line in body.split("\n")]
        execute(
            "UPDATE bulletins SET body = ? WHERE bulletin_id = ?", ("\n".join(lines), bulletin_id)
        )
    return len(rows)


def redact_journal(
    connection: sa.Connection,
    memory_ids: Collection[str],
    says: Callable[[bytes], bool],
    scrub: Scrub,
    digest: Callable[[str], str],
) -> list[Redacted]:
    """Redact what the journal says of erased memories, and what it repeats of their texts."""
    execute = driver(connection).execute
    joined = _edges_of(connection, memory_ids)
    cursor = execute("SELECT seq, action, subject, details, hash FROM audit_log ORDER BY seq")
    found = []
    while page := cursor.fetchmany(_PAGE):
        said = says("\0".join(row[3] for row in page).encode("utf-8", "surrogatepass"))
        for seq, action, subject, details, sealed in page:
            own = subject in memory_ids or (
                action in ("relate", "resolve", "reopen", "dismiss")
                and json.loads(details).get("edge_id") in joined
            )
            if not own and (not said or scrubbed(details, scrub) == details):
                continue
            redacted = redacted_details(details, scrub, own=own)
            found.append((redacted, seq, sealed))
    driver(connection).executemany(
        "UPDATE audit_log SET details = ? WHERE seq = ?", [(text, seq) for text, seq, _ in found]
    )
    return [Redacted(seq, sealed, digest(text)) for text, seq, sealed in found]


def _edges_of(connection: sa.Connection, memory_ids: Collection[str]) -> set[str]:
    listed = json.dumps(sorted(memory_ids))
    found = driver(connection).execute(
        "SELECT edge_id FROM memory_edges"
        f" WHERE from_memory_id IN {_LISTED} OR to_memory_id IN {_LISTED}",
        (listed, listed),
    )
    return {edge_id for (edge_id,) in found}


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


def told_of(connection: sa.Connection, erasure_id: str) -> list[dict[str, Any]]:
    """What the journal tells of the steps of an erasure: details of its entries about no memory."""
    found = driver(connection).execute(f"SELECT details {_TOLD} NULL", (erasure_id,))
    return [json.loads(details) for (details,) in found]


def recount_entities(connection: sa.Connection) -> None:
    """Count how often each entity is named, once memories are gone from it."""
    derived.recount_all(connection)


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
