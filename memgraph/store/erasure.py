"""What an erasure writes: rows without their texts, clean indexes, its own entries in the journal.

Rows stay where something refers to them; their texts go. With ``secure_delete`` what SQLite frees
is overwritten, and FTS5 is told to remove words instead of marking them as removed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Final, NamedTuple

from memgraph.ids import short_id
from memgraph.rules.erasure import (
    MARK,
    Scrub,
    redacted_details,
    redacted_words,
    scrubbed,
    without_notes,
)
from memgraph.store import embeddings, metadata, text_index
from memgraph.store.snapshot import Snapshot, Transaction, driver

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
def thorough(transaction: Transaction) -> Iterator[None]:
    """What is deleted inside is overwritten everywhere, the words of the text index too."""
    execute = driver(transaction).execute
    execute("PRAGMA secure_delete = ON")
    _secure_index(transaction, on=True)
    try:
        yield
    finally:
        execute("PRAGMA secure_delete = FAST")
    _secure_index(transaction, on=False)


def _secure_index(transaction: Transaction, *, on: bool) -> None:
    driver(transaction).execute(
        "INSERT INTO memory_fts (memory_fts, rank) VALUES ('secure-delete', ?)", (int(on),)
    )


def retract(transaction: Transaction, pks: Sequence[int], *, at: int, actor: str) -> None:
    """Retract memories as ``memories.set_status`` does it, all of them by a few statements."""
    execute = driver(transaction).execute
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
    embeddings.index(transaction).refresh([memory_id for _, memory_id in due])


def blank(transaction: Transaction, pks: Sequence[int], *, at: int) -> dict[str, int]:
    """Take every text from memories that are retracted already, and from what belongs to them.

    Returns:
        How many rows of each table changed.
    """
    execute = driver(transaction).execute
    listed = json.dumps(list(pks))
    counts = {}
    embeddings.forget(transaction, pks)
    counts["memories"] = execute(_MEMORIES, (at, listed)).rowcount
    text_index.INDEX.remove(transaction, pks)
    counts["memory_embeddings"] = len(pks)
    counts["memory_edges"] = _resolutions(transaction, listed)
    for table, statement in _BLANKED:
        changed = execute(statement, (listed,) * statement.count("json_each(?)")).rowcount
        counts[table] = counts.get(table, 0) + changed
    counts["memory_entities"] = _unlink(transaction, pks)
    return {table: count for table, count in counts.items() if count}


def _unlink(transaction: Transaction, pks: Sequence[int]) -> int:
    """Take memories from what they name; gives how many entities are named less often now."""
    touched = text_index.unlink(transaction, pks)
    text_index.recount(transaction, touched, ())
    return len(touched)


def _resolutions(transaction: Transaction, listed: str) -> int:
    execute = driver(transaction).execute
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


def remove_entities(transaction: Transaction, pks: Collection[int]) -> int:
    """Remove entities with their names; gives how many."""
    execute = driver(transaction).execute
    listed = (json.dumps(sorted(pks)),)
    for table in ("memory_entities", "entity_aliases"):
        execute(f"DELETE FROM {table} WHERE entity_pk IN {_LISTED}", listed)
    return int(execute(f"DELETE FROM entities WHERE pk IN {_LISTED}", listed).rowcount)


def note_head(transaction: Transaction, seq: int) -> None:
    """Keep what bulletins and other texts that wait in any process must not be older than."""
    metadata.put(transaction, ERASED_KEY, str(seq))


def erased_through(snapshot: Snapshot) -> int:
    """The journal's head at the last erasure; 0: there was none."""
    return int(metadata.get(snapshot, ERASED_KEY) or 0)


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


def tombstones(snapshot: Snapshot, erasure_id: str) -> list[tuple[str, int, str]]:
    """(memory id, seq, seal) of the entries that stand for the memories of an erasure."""
    found = driver(snapshot).execute(f"SELECT subject, seq, hash {_TOLD} NOT NULL", (erasure_id,))
    return [(subject, seq, sealed) for subject, seq, sealed in found]


def buried_among(snapshot: Snapshot, ids: Collection[str]) -> set[str]:
    """Those of the ids that an erasure took, or is about to take."""
    found = driver(snapshot).execute(
        f"SELECT subject FROM audit_log WHERE action = 'erase' AND subject IN {_LISTED}",
        (json.dumps(sorted(ids)),),
    )
    return {subject for (subject,) in found}


def told_of(snapshot: Snapshot, erasure_id: str) -> list[dict[str, Any]]:
    """What the journal tells of the steps of an erasure: details of its entries about no memory."""
    found = driver(snapshot).execute(f"SELECT details {_TOLD} NULL", (erasure_id,))
    return [json.loads(details) for (details,) in found]


