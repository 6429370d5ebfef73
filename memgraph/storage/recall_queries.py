"""The SQL of recall's legs: FTS5, vec0 and plain rows, each narrowed before it is ranked.

Every function works on the connection of one reader's snapshot. What the ``View`` hides and what a
filter leaves out never takes a place in a leg, nor serves as a neighbour or as an end of an edge.
Limits are written out, as in ``tier_queries``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pysqlite3.dbapi2 as sqlite
import sqlalchemy as sa

from memgraph.model.enums import MemoryStatus, Scope
from memgraph.model.values import Memory
from memgraph.policy.scope import Viewer, predicate
from memgraph.storage import vectors
from memgraph.storage.narrowing import Narrowing
from memgraph.storage.rows import memory_from_row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.storage.vector_search import Vectors

# Text beyond this is not looked at when candidates are compared; the index holds all of it.
MAX_COMPARED_CHARS = 4_000
MOST_WITHOUT_VECTOR = 2_000
_STEPS_BETWEEN_LOOKS = 20_000
# A step of the vocabulary may walk a long list.
STEPS_OF_VOCABULARY = 200


class Candidate(NamedTuple):
    """What ranking needs of a memory. Times are milliseconds, ``status`` is that of the view."""

    pk: int
    memory_id: str
    status: str
    content: str
    session_id: str | None
    sequence: int | None
    source_role: str | None
    event_time: int | None
    created_at: int
    importance: int
    confidence: float
    decay_rate: float
    last_accessed_at: int | None


@contextmanager
def deadline(connection: sa.Connection, ms: int, steps: int | None = None) -> Iterator[None]:
    """Statements inside are interrupted after ``ms``; `expired` tells such an error.

    The clock is looked at after so many ``steps`` of SQLite's machine.
    """
    driver: Any = connection.connection.driver_connection
    end = time.monotonic() + ms / 1000
    driver.set_progress_handler(lambda: time.monotonic() > end, steps or _STEPS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        driver.set_progress_handler(None, 0)


def expired(error: sqlite.Error) -> bool:
    """Whether a statement failed because its deadline was over."""
    return bool(getattr(error, "sqlite_errorcode", None) == sqlite.SQLITE_INTERRUPT)


def document_count(connection: sa.Connection) -> int:
    """How many memories there are, erased ones counted too: the highest key."""
    [(count,)] = plain_rows(connection, "SELECT coalesce(max(pk), 0) FROM memories", ())
    return int(count)


def document_frequencies(connection: sa.Connection, stems: Collection[str]) -> dict[str, int]:
    """In how many memories each stem stands; one that stands in none is left out.

    The cost of a stem grows with its frequency.
    """
    plain_rows(
        connection,
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.memory_terms"
        " USING fts5vocab('main', 'memory_fts', 'col')",
        (),
    )
    found = plain_rows(
        connection,
        "SELECT f.value, max(t.doc) FROM json_each(?) f CROSS JOIN temp.memory_terms t"
        " ON t.term = f.value WHERE t.col <> 'source_role' GROUP BY f.value",
        (json.dumps(sorted(stems)),),
    )
    return {str(stem): int(count) for stem, count in found}


def by_text(
    connection: sa.Connection, match: str, narrowing: Narrowing, limit: int
) -> list[Candidate]:
    """Memories that fulfil an FTS5 expression, best bm25 first."""
    # FTS5 gives its rows in the order of rank, so the join stops at the limit.
    statement = (
        f"SELECT {_candidate_columns(narrowing)} FROM memory_fts f"
        f" CROSS JOIN memories m ON m.pk = f.rowid"
        f" WHERE f.memory_fts MATCH :match AND {narrowing.where('m')}"
        f" ORDER BY f.rank LIMIT {limit:d}"
    )
    values = narrowing.params | {"match": match}
    return [Candidate._make(row) for row in plain_rows(connection, statement, values)]


def keys_matching(connection: sa.Connection, match: str, after: int = 0) -> NDArray[np.int64]:
    """Keys above ``after`` that fulfil an FTS5 expression, ascending, whoever may see them."""
    # As one text: to take ten thousand rows one by one takes four times as long.
    [(found,)] = plain_rows(
        connection,
        "SELECT group_concat(rowid) FROM (SELECT rowid FROM memory_fts WHERE memory_fts MATCH ?"
        " AND rowid > ? ORDER BY rowid)",
        (match, after),
    )
    return _numbers(found or "")


def _numbers(listed: str) -> NDArray[np.int64]:
    """The whole numbers of a text, ascending and from 0, with a comma between two."""
    import numpy as np

    codes = np.frombuffer(f"{listed},".encode() if listed else b"", dtype=np.uint8)
    widths = np.diff(np.flatnonzero(codes == ord(",")), prepend=-1)
    found = np.empty(len(widths), dtype=np.int64)
    done = 0
    # Those of as many digits stand together: a rectangle of digits, the comma its last column.
    while done < len(widths):
        width = int(widths[done])
        count = int(np.searchsorted(widths, width, side="right")) - done
        digits = codes[: width * count].reshape(count, width)[:, :-1].astype(np.int64) - ord("0")
        found[done : done + count] = digits @ 10 ** np.arange(width - 2, -1, -1)
        codes, done = codes[width * count :], done + count
    return found


def mean_tokens(connection: sa.Connection) -> tuple[float, float]:
    """How many words FTS5 has indexed for a memory on average: of its content, and beside it."""
    # FTS5 keeps them in row 1 of its data: the number of rows, then a sum for each column.
    [(block,)] = plain_rows(connection, "SELECT block FROM memory_fts_data WHERE id = 1", ())
    rows, of_content, *beside = _varints(block)
    return of_content / max(rows, 1), sum(beside) / max(rows, 1)


def _varints(block: bytes) -> Iterator[int]:
    """SQLite's integers of variable length: seven bits in a byte, the highest first, below 2^56."""
    value = 0
    for byte in block:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            yield value
            value = 0


