"""Reading a database that may be damaged: pragmas, joins and raw rows for an audit to judge.

SQLite's. Rows are the driver's tuples, read as they come, so that memory stays flat. Text that is
not UTF-8 is shown with replacement characters instead of failing, so that one bad byte is found
where it lies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as driver
import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from memgraph.errors import DatabaseCorrupt
from memgraph.store import sqlite
from memgraph.store.snapshot import Snapshot, Transaction

MAX_MESSAGES = 20


@contextmanager
def snapshot(path: Path, *, busy_timeout_ms: int = 30_000) -> Iterator[Snapshot]:
    """A read-only snapshot on a connection of its own.

    Raises:
        StorageError: or the subclass that says what is wrong.
    """
    with sqlite.translated_errors():
        raw = sqlite.connect(path, busy_timeout_ms=busy_timeout_ms)
    try:
        with sqlite.translated_errors():
            raw.execute("PRAGMA query_only = ON")
            # Sorting a large journal spills to disk rather than into memory.
            raw.execute("PRAGMA temp_store = FILE")
        raw.text_factory = lambda text: text.decode("utf-8", "replace")
        with sqlite.translated_errors(), _engine(raw, "BEGIN").connect() as connection:
            # It ends by rolling back: on damaged pages even an empty COMMIT fails.
            connection.begin()
            yield Snapshot(connection)
    finally:
        raw.close()


@contextmanager
def alone(path: Path) -> Iterator[Transaction]:
    """One write transaction on a file that nobody else uses: a draft, a fresh copy."""
    with sqlite.translated_errors():
        raw = sqlite.connect(path, busy_timeout_ms=5_000)
        try:
            with (
                _engine(raw, "BEGIN IMMEDIATE").connect() as connection,
                connection.begin(),
            ):
                yield Transaction(connection)
        finally:
            raw.close()


def _engine(raw: Any, begin: str) -> sa.Engine:
    engine = sa.create_engine(
        "sqlite+pysqlite://", module=driver, creator=lambda: raw, poolclass=StaticPool
    )

    @sa.event.listens_for(engine, "begin")
    def _begin(snapshot: Snapshot) -> None:
        snapshot.exec_driver_sql(begin)

    return engine


def rows(snapshot: Snapshot, statement: str, *values: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a statement, one at a time."""
    raw: Any = snapshot.driver
    cursor = raw.cursor()
    try:
        yield from cursor.execute(statement, values)
    finally:
        cursor.close()


def count(snapshot: Snapshot, table: str) -> int:
    ((number,),) = rows(snapshot, f"SELECT count(*) FROM {table}")
    return int(number)


def quick_check(snapshot: Snapshot) -> list[str]:
    """What SQLite itself finds wrong with its pages; empty: nothing.

    It looks at the structure and not at the payload: one flipped byte of a text passes.
    """
    try:
        with sqlite.translated_errors():
            told = [str(row[0]) for row in rows(snapshot, f"PRAGMA quick_check({MAX_MESSAGES})")]
    except DatabaseCorrupt as error:
        return [error.message]
    return [] if told == ["ok"] else told


