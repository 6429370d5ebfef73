"""What else says an erased text, and how it stands there without it: found by reading alone.

Reading a whole database takes long, so no lock is held for it. A change is made only where a row
is still as it was read; what became another one meanwhile is found by looking again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.ids import short_id
from memgraph.policy.erasure import MARK, Scrub, redacted_details, scrubbed
from memgraph.storage.statements import driver

JOURNAL: Final = "audit_log"
_LISTED: Final = "(SELECT value FROM json_each(?))"
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


def citing(connection: sa.Connection, memory_ids: Collection[str]) -> Iterator[Change]:
    """What was made of erased memories, whatever it says: bulletins, answers, queries."""
    listed = (json.dumps(sorted(memory_ids)),)
    execute = driver(connection).execute
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


def saying(
    connection: sa.Connection,
    memory_ids: Collection[str],
    says: Callable[[bytes], bool],
    scrub: Scrub,
) -> Iterator[Change]:
    """Every other text that says an erased string, and the journal's entries of erased memories.

    Args:
        says: whether any of the erased strings stands in some bytes.
        scrub: takes them out of a text.
    """
    for table, keys, columns in (*_SWEPT, *_REMOVED):
        goes = (table, keys, columns) in _REMOVED
        some = " OR ".join(f"{column} IS NOT NULL" for column in columns)
        cursor = driver(connection).execute(
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
    yield from _journal(connection, memory_ids, says, scrub)


def _journal(
    connection: sa.Connection,
    memory_ids: Collection[str],
    says: Callable[[bytes], bool],
    scrub: Scrub,
) -> Iterator[Change]:
    joined = _edges_of(connection, memory_ids)
    cursor = driver(connection).execute(
        f"SELECT seq, action, subject, details FROM {JOURNAL} ORDER BY seq"
    )
    while page := cursor.fetchmany(_PAGE):
        said = says(_joined(row[3] for row in page))
        for seq, action, subject, details in page:
            own = subject in memory_ids or (
                action in _DECISIONS and json.loads(details).get("edge_id") in joined
            )
            if not own and (not said or scrubbed(details, scrub) == details):
                continue
            after = redacted_details(details, scrub, own=own)
            if after != details:
                yield Change(JOURNAL, ("seq",), (seq,), ("details",), (details,), (after,))


def _edges_of(connection: sa.Connection, memory_ids: Collection[str]) -> set[str]:
    listed = json.dumps(sorted(memory_ids))
    found = driver(connection).execute(
        "SELECT edge_id FROM memory_edges"
        f" WHERE from_memory_id IN {_LISTED} OR to_memory_id IN {_LISTED}",
        (listed, listed),
    )
    return {edge_id for (edge_id,) in found}


def _joined(texts: Iterator[str]) -> bytes:
    return "\0".join(texts).encode("utf-8", "surrogatepass")


def make(connection: sa.Connection, changes: Sequence[Change]) -> list[Change]:
    """Make those whose rows are as they were read; gives them."""
    execute = driver(connection).execute
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
    return made


def _kind(change: Change) -> tuple[str, tuple[str, ...], tuple[str, ...], bool]:
    return change.table, change.keys, change.columns, change.after is None


def redacted(connection: sa.Connection, changes: Sequence[Change]) -> list[Redacted]:
    """What a tombstone says of those that are the journal's."""
    details = {
        each.key[0]: each.after[0] or ""
        for each in changes
        if each.table == JOURNAL and each.after is not None
    }
    sealed = driver(connection).execute(
        f"SELECT seq, hash FROM {JOURNAL} WHERE seq IN {_LISTED} ORDER BY seq",
        (json.dumps(sorted(details)),),
    )
    return [Redacted(seq, seal, digest(details[seq])) for seq, seal in sealed]


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