def note_redacted(transaction: Transaction, sha256: str, redacted_sha256: str, at: int) -> None:
    """Keep the digest of a file as it is now that lines of it were redacted.

    ``manifest["redacted"]`` tells it: the lines that are left are the file's own ones.
    """
    driver(transaction).execute(
        "UPDATE ingest_files SET manifest = json_set(manifest, '$.redacted',"
        " json_object('sha256', ?, 'at', ?)) WHERE sha256 = ?",
        (redacted_sha256, at, sha256),
    )


def empty_manifest(transaction: Transaction, sha256: str, at: int) -> None:
    """Keep of a file that was removed no more than that it was there, and what came of it."""
    driver(transaction).execute(
        "UPDATE ingest_files SET manifest = json_object('erased', json('true'), 'at', ?,"
        " 'items', json(coalesce(json_extract(manifest, '$.items'), '{}'))) WHERE sha256 = ?",
        (at, sha256),
    )


# What else says an erased text, and how it stands there without it: found by reading alone.


JOURNAL: Final = "audit_log"
_PAGE: Final = 2_000

# Every text that is no memory's own and may say what one says.
_SWEPT: Final = (
    ("memories", ("pk",), ("tags", "attributes")),
    ("memory_revisions", ("revision_id",), ("tags", "attributes")),
    ("memory_edges", ("rowid",), ("reason", "resolution")),
    ("memory_edge_revisions", ("revision_id",), ("resolution",)),
    ("memory_status", ("status_id",), ("reason",)),
    ("entities", ("pk",), ("summary",)),
    ("recalls", ("rowid",), ("query", "request", "viewer", "left_out", "purpose", "actor")),
    ("recall_items", ("recall_id", "rank"), ("explanation",)),
    ("bulletins", ("rowid",), ("body",)),
    ("events", ("seq",), ("payload",)),
    ("event_failures", ("rowid",), ("payload",)),
    ("job_runs", ("rowid",), ("counts", "rejected", "reason")),
    ("idempotency_keys", ("rowid",), ("answer",)),
    ("ingest_files", ("rowid",), ("manifest",)),
    ("ingest_parts", ("rowid",), ("outcomes",)),
    ("ingest_pending_links", ("link_id",), ("reason",)),
    ("memory_metadata", ("rowid",), ("value",)),
    ("source_trust", ("rowid",), ("reason",)),
    ("echo_pending", ("pending_id",), ("text",)),
)
# Rows that go when they say it: a link that waits for what is gone leads nowhere.
_REMOVED: Final = (("ingest_pending_links", ("link_id",), ("target",)),)
_DECISIONS: Final = frozenset({"relate", "resolve", "reopen", "dismiss"})


class Change(NamedTuple):
    """A row that says what was erased.

    Attributes:
        keys, key: the columns that name it, and their values.
        columns, before, after: what it says, as it was read and as it is to be; None: the row goes.
    """

    table: str
    keys: tuple[str, ...]
    key: tuple[Any, ...]
    columns: tuple[str, ...]
    before: tuple[str | None, ...]
    after: tuple[str | None, ...] | None


class Redacted(NamedTuple):
    """An entry of the journal: its number, its seal, the SHA-256 of its details as they are now."""

    seq: int
    hash: str
    details: str


def citing(
    snapshot: Snapshot, memory_ids: Collection[str], notes: Collection[str]
) -> Iterator[Change]:
    """Yield what was made of erased memories, whatever it says: bulletins, answers, queries, and
    the reasons that memories got by decisions about erased ones.

    Args:
        notes: reasons that were written about the erased memories.
    """
    listed = (json.dumps(sorted(memory_ids)),)
    execute = driver(snapshot).execute
    bulletins = execute(
        "SELECT bulletin_id, body, memory_ids FROM bulletins WHERE EXISTS"
        f" (SELECT 1 FROM json_each(memory_ids) i WHERE i.value IN {_LISTED})",
        listed,
    )
    for bulletin_id, body, cited in bulletins:
        gone = [short_id(each) for each in json.loads(cited) if each in memory_ids]
        lines = [MARK if any(each in line for each in gone) else line for line in body.split("\n")]
        if (after := "\n".join(lines)) != body:
            key = ("bulletin_id",), (bulletin_id,)
            yield Change("bulletins", *key, ("body",), (body,), (after,))
    answers = execute(
        "SELECT key_sha256, status, answer FROM idempotency_keys WHERE answer IS NOT NULL"
        f" AND EXISTS (SELECT 1 FROM json_each(memory_ids) i WHERE i.value IN {_LISTED})",
        listed,
    )
    for key_sha256, *before in answers:
        key = ("key_sha256",), (key_sha256,)
        yield Change("idempotency_keys", *key, ("status", "answer"), tuple(before), (None, None))
    queries = execute(
        "SELECT recall_id, query FROM recalls WHERE query <> '' AND coalesce(same_as, recall_id)"
        f" IN (SELECT recall_id FROM recall_items WHERE memory_id IN {_LISTED})",
        listed,
    )
    for recall_id, query in queries:
        yield Change("recalls", ("recall_id",), (recall_id,), ("query",), (query,), ("",))
    reasons = execute(
        "SELECT status_id, reason FROM memory_status WHERE reason IS NOT NULL AND memory_id IN"
        f" (SELECT from_memory_id FROM memory_edges WHERE to_memory_id IN {_LISTED} UNION"
        f" SELECT to_memory_id FROM memory_edges WHERE from_memory_id IN {_LISTED})",
        listed * 2,
    )
    for status_id, reason in reasons:
        if (after := without_notes(reason, memory_ids, notes)) != reason:
            key = ("status_id",), (status_id,)
            yield Change("memory_status", *key, ("reason",), (reason,), (after,))