def by_vector(
    connection: sa.Connection,
    query: NDArray[np.float32],
    narrowing: Narrowing,
    limit: int,
    *,
    compare_all: bool = False,
    read: Vectors,
) -> list[Candidate]:
    """Memories by cosine similarity of their canonical vectors, best first.

    Args:
        compare_all: every vector, from the rows themselves.
        read: keeps what was read to that end.
    """
    visibilities = _visibilities(narrowing)
    if compare_all:
        best = read.nearest_of_all(query, limit)
    else:
        best = read.nearest(query, limit, visibilities=visibilities)
    found = _first_that_pass(connection, best, narrowing, limit)
    if len(found) < limit <= len(best):
        # Too few of the nearest may be shown: search among what may be.
        best = read.nearest(
            query, limit, visibilities=visibilities, among=allowed(connection, narrowing)
        )
        found = _first_that_pass(connection, best, narrowing, limit)
    return found


def _first_that_pass(
    connection: sa.Connection, pks: Sequence[int], narrowing: Narrowing, limit: int
) -> list[Candidate]:
    found: list[Candidate] = []
    for start in range(0, len(pks), limit):
        found.extend(candidates(connection, pks[start : start + limit], narrowing))
        if len(found) >= limit:
            break
    return found[:limit]


def by_entities(
    connection: sa.Connection, weights: Mapping[int, float], narrowing: Narrowing, limit: int
) -> list[Candidate]:
    """Memories that name some entities, by the sum of the entities' weights, then the newest."""
    # Keys first: of thousands that name an entity, only as many are read as are shown.
    found = plain_rows(
        connection,
        "SELECT l.memory_pk, sum(f.value) AS weight FROM json_each(?) f"
        " CROSS JOIN memory_entities l ON l.entity_pk = CAST(f.key AS INTEGER)"
        " GROUP BY l.memory_pk ORDER BY weight DESC, l.memory_pk DESC",
        (json.dumps(dict(weights)),),
    )
    return _first_that_pass(connection, [pk for pk, _ in found], narrowing, limit)


