"""Rows of ``memories`` and what belongs to one: its source, status history and derivations.

Every function works on a snapshot or transaction that the caller holds.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.errors import NotFound
from memgraph.ids import SHORT_CHARS
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType, ShownStatus
from memgraph.model.values import Memory, Source
from memgraph.store import embeddings, tables
from memgraph.store.rows import (
    MEMORY_COLUMNS,
    MEMORY_FIELDS,
    SOURCE_FIELDS,
    json_text,
    memory_from_row,
)
from memgraph.store.snapshot import Insert, Snapshot, Transaction, driver
from memgraph.store.visibility import View

_SHORT_ID = re.compile(rf"[0-9A-HJKMNP-TV-Z]{{{SHORT_CHARS}}}")
_COLUMNS = ("pk", *MEMORY_FIELDS, "search_terms")
_STATUS_COLUMNS = ("memory_id", "status", "since", "until", "actor", "reason")
_insert = Insert("memories", _COLUMNS)
_insert_source = Insert("memory_sources", SOURCE_FIELDS, or_ignore=True)
_insert_status = Insert("memory_status", _STATUS_COLUMNS)
_insert_derivation = Insert(
    "memory_derivations", ("memory_id", "derived_from_id", "added_at"), or_ignore=True
)
_memory_values = itemgetter(*_COLUMNS)
_status_values = itemgetter(*_STATUS_COLUMNS)
_SAME_CONTENT = (
    "SELECT memory_id, content_hash, kind, type, scope, scope_id, sensitivity, agent_id, item_id"
    " FROM memories WHERE {hash} IN (SELECT value FROM json_each(?)) AND {item}"
    " AND status = 'active' AND kind <> 'episode'"
    " AND (valid_until IS NULL OR valid_until > ?) ORDER BY pk"
)
_SAME_UNNAMED = _SAME_CONTENT.format(hash="content_hash", item="item_id IS NULL")
# Thousands of items may say the same; few have the same name. "+" keeps to the index of names.
_SAME_NAMED = _SAME_CONTENT.format(
    hash="+content_hash", item="item_id IN (SELECT value FROM json_each(?))"
)


class Turn(NamedTuple):
    """What makes two turns with an id the same turn."""

    session_id: str
    turn_id: str
    content_hash: str
    source_role: str | None
    scope: str
    scope_id: str | None
    agent_id: str | None
    item_id: str | None


_SAME_TURNS = (
    f"SELECT {', '.join(f'm.{name}' for name in Turn._fields)}, m.memory_id FROM json_each(?) f"
    " CROSS JOIN memories m ON m.session_id = f.value ->> 0 AND m.turn_id = f.value ->> 1"
    " WHERE m.turn_id IS NOT NULL AND m.kind = 'episode' AND m.status <> 'retracted'"
)


def next_pk(snapshot: Snapshot) -> int:
    """The key of the next row; the caller holds the only write transaction."""
    [(last,)] = driver(snapshot).execute("SELECT max(pk) FROM memories")
    return int(last or 0) + 1


def insert(transaction: Transaction, rows: Sequence[dict[str, Any]]) -> None:
    """Rows with every column of the table, ``pk`` included."""
    _insert(transaction, [_memory_values(row) for row in rows])


@lru_cache(maxsize=1024)
def source_id(source: Source) -> str:
    """The id of a source is made from what it says: equal sources are one row."""
    said = json_text(source.model_dump(mode="json"))
    return "src_" + hashlib.sha256(said.encode()).hexdigest()[:32]


def insert_sources(transaction: Transaction, given: Mapping[str, Source]) -> None:
    """Store what is not there yet, by ``source_id``."""
    _insert_source(
        transaction,
        [(key, *each.model_dump(mode="json").values()) for key, each in given.items()],
    )


def insert_statuses(transaction: Transaction, rows: Sequence[dict[str, Any]]) -> None:
    _insert_status(transaction, [_status_values(row) for row in rows])


def insert_derivations(
    transaction: Transaction, pairs: Sequence[tuple[str, str]], *, added_at: int | None = None
) -> None:
    """Pairs of (memory, the memory it was derived from); a repeated pair is left as it is.

    Args:
        added_at: when the grounds were found; None: with the memories themselves.
    """
    _insert_derivation(transaction, [(*pair, added_at) for pair in pairs])


def same_content(
    snapshot: Snapshot,
    hashes: Sequence[str],
    view: View | None = None,
    *,
    item_ids: Sequence[str] | None = None,
    at: int,
) -> list[sa.Row[Any]]:
    """Active memories but turns whose content hash is one of ``hashes``, oldest first.

    Enums are given by value; ``view`` None: all of them. What is valid no more ``at`` that time
    is not among them: it says nothing of now.

    Args:
        item_ids: memories with one of these; None: those without any.
    """
    if not hashes:
        return []
    given = (json.dumps(list(hashes)),)
    if item_ids is None:
        found = list(snapshot.exec_driver_sql(_SAME_UNNAMED, (*given, at)))
    else:
        named = (*given, json.dumps(list(item_ids)), at)
        found = list(snapshot.exec_driver_sql(_SAME_NAMED, named))
    if view is None:
        return found
    seen = existing_ids(snapshot, [row.memory_id for row in found], view)
    return [row for row in found if row.memory_id in seen]


def same_turns(
    snapshot: Snapshot, turns: Collection[tuple[str, str]], view: View | None = None
) -> dict[Turn, str]:
    """Turns that are stored under these (session, turn id), by all that makes two one."""
    if not turns:
        return {}
    found = driver(snapshot).execute(_SAME_TURNS, (json.dumps(list(turns)),)).fetchall()
    seen = existing_ids(snapshot, [row[-1] for row in found], view)
    return {Turn(*row[:-1]): row[-1] for row in found if row[-1] in seen}


def existing_ids(snapshot: Snapshot, ids: Sequence[str], view: View | None = None) -> set[str]:
    """Those of ``ids`` that are stored and visible; None: whoever looks."""
    if not ids:
        return set()
    condition = "1" if view is None else view.text.where("m")
    values = {} if view is None else view.params
    found = snapshot.execute(
        sa.text(
            "SELECT m.memory_id FROM memories m"
            f" WHERE m.memory_id IN (SELECT value FROM json_each(:ids)) AND {condition}"
        ),
        {**values, "ids": json.dumps(list(ids))},
    )
    return set(found.scalars())


def require(snapshot: Snapshot, ids: Sequence[str], view: View | None = None) -> None:
    """Raises NotFound: one of them is not there, or not visible; both sound the same."""
    found = existing_ids(snapshot, ids, view)
    for memory_id in ids:
        if memory_id not in found:
            raise NotFound(f"no memory {memory_id[:80]!r}", memory_id=memory_id[:80])


def is_short(given: object) -> bool:
    """Tell whether something looks like the short id that a prompt cites a memory by."""
    return isinstance(given, str) and _SHORT_ID.fullmatch(given) is not None


def whole_ids(snapshot: Snapshot, given: Sequence[str], view: View) -> list[str]:
    """Return the ids that short ones stand for, in order; any other text as it is.

    A short id that several visible memories have, or none, stays as it is: there is no such memory.
    """
    short = {one for one in given if is_short(one)}
    found = driver(snapshot).execute(
        f"SELECT substr(m.memory_id, -{SHORT_CHARS}) AS short, min(m.memory_id) FROM memories m"
        " WHERE short IN (SELECT value FROM json_each(:short))"
        f" AND {view.text.where('m')} GROUP BY short HAVING count(*) = 1",
        view.params | {"short": json.dumps(sorted(short))},
    )
    whole = dict(found)
    return [whole.get(one, one) for one in given]


def get(snapshot: Snapshot, memory_id: str, view: View | None = None) -> Memory:
    """One memory, whatever its status. Raises NotFound, as ``require`` does."""
    require(snapshot, [memory_id], view)
    return get_many(snapshot, [memory_id])[0]


def get_many(snapshot: Snapshot, ids: Sequence[str]) -> list[Memory]:
    """In the order of their keys; unknown ids are left out."""
    found = snapshot.exec_driver_sql(
        f"SELECT {MEMORY_COLUMNS} FROM memories"
        " WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY pk",
        (json.dumps(list(ids)),),
    )
    return [memory_from_row(row) for row in found]


def set_status(
    transaction: Transaction,
    memory_id: str,
    status: MemoryStatus,
    *,
    at: int,
    actor: str,
    reason: str | None,
) -> None:
    """Change a status, its history and the index; the old period ends where the new one begins.

    ``valid_until`` becomes the end of an active memory unless it had one, and is open again when
    the memory returns; an end that was given with the memory stays. A memory that returns to being
    active counts as accessed: someone asked for it, and its decay begins anew.
    """
    open_period = sa.and_(
        tables.statuses.c.memory_id == memory_id, tables.statuses.c.until.is_(None)
    )
    # A clock that was set back must not let a period begin before the one that it ends.
    last = transaction.execute(sa.select(tables.statuses.c.since).where(open_period)).scalar()
    at = max(at, last or at)
    transaction.execute(sa.update(tables.statuses).where(open_period).values(until=at))
    insert_statuses(
        transaction,
        [
            {
                "memory_id": memory_id,
                "status": status.value,
                "since": at,
                "until": None,
                "actor": actor,
                "reason": reason,
            }
        ],
    )
    end: sa.ColumnElement[Any] = tables.memories.c.valid_until
    accessed: sa.ColumnElement[Any] = tables.memories.c.last_accessed_at
    if status is MemoryStatus.ACTIVE:
        history = tables.statuses.c
        ends = sa.select(history.since).where(
            history.memory_id == memory_id, history.status != MemoryStatus.ACTIVE
        )
        end = sa.case((end.in_(ends), sa.null()), else_=end)
        accessed = sa.func.max(sa.func.coalesce(accessed, at), at)
    else:
        end = sa.func.coalesce(end, at)
    update(
        transaction,
        memory_id,
        status=status,
        updated_at=at,
        valid_until=end,
        last_accessed_at=accessed,
    )
    embeddings.index(transaction).refresh([memory_id])


def update(transaction: Transaction, memory_id: str, **values: Any) -> None:
    """Set columns other than the content, which never changes.

    ``updated_at`` belongs to every change but the stamp of enriching: the values that were are kept
    until then, and a memory that was not updated since a time is as it was then.
    """
    if "attributes" in values:
        values["attributes"] = json_text(values["attributes"])
    if "updated_at" in values:
        values["updated_at"] = sa.func.max(tables.memories.c.updated_at, values["updated_at"])
    transaction.execute(
        sa.update(tables.memories).where(tables.memories.c.memory_id == memory_id).values(**values)
    )


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories to list; an empty field leaves nothing out.

    ``tags`` asks for all of them; ``before`` is the id of the last memory of the page before.
    ``statuses``: as they are shown; what is erased is of no other, whatever the time.
    """

    memory_ids: tuple[str, ...] = ()
    types: tuple[MemoryType, ...] = ()
    kinds: tuple[MemoryKind, ...] = ()
    tags: tuple[str, ...] = ()
    session_id: str | None = None
    before: str | None = None
    statuses: frozenset[ShownStatus] = frozenset()

    def stored(self, as_of: int | None) -> frozenset[MemoryStatus] | None:
        """The statuses of rows among which they are; None: any."""
        if as_of is not None and ShownStatus.ERASED in self.statuses:
            return None
        return frozenset(map(_stored_status, self.statuses)) or None