def saying(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    entity_ids: Collection[str],
    says: Callable[[bytes], bool],
    scrub: Scrub,
) -> Iterator[Change]:
    """Every other text that says an erased string, and the journal's entries of erased memories
    and entities.

    Args:
        says: whether any of the erased strings stands in some bytes.
        scrub: takes them out of a text.
    """
    for table, keys, columns in (*_SWEPT, *_REMOVED):
        goes = (table, keys, columns) in _REMOVED
        some = " OR ".join(f"{column} IS NOT NULL" for column in columns)
        cursor = driver(snapshot).execute(
            f"SELECT {', '.join((*keys, *columns))} FROM {table} WHERE {some}"
        )
        while page := cursor.fetchmany(_PAGE):
            texts = [row[len(keys) :] for row in page]
            if not says(_joined(each for row in texts for each in row if each)):
                continue
            for row, before in zip(page, texts, strict=True):
                after = tuple(each if each is None else scrubbed(each, scrub) for each in before)
                if after != tuple(before):
                    key = tuple(row[: len(keys)])
                    yield Change(table, keys, key, columns, tuple(before), None if goes else after)
    yield from _journal(snapshot, memory_ids, entity_ids, says, scrub)


def _journal(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    entity_ids: Collection[str],
    says: Callable[[bytes], bool],
    scrub: Scrub,
) -> Iterator[Change]:
    joined = _edges_of(snapshot, memory_ids)
    subjects = {*memory_ids, *entity_ids}
    cursor = driver(snapshot).execute(
        f"SELECT seq, action, subject, details FROM {JOURNAL} ORDER BY seq"
    )
    while page := cursor.fetchmany(_PAGE):
        said = says(_joined(row[3] for row in page))
        for seq, action, subject, details in page:
            own = subject in subjects or (
                action in _DECISIONS and json.loads(details).get("edge_id") in joined
            )
            if not own and (not said or scrubbed(details, scrub) == details):
                continue
            after = redacted_details(details, scrub, own=own)
            if after != details:
                yield Change(JOURNAL, ("seq",), (seq,), ("details",), (details,), (after,))


def _edges_of(snapshot: Snapshot, memory_ids: Collection[str]) -> set[str]:
    listed = json.dumps(sorted(memory_ids))
    found = driver(snapshot).execute(
        "SELECT edge_id FROM memory_edges"
        f" WHERE from_memory_id IN {_LISTED} OR to_memory_id IN {_LISTED}",
        (listed, listed),
    )
    return {edge_id for (edge_id,) in found}


def _joined(texts: Iterator[str]) -> bytes:
    return "\0".join(texts).encode("utf-8", "surrogatepass")


def make(transaction: Transaction, changes: Sequence[Change]) -> list[Change]:
    """Make those whose rows are as they were read; gives them."""
    execute = driver(transaction).execute
    made: list[Change] = []
    for (table, keys, columns, goes), some in groupby(changes, _kind):
        sets = ", ".join(f"{column} = ?" for column in columns)
        change = f"DELETE FROM {table}" if goes else f"UPDATE {table} SET {sets}"
        where = " AND ".join(f"{column} IS ?" for column in (*keys, *columns))
        statement = f"{change} WHERE {where}"
        made += (
            each
            for each in some
            if execute(statement, (*(each.after or ()), *each.key, *each.before)).rowcount
        )
    # Their tags were indexed.
    reworded = [each.key[0] for each in made if each.table == "memories"]
    text_index.INDEX.remove(transaction, reworded)
    return made


def _kind(change: Change) -> tuple[str, tuple[str, ...], tuple[str, ...], bool]:
    return change.table, change.keys, change.columns, change.after is None


def redacted(snapshot: Snapshot, changes: Sequence[Change]) -> list[Redacted]:
    """What a tombstone says of those that are the journal's."""
    details = {
        each.key[0]: each.after[0] or ""
        for each in changes
        if each.table == JOURNAL and each.after is not None
    }
    sealed = driver(snapshot).execute(
        f"SELECT seq, hash FROM {JOURNAL} WHERE seq IN {_LISTED} ORDER BY seq",
        (json.dumps(sorted(details)),),
    )
    return [Redacted(seq, seal, digest(details[seq])) for seq, seal in sealed]


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