def by_filters(connection: sa.Connection, narrowing: Narrowing, limit: int) -> list[Candidate]:
    """What the filters let through, the most important first, then the newest."""
    statement = (
        f"SELECT {_candidate_columns(narrowing)} FROM memories m WHERE {narrowing.where('m')}"
        f" ORDER BY {narrowing.view.value('importance', 'm')} DESC,"
        " coalesce(m.event_time, m.created_at) DESC, m.pk DESC"
        f" LIMIT {limit:d}"
    )
    return [Candidate._make(row) for row in plain_rows(connection, statement, narrowing.params)]


def candidates(
    connection: sa.Connection, pks: Collection[int], narrowing: Narrowing
) -> list[Candidate]:
    """Those of ``pks`` that pass, in the order of ``pks``."""
    statement = (
        f"SELECT {_candidate_columns(narrowing)} FROM json_each(:pks) f"
        f" CROSS JOIN memories m ON m.pk = f.value WHERE {narrowing.where('m')}"
    )
    values = narrowing.params | {"pks": json.dumps(list(pks))}
    return [Candidate._make(row) for row in plain_rows(connection, statement, values)]


def texts_of(
    connection: sa.Connection, pks: Collection[int], narrowing: Narrowing
) -> list[tuple[int, str]]:
    """(key, text) of those of ``pks`` that pass, in the order of ``pks``."""
    statement = (
        f"SELECT m.pk, substr(m.content, 1, {MAX_COMPARED_CHARS}) FROM json_each(:pks) f"
        f" CROSS JOIN memories m ON m.pk = f.value WHERE {narrowing.where('m')}"
    )
    values = narrowing.params | {"pks": json.dumps(list(pks))}
    return plain_rows(connection, statement, values)


def candidates_by_id(
    connection: sa.Connection, memory_ids: Collection[str], narrowing: Narrowing
) -> list[Candidate]:
    """Those of ``memory_ids`` that pass, in their order."""
    statement = (
        f"SELECT {_candidate_columns(narrowing)} FROM json_each(:memory_ids) f"
        f" CROSS JOIN memories m ON m.memory_id = f.value WHERE {narrowing.where('m')}"
    )
    values = narrowing.params | {"memory_ids": json.dumps(list(memory_ids))}
    return [Candidate._make(row) for row in plain_rows(connection, statement, values)]


def neighbours(
    connection: sa.Connection, pks: Collection[int], narrowing: Narrowing, distance: int
) -> list[Candidate]:
    """What was said up to ``distance`` turns before and after, in the same session."""
    statement = (
        f"SELECT {_candidate_columns(narrowing)} FROM memories m WHERE m.pk IN ("
        "SELECT n.pk FROM json_each(:pks) f CROSS JOIN memories o ON o.pk = f.value"
        " CROSS JOIN memories n ON n.session_id = o.session_id"
        " AND n.sequence BETWEEN o.sequence - :distance AND o.sequence + :distance)"
        " AND m.pk NOT IN (SELECT value FROM json_each(:pks))"
        f" AND {narrowing.where('m')} ORDER BY m.pk"
    )
    values = narrowing.params | {"pks": json.dumps(list(pks)), "distance": distance}
    return [Candidate._make(row) for row in plain_rows(connection, statement, values)]


def memories_of(
    connection: sa.Connection, pks: Collection[int], narrowing: Narrowing
) -> dict[int, Memory]:
    """Whole memories by key, those that pass."""
    statement = (
        f"SELECT m.pk, {narrowing.view.memory_columns('m')} FROM json_each(:pks) f"
        f" CROSS JOIN memories m ON m.pk = f.value WHERE {narrowing.where('m')}"
    )
    values = narrowing.params | {"pks": json.dumps(list(pks))}
    return {pk: memory_from_row(row) for pk, *row in plain_rows(connection, statement, values)}