def _stored_status(shown: ShownStatus) -> MemoryStatus:
    return MemoryStatus.RETRACTED if shown is ShownStatus.ERASED else MemoryStatus(shown)


_ERASED = "(m.status = 'retracted' AND m.content = '')"


def _shown_as(statuses: frozenset[ShownStatus], view: View) -> str:
    """The condition that a memory is shown as one of these, where one is asked for."""
    others = ", ".join(f"'{each.value}'" for each in sorted(statuses - {ShownStatus.ERASED}))
    if ShownStatus.ERASED not in statuses:
        # As of an earlier time it may have had any status.
        leaves_out = view.as_of is not None or ShownStatus.RETRACTED in statuses
        return f"NOT {_ERASED}" if statuses and leaves_out else "1"
    return f"({_ERASED} OR {view.text.status('m')} IN ({others}))" if others else _ERASED


def select(snapshot: Snapshot, view: View, chosen: Filter, *, limit: int) -> list[Memory]:
    """Visible memories that pass the filter, newest first."""
    terms = [view.text.where("m"), _shown_as(chosen.statuses, view)]
    values: dict[str, Any] = {**view.params, "limit": limit}
    for column, wanted in (
        ("memory_id", chosen.memory_ids),
        ("type", chosen.types),
        ("kind", chosen.kinds),
    ):
        if wanted:
            terms.append(f"m.{column} IN (SELECT value FROM json_each(:{column}))")
            values[column] = json.dumps(wanted)
    if chosen.tags:
        terms.append(
            "NOT EXISTS (SELECT 1 FROM json_each(:tags) t"
            f" WHERE t.value NOT IN (SELECT value FROM json_each({view.text.value('tags', 'm')})))"
        )
        values["tags"] = json.dumps(chosen.tags)
    if chosen.session_id is not None:
        terms.append("m.session_id = :session_id")
        values["session_id"] = chosen.session_id
    if chosen.before is not None:
        # One that is hidden is none, lest the page should tell of it; one of another status is.
        seen = View(view.viewer).text.where("b")
        terms.append(f"m.pk < (SELECT b.pk FROM memories b WHERE b.memory_id = :before AND {seen})")
        values["before"] = chosen.before
    statement = sa.text(
        f"SELECT {view.text.memory_columns('m')} FROM memories m"
        f" WHERE {' AND '.join(terms)} ORDER BY m.pk DESC LIMIT :limit"
    )
    return [memory_from_row(row) for row in snapshot.execute(statement, values)]


