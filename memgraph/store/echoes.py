"""Which stored texts hold all words of a statement and were known, or handed out, before it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from memgraph.ids import SHORT_CHARS
from memgraph.store.snapshot import Snapshot, Transaction, driver
from memgraph.store.visibility import View

# Of texts that hold the same words the newest are looked at.
_MOST_MATCHES = 1_000
_MOST_TEXTS = 20

# A receipt's id is made from its time: the newest before the statement comes first. What a bulletin
# showed of a memory is known by its lines.
_RECALLED = (
    "(SELECT r.created_at FROM recall_items i JOIN recalls r ON r.recall_id = i.recall_id"
    " WHERE i.memory_id = m.memory_id AND r.created_at < :at AND r.purpose IS NOT 'bulletin'"
    " ORDER BY i.recall_id DESC LIMIT 1) >= :since"
)
_STOOD = (
    "EXISTS (SELECT 1 FROM memory_status h WHERE h.memory_id = m.memory_id"
    " AND h.status = 'active' AND h.since < :at AND (h.until IS NULL OR h.until > :since))"
)
# In force: neither replaced nor taken back, and not run out.
_IN_FORCE = "m.status = 'active' AND (m.valid_until IS NULL OR m.valid_until > :at)"
_SPEAKERS = (
    "SELECT DISTINCT m.source_role FROM memory_derivations d"
    " JOIN memories m ON m.memory_id = d.derived_from_id"
    " WHERE d.memory_id = ? AND m.kind = 'episode'"
)
_BY_ID = (
    "SELECT memory_id, content FROM memories"
    " WHERE memory_id IN (SELECT value FROM json_each(?)) AND content <> ''"
)
_BY_SHORT_ID = _BY_ID.replace("memory_id", f"substr(memory_id, -{SHORT_CHARS})")


class EarlierText(NamedTuple):
    """A memory's text; ``stood``: it is no raw turn, and was active at or shortly before."""

    content: str
    recalled: bool
    stood: bool


def earlier_texts(
    snapshot: Snapshot, terms: Sequence[str], *, at: int, since: int, view: View
) -> list[EarlierText]:
    """Texts with all of the words, that were recalled in [since, at) or stood then, newest first.

    Args:
        terms: folded words, at least one; the index cuts them to their stems.
        view: which standing memories count; what was recalled was seen by someone.
    """
    # A term holds letters and digits alone, so it cannot end its quotes.
    match = "{content search_terms} : (" + " AND ".join(f'"{term}"' for term in terms) + ")"
    # Nobody's turn is not told by what one agent keeps to itself.
    shared = "1" if view.viewer.agent_id is not None else "m.agent_id IS NULL"
    statement = (
        "SELECT content, recalled, stood FROM ("
        f"SELECT m.content, coalesce({_RECALLED}, 0) AS recalled,"
        f" (m.kind <> 'episode' AND {view.text.where('m')} AND {shared} AND {_STOOD}) AS stood"
        " FROM (SELECT rowid AS pk FROM memory_fts WHERE memory_fts MATCH :match"
        f" ORDER BY rowid DESC LIMIT {_MOST_MATCHES}) f"
        " CROSS JOIN memories m ON m.pk = f.pk WHERE m.created_at < :at)"
        f" WHERE recalled OR stood LIMIT {_MOST_TEXTS}"
    )
    values = view.params | {"match": match, "at": at, "since": since}
    rows = driver(snapshot).execute(statement, values).fetchall()
    return [EarlierText(content, bool(recalled), bool(stood)) for content, recalled, stood in rows]


class StandingText(NamedTuple):
    """A memory that is in force; ``recalled``: 1 if it was since the given moment, else 0."""

    memory_id: str
    content: str
    kind: str
    session_id: str | None
    scope: str
    scope_id: str | None
    agent_id: str | None
    sensitivity: str
    recalled: int


def standing_texts(
    snapshot: Snapshot, terms: Sequence[str], *, at: int, since: int, view: View
) -> list[StandingText]:
    """What the view sees in force at ``at``, stored before it, with all of the words.

    Args:
        terms: folded words, at least one; the index cuts them to their stems.
        since: from when on a recall counts.
    """
    match = "{content search_terms} : (" + " AND ".join(f'"{term}"' for term in terms) + ")"
    statement = (
        "SELECT m.memory_id, m.content, m.kind, m.session_id, m.scope, m.scope_id, m.agent_id,"
        f" m.sensitivity, coalesce({_RECALLED}, 0)"
        " FROM (SELECT rowid AS pk FROM memory_fts WHERE memory_fts MATCH :match"
        f" ORDER BY rowid DESC LIMIT {_MOST_MATCHES}) f CROSS JOIN memories m ON m.pk = f.pk"
        f" WHERE m.created_at < :at AND {_IN_FORCE} AND {view.text.where('m')} LIMIT {_MOST_TEXTS}"
    )
    values = view.params | {"match": match, "at": at, "since": since}
    rows = driver(snapshot).execute(statement, values).fetchall()
    return [StandingText._make(row) for row in rows]


def speakers(snapshot: Snapshot, memory_id: str) -> list[str | None]:
    """Who said the turns that a memory was derived from; none: it comes from no conversation."""
    return [row[0] for row in driver(snapshot).execute(_SPEAKERS, (memory_id,))]


