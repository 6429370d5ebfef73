"""Which stored texts hold all words of a statement and were known, or handed out, before it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from memgraph.ids import SHORT_CHARS
from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

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
    connection: sa.Connection, terms: Sequence[str], *, at: int, since: int, view: View
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
        f" (m.kind <> 'episode' AND {view.where('m')} AND {shared} AND {_STOOD}) AS stood"
        " FROM (SELECT rowid AS pk FROM memory_fts WHERE memory_fts MATCH :match"
        f" ORDER BY rowid DESC LIMIT {_MOST_MATCHES}) f"
        " CROSS JOIN memories m ON m.pk = f.pk WHERE m.created_at < :at)"
        f" WHERE recalled OR stood LIMIT {_MOST_TEXTS}"
    )
    values = view.params | {"match": match, "at": at, "since": since}
    rows = driver(connection).execute(statement, values).fetchall()
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
    connection: sa.Connection, terms: Sequence[str], *, at: int, since: int, view: View
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
        f" WHERE m.created_at < :at AND {_IN_FORCE} AND {view.where('m')} LIMIT {_MOST_TEXTS}"
    )
    values = view.params | {"match": match, "at": at, "since": since}
    rows = driver(connection).execute(statement, values).fetchall()
    return [StandingText._make(row) for row in rows]


def speakers(connection: sa.Connection, memory_id: str) -> list[str | None]:
    """Who said the turns that a memory was derived from; none: it comes from no conversation."""
    return [row[0] for row in driver(connection).execute(_SPEAKERS, (memory_id,))]


def contents(connection: sa.Connection, memory_ids: Collection[str]) -> dict[str, str]:
    """The texts of these memories, by id; of one that is gone or erased there is none."""
    rows = driver(connection).execute(_BY_ID, (json.dumps(list(memory_ids)),)).fetchall()
    return dict(rows)


def contents_by_short_id(connection: sa.Connection, short_ids: Collection[str]) -> dict[str, str]:
    """Return the texts of the memories that short ids stand for; of the erased there is none."""
    if not short_ids:
        return {}
    rows = driver(connection).execute(_BY_SHORT_ID, (json.dumps(list(short_ids)),)).fetchall()
    return dict(rows)