def counts(snapshot: Snapshot, view: View | None = None) -> dict[str, dict[str, int]]:
    """How many visible memories there are of each kind, type and shown status; None: of all."""
    condition = "1" if view is None else view.text.where("m")
    values = {} if view is None else view.params
    found: dict[str, Counter[str]] = {"kind": Counter(), "type": Counter(), "status": Counter()}
    # An index has type and status together: the table is read once, for the kind.
    for columns in (("kind",), ("type", "status")):
        named = ", ".join(f"m.{each}" for each in columns)
        statement = sa.text(
            f"SELECT {named}, count(*) FROM memories m WHERE {condition} GROUP BY {named}"
        )
        for *names, count in snapshot.execute(statement, values):
            for column, name in zip(columns, names, strict=True):
                found[column][str(name)] += count
    statement = sa.text(f"SELECT count(*) FROM memories m WHERE {_ERASED} AND {condition}")
    erased = snapshot.execute(statement, values).scalar_one()
    moved = Counter({ShownStatus.RETRACTED.value: -erased, ShownStatus.ERASED.value: erased})
    found["status"].update(moved)
    found["status"] = +found["status"]
    return {column: dict(sorted(each.items())) for column, each in found.items()}


# The status of many memories at once: column, history and vector index, in a few statements.