def contents(snapshot: Snapshot, memory_ids: Collection[str]) -> dict[str, str]:
    """The texts of these memories, by id; of one that is gone or erased there is none."""
    rows = driver(snapshot).execute(_BY_ID, (json.dumps(list(memory_ids)),)).fetchall()
    return dict(rows)


def contents_by_short_id(snapshot: Snapshot, short_ids: Collection[str]) -> dict[str, str]:
    """Return the texts of the memories that short ids stand for; of the erased there is none."""
    if not short_ids:
        return {}
    rows = driver(snapshot).execute(_BY_SHORT_ID, (json.dumps(list(short_ids)),)).fetchall()
    return dict(rows)


# Lines that were handed out, by the hash of their normal form, and when.


_RECORD = (
    "INSERT INTO echo_lines (line_hash, first_at, last_at) VALUES (?, ?, ?)"
    " ON CONFLICT (line_hash) DO UPDATE SET first_at = min(first_at, excluded.first_at),"
    " last_at = max(last_at, excluded.last_at)"
)
_FIND = (
    "SELECT line_hash, first_at, last_at FROM echo_lines"
    " WHERE line_hash IN (SELECT value FROM json_each(?))"
)
_FORGET = "DELETE FROM echo_lines WHERE last_at < ?"


def record(transaction: Transaction, lines: Sequence[tuple[int, int, int]]) -> None:
    """Note when lines were handed out: each with its hash, the first and the last time."""
    driver(transaction).executemany(_RECORD, lines)


def find(snapshot: Snapshot, hashes: Collection[int]) -> dict[int, tuple[int, int]]:
    """When each of these lines was handed out first and last; unknown ones are left out."""
    rows = driver(snapshot).execute(_FIND, (json.dumps(list(hashes)),)).fetchall()
    return {line_hash: (first, last) for line_hash, first, last in rows}


def forget(transaction: Transaction, before: int) -> int:
    """Remove lines that were last handed out before a time; gives how many."""
    return int(driver(transaction).execute(_FORGET, (before,)).rowcount)


# What was handed out and waits for its lines to be hashed: off the path of whoever asks.


# Bulletins of a store where nothing consolidates: the oldest texts go. An agent that repeats what
# still stands is found without them, and a person's words count for a day only.
MAX_TEXTS = 4_096

_ADD_RECALL = "INSERT INTO echo_pending (at, recall_id) VALUES (?, ?)"
_ADD_TEXT = "INSERT INTO echo_pending (at, text) VALUES (?, ?)"
_DROP = (
    "DELETE FROM echo_pending WHERE text IS NOT NULL AND pending_id <= (SELECT pending_id"
    " FROM echo_pending WHERE text IS NOT NULL ORDER BY pending_id DESC LIMIT 1 OFFSET ?)"
)
_THROUGH = (
    "SELECT max(pending_id), count(*) FROM"
    " (SELECT pending_id FROM echo_pending ORDER BY pending_id LIMIT ?)"
)
_TEXTS = "SELECT text, at FROM echo_pending WHERE text IS NOT NULL AND pending_id <= ?"
_ECHO_PENDING_RECALLED = (
    "SELECT m.pk, m.content, m.summary, min(p.at), max(p.at) FROM echo_pending p"
    " JOIN recall_items i ON i.recall_id = p.recall_id"
    " JOIN memories m ON m.memory_id = i.memory_id"
    " WHERE p.pending_id <= ? GROUP BY m.pk"
)
_REMOVE = "DELETE FROM echo_pending WHERE pending_id <= ?"


class Recalled(NamedTuple):
    """A memory that was handed out by recalls, and when first and last."""

    pk: int
    content: str
    summary: str | None
    first_at: int
    last_at: int


class Pending(NamedTuple):
    """The oldest of what waits: how much it is, and the last one's id. Texts have their times."""

    number: int
    through: int
    recalled: tuple[Recalled, ...]
    texts: tuple[tuple[str, int], ...]


def add(
    transaction: Transaction,
    recalls: Sequence[tuple[int, str]],
    texts: Sequence[tuple[int, str]],
) -> None:
    """Note recalls by their ids and other texts, each with its time; old texts may go for it."""
    execute = driver(transaction)
    execute.executemany(_ADD_RECALL, recalls)
    if texts:
        execute.executemany(_ADD_TEXT, texts)
        execute.execute(_DROP, (MAX_TEXTS,))


def oldest(snapshot: Snapshot, limit: int) -> Pending | None:
    """At most ``limit`` recalls and texts, each memory of them once; None: nothing waits."""
    execute = driver(snapshot).execute
    through, number = execute(_THROUGH, (limit,)).fetchone()
    if through is None:
        return None
    return Pending(
        number,
        through,
        tuple(map(Recalled._make, execute(_ECHO_PENDING_RECALLED, (through,)))),
        tuple(execute(_TEXTS, (through,))),
    )


def remove(transaction: Transaction, through: int) -> int:
    """Remove what was worked off, all up to the id that ``oldest`` gave; gives how much it was."""
    return int(driver(transaction).execute(_REMOVE, (through,)).rowcount)