def schema(snapshot: Snapshot) -> dict[str, str]:
    """The statement that made each table, index and trigger, by ``type name``."""
    found = rows(
        snapshot,
        "SELECT type || ' ' || name, sql FROM sqlite_schema"
        " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )
    return {str(name): " ".join(str(statement).split()) for name, statement in found}


def dangling(snapshot: Snapshot) -> Iterator[tuple[str, int | None, str]]:
    """(table, rowid, the table it refers to) of rows that refer to nothing."""
    for table, rowid, parent, _ in rows(snapshot, "PRAGMA foreign_key_check"):
        yield str(table), rowid, str(parent)


# A text, so that what is joined by it can be looked up: without an affinity it would be scanned.
_DETAIL = "CAST(CASE WHEN json_valid(details) THEN json_extract(details, '$.edge_id') END AS TEXT)"
_LOSER = "CASE WHEN json_valid(details) THEN json_extract(details, '$.loser_id') END"
_GONE = "EXISTS (SELECT 1 FROM audit_log x WHERE x.subject = s.memory_id AND x.action = 'erase')"

# The last entry that tells of a confidence. Those of earlier releases that take a decision back do
# not name who had lost: it is the other side.
MOVED = f"""
    SELECT memory_id, action, details, max(seq), count(*) FILTER (WHERE action = 'confirm') FROM (
        SELECT subject AS memory_id, action, details, seq FROM audit_log
        WHERE action IN ('confirm', 'strengthen', 'weaken', 'regain')
        UNION ALL
        SELECT {_LOSER}, action, details, seq FROM audit_log
        WHERE action IN ('resolve', 'reopen') AND {_LOSER} IS NOT NULL
        UNION ALL
        SELECT CASE WHEN e.from_memory_id = a.subject THEN e.to_memory_id
               ELSE e.from_memory_id END, a.action, a.details, a.seq
        FROM audit_log a JOIN memory_edges e ON e.edge_id = {_DETAIL}
        WHERE a.action = 'reopen' AND json_valid(a.details)
        AND json_type(a.details, '$.loser_id') IS NULL
    ) GROUP BY memory_id
"""

MEMORIES = """
    SELECT m.memory_id, m.kind, m.type, m.content, m.summary, m.sensitivity, m.scope, m.scope_id,
           m.agent_id, m.session_id, m.sequence, m.turn_id, m.source_role, m.event_time,
           m.created_at, m.source_id, m.content_hash, m.search_terms, a.seq, a.at, a.details,
           EXISTS (SELECT 1 FROM audit_log x WHERE x.subject = m.memory_id AND x.action = 'erase'),
           s.source_type, s.captured_by, m.importance, m.confidence, m.decay_rate
    FROM memories m LEFT JOIN memory_sources s ON s.source_id = m.source_id
    LEFT JOIN audit_log a ON a.subject = m.memory_id AND a.action = 'remember'
    ORDER BY m.pk, a.seq
"""

# The rates of all that was stored before it follow the rule of ``policy.decay``.
RATES_CHANGED = "SELECT coalesce(max(seq), 0) FROM audit_log WHERE action = 'rates'"

LOST_MEMORIES = """
    SELECT a.subject, a.seq FROM audit_log a WHERE a.action = 'remember'
    AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.memory_id = a.subject) ORDER BY a.seq
"""

SOURCES = """
    SELECT source_id, source_type, source_path, conversation_id, workflow_run_id, step_id,
           captured_by, locator, content_sha256 FROM memory_sources
"""

STATUS_MISMATCHES = """
    SELECT m.memory_id, m.status, group_concat(s.status) FROM memories m
    LEFT JOIN memory_status s ON s.memory_id = m.memory_id AND s.until IS NULL
    GROUP BY m.pk HAVING count(s.status_id) <> 1 OR max(s.status) <> m.status
"""

# A clock that was set back ends a period where it began.
BROKEN_HISTORIES = """
    SELECT memory_id, status_id FROM (
        SELECT s.memory_id, s.status_id, s.since, m.created_at,
               lag(s.since) OVER periods AS before, lag(s.until) OVER periods AS ended,
               row_number() OVER periods AS place
        FROM memory_status s JOIN memories m ON m.memory_id = s.memory_id
        WINDOW periods AS (PARTITION BY s.memory_id ORDER BY s.status_id)
    ) WHERE CASE WHEN place = 1 THEN since <> created_at
            ELSE ended IS NULL OR ended <> max(before, since) END
"""

# Whoever lost or won a contradiction is journalled under the winner; a job for many under nobody.
# The plus keeps to the index of subjects: of one moment there may be thousands of entries.
UNTOLD_STATUSES = """
    WITH later AS MATERIALIZED (
        SELECT s.memory_id, s.status, s.since FROM memory_status s
        WHERE EXISTS (SELECT 1 FROM memory_status f
                      WHERE f.memory_id = s.memory_id AND f.status_id < s.status_id)
    )
    SELECT s.memory_id, s.status, s.since FROM later s
    WHERE NOT EXISTS (SELECT 1 FROM audit_log a WHERE a.subject = s.memory_id AND +a.at = s.since
                      AND a.action <> 'remember')
    AND NOT EXISTS (SELECT 1 FROM audit_log a WHERE a.subject IS NULL AND a.at = s.since
                    AND a.action <> 'deny')
    AND NOT EXISTS (
        SELECT 1 FROM memory_edges e JOIN audit_log a
        ON a.subject = CASE WHEN e.from_memory_id = s.memory_id
                       THEN e.to_memory_id ELSE e.from_memory_id END
        WHERE e.edge_type = 'Contradicts' AND s.memory_id IN (e.from_memory_id, e.to_memory_id)
        AND a.at = s.since AND a.action IN ('resolve', 'reopen'))
"""

# A memory is stored without a reason, by whom its first entry names.
EDITED_BEGINNINGS = f"""
    SELECT s.memory_id, s.status_id FROM memory_status s
    JOIN audit_log a ON a.subject = s.memory_id AND a.action = 'remember'
    WHERE NOT EXISTS (SELECT 1 FROM memory_status f
                      WHERE f.memory_id = s.memory_id AND f.status_id < s.status_id)
    AND (s.actor IS NOT a.actor
         OR (s.reason IS NOT NULL AND NOT (s.reason = 'erased' AND {_GONE})))
"""

# Once the text of an erased memory is gone, no reason is left that might say it.
UNERASED_REASONS = """
    SELECT s.memory_id, s.status_id FROM audit_log a
    JOIN memories m ON m.memory_id = a.subject JOIN memory_status s ON s.memory_id = m.memory_id
    WHERE a.action = 'erase' AND m.content = '' AND s.reason IS NOT 'erased'
"""

# Each later period with each entry that may have made it. One that begins where the one before it
# began was made under a clock that was set back, when its entry may be of an earlier time.
_AT = """(a.at = s.since OR (a.at < s.since AND EXISTS (
        SELECT 1 FROM memory_status p WHERE p.memory_id = s.memory_id
        AND p.status_id < s.status_id AND p.since = s.since)))"""
STATUS_ENTRIES = f"""
    WITH later AS MATERIALIZED (
        SELECT s.status_id, s.memory_id, s.since, s.actor, s.reason FROM memory_status s
        WHERE EXISTS (SELECT 1 FROM memory_status f
                      WHERE f.memory_id = s.memory_id AND f.status_id < s.status_id)
        AND NOT (s.reason IS 'erased' AND {_GONE})
    )
    SELECT s.status_id, s.memory_id, s.actor, s.reason, a.action, a.subject, a.actor, a.details
    FROM later s JOIN audit_log a ON a.subject = s.memory_id AND {_AT}
    AND a.action IN ('retract', 'restore', 'supersede', 'erase')
    UNION ALL
    SELECT s.status_id, s.memory_id, s.actor, s.reason, a.action, a.subject, a.actor, a.details
    FROM later s
    JOIN memory_edges e ON e.edge_type = 'Contradicts'
    AND s.memory_id IN (e.from_memory_id, e.to_memory_id)
    JOIN audit_log a ON a.subject = CASE WHEN e.from_memory_id = s.memory_id
                                    THEN e.to_memory_id ELSE e.from_memory_id END
    AND {_AT} AND a.action IN ('resolve', 'reopen') AND {_DETAIL} = e.edge_id
    ORDER BY 1
"""

EDGES = f"""
    WITH told AS MATERIALIZED (
        SELECT {_DETAIL} AS edge_id, subject, details, count(*) AS entries, min(seq) FROM audit_log
        WHERE action = 'relate' GROUP BY 1
    ), decided AS MATERIALIZED (
        SELECT {_DETAIL} AS edge_id, action, at, details, max(seq) FROM audit_log
        WHERE action IN ('resolve', 'dismiss', 'reopen') GROUP BY 1
    )
    SELECT e.edge_id, e.from_memory_id, e.to_memory_id, e.edge_type, e.weight, e.reason, e.partial,
           e.resolved_at, e.resolution, t.subject, t.details, t.entries, d.action, d.at, d.details
    FROM memory_edges e LEFT JOIN told t ON t.edge_id = e.edge_id
    LEFT JOIN decided d ON d.edge_id = e.edge_id ORDER BY e.edge_id
"""

LOST_EDGES = f"""
    SELECT told.edge_id, told.seq FROM (
        SELECT {_DETAIL} AS edge_id, seq FROM audit_log WHERE action = 'relate'
    ) told
    WHERE NOT EXISTS (SELECT 1 FROM memory_edges e WHERE e.edge_id = told.edge_id)
"""

VECTORS = "SELECT count(*) FROM memory_embeddings WHERE state = 'ready'"

WITHOUT_VECTOR = """
    SELECT m.memory_id FROM memories m
    WHERE NOT EXISTS (SELECT 1 FROM memory_embeddings e WHERE e.memory_pk = m.pk)
"""

MISCOUNTED_ENTITIES = """
    SELECT e.entity_id, e.mention_count, coalesce(l.mentions, 0) FROM entities e
    LEFT JOIN (SELECT entity_pk, count(*) AS mentions FROM memory_entities GROUP BY 1) l
    ON l.entity_pk = e.pk WHERE e.mention_count <> coalesce(l.mentions, 0) ORDER BY e.pk
"""