_END_PERIODS: Final = (
    "UPDATE memory_status SET until = max(since, ?)"
    " WHERE until IS NULL AND memory_id IN (SELECT value FROM json_each(?))"
)
_BEGIN_PERIODS: Final = (
    "INSERT INTO memory_status (memory_id, status, since, until, actor, reason)"
    " SELECT f.value, ?, max(?, coalesce((SELECT max(h.until) FROM memory_status h"
    " WHERE h.memory_id = f.value), 0)), NULL, ?, ? FROM json_each(?) f"
)
_SET: Final = (
    "UPDATE memories SET status = ?, updated_at = max(updated_at, ?), {}"
    " WHERE memory_id IN (SELECT value FROM json_each(?))"
)
# The time at which the new period begins, which a clock that was set back does not put before the
# one that it ends.
_BEGUN: Final = "SELECT h.since FROM memory_status h WHERE h.memory_id = memories.memory_id"
_END: Final = _SET.format(f"valid_until = coalesce(valid_until, ({_BEGUN} AND h.until IS NULL))")
# An end that was given with a memory stays, one that a change of its status made is open again.
_RETURN: Final = _SET.format(
    f"last_accessed_at = max(coalesce(last_accessed_at, 0), ({_BEGUN} AND h.until IS NULL)),"
    f" valid_until = CASE WHEN valid_until IN ({_BEGUN} AND h.status <> 'active') THEN NULL"
    " ELSE valid_until END"
)