def has_pending(connection: sa.Connection) -> bool:
    """Whether any memory waits to be embedded: one look into the index of the outbox."""
    [(found,)] = plain_rows(
        connection,
        "SELECT EXISTS (SELECT 1 FROM memory_embeddings"
        " WHERE state = 'pending' AND state <> 'ready')",
        (),
    )
    return bool(found)


def entities_named(connection: sa.Connection, keys: Collection[str]) -> dict[int, int]:
    """Entities known by one of these canonical names or aliases, each with its mention count.

    One that was merged into another gives that one.
    """
    meant = " CROSS JOIN entities r ON r.entity_id = coalesce(e.merged_into, e.entity_id)"
    statement = (
        "SELECT r.pk, r.mention_count FROM json_each(:keys) f"
        f" CROSS JOIN entities e ON e.name_key = f.value{meant}"
        " UNION SELECT r.pk, r.mention_count FROM json_each(:keys) f"
        " CROSS JOIN entity_aliases a ON a.alias_key = f.value"
        f" CROSS JOIN entities e ON e.pk = a.entity_pk{meant} ORDER BY 1"
    )
    return dict(plain_rows(connection, statement, {"keys": json.dumps(sorted(keys))}))


def allowed(connection: sa.Connection, narrowing: Narrowing) -> list[int]:
    """Keys of all memories that pass."""
    statement = f"SELECT m.pk FROM memories m WHERE {narrowing.where('m')}"
    return [pk for (pk,) in plain_rows(connection, statement, narrowing.params)]


def seen_by(
    connection: sa.Connection, narrowing: Narrowing, read: Vectors, most: int
) -> NDArray[np.int64] | None:
    """Keys of all memories that the view shows, and some more, from what the process keeps.

    None: it keeps nothing, or they are more than ``most``, or very many are not embedded yet.
    """
    import numpy as np

    known = read.seen(_visibilities(narrowing))
    if known is None or len(known) > most:
        return None
    # The index knows of those with a vector alone.
    others = plain_rows(
        connection,
        "SELECT memory_pk FROM memory_embeddings WHERE state <> 'ready'"
        f" LIMIT {MOST_WITHOUT_VECTOR + 1:d}",
        (),
    )
    if len(others) > MOST_WITHOUT_VECTOR:
        return None
    return np.concatenate([known, np.array([pk for (pk,) in others], dtype=np.int64)])


def _visibilities(narrowing: Narrowing) -> tuple[int, ...]:
    view = narrowing.view
    # As-of looks at what a memory was: its present status says nothing.
    statuses = frozenset(MemoryStatus)
    if view.as_of is None and view.statuses is not None:
        statuses = view.statuses
    return _marks_of(view.viewer, statuses)


@lru_cache(maxsize=256)
def _marks_of(viewer: Viewer, statuses: frozenset[MemoryStatus]) -> tuple[int, ...]:
    rule = predicate(viewer)
    marks = (
        vectors.visibility(str(scope), scope_id, status.value, sensitivity.value)
        for scope, scope_id in rule.grants
        if scope is Scope.GLOBAL or scope_id is not None
        for status in statuses
        for sensitivity in rule.sensitivities
    )
    return tuple(sorted(marks))


def _candidate_columns(narrowing: Narrowing) -> str:
    view = narrowing.view
    return (
        f"m.pk, m.memory_id, {view.status('m')},"
        f" substr(m.content, 1, {MAX_COMPARED_CHARS}), m.session_id, m.sequence, m.source_role,"
        f" m.event_time, m.created_at, {view.value('importance', 'm')}, {view.confidence('m')},"
        f" {view.value('decay_rate', 'm')}, {view.last_accessed('m')}"
    )


def plain_rows(
    connection: sa.Connection, statement: str, values: Mapping[str, Any] | Sequence[Any]
) -> list[Any]:
    """All rows as plain tuples: the driver's own take half the time."""
    driver: Any = connection.connection.driver_connection
    found: list[Any] = driver.execute(statement, values).fetchall()
    return found