def set_statuses(
    snapshot: Snapshot,
    memory_ids: Sequence[str],
    status: MemoryStatus,
    *,
    at: int,
    actor: str,
    reason: str,
) -> None:
    """Change the status of memories that have another one."""
    ids = json.dumps(list(memory_ids))
    execute = driver(snapshot).execute
    execute(_END_PERIODS, (at, ids))
    execute(_BEGIN_PERIODS, (status.value, at, actor, reason, ids))
    execute(_RETURN if status is MemoryStatus.ACTIVE else _END, (status.value, at, ids))
    embeddings.index(snapshot).refresh(memory_ids)


# Values that were, as far as an older schema tells them: for exports that were made of one.


KEPT_SINCE: Final = "0005"
"""The schema from which on every change leaves the values that were."""

# Word for word those of the migration to that schema.
_LOST: Final = """
    INSERT INTO memory_revisions
        (memory_id, until, importance, confidence, decay_rate, valid_until, tags, attributes)
    SELECT m.memory_id, lost.at, m.importance, lost.confidence, m.decay_rate,
        nullif(m.valid_until, lost.at), m.tags, m.attributes
    FROM (SELECT json_extract(resolution, '$.loser_id') AS loser_id, min(resolved_at) AS at,
            json_extract(resolution, '$.loser_prior_confidence') AS confidence
        FROM memory_edges WHERE edge_type = 'Contradicts' AND resolved_at IS NOT NULL
        GROUP BY 1) lost
    JOIN memories m ON m.memory_id = lost.loser_id
    WHERE lost.confidence IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM memory_revisions r WHERE r.memory_id = m.memory_id)
"""
_OPEN: Final = """
    INSERT INTO memory_revisions
        (memory_id, until, importance, confidence, decay_rate, valid_until, tags, attributes)
    SELECT m.memory_id, h.since, m.importance, m.confidence, m.decay_rate, NULL, m.tags,
        m.attributes
    FROM memory_status h JOIN memories m ON m.memory_id = h.memory_id
    WHERE h.until IS NULL AND h.status <> 'active' AND m.valid_until = h.since
        AND h.since > m.created_at
        AND NOT EXISTS (SELECT 1 FROM memory_revisions r WHERE r.memory_id = m.memory_id)
"""


def fill_in(snapshot: Snapshot) -> None:
    """Keep the confidence before a contradiction was lost, and that an end was open before it."""
    for statement in (_LOST, _OPEN):
        driver(snapshot).execute(statement)
