"""The floor beside the measurements: plain SQL on the same data, no Python around it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memgraph.retrieval import query
from memgraph.storage import sqlite

LEG = 50
# Tables that one remembered turn writes to, in an order that foreign keys allow.
_WRITTEN = (
    "memory_sources",
    "sessions",
    "memories",
    "memory_status",
    "memory_embeddings",
    "entities",
    "memory_entities",
    "audit_log",
)


def fill_floor(path: Path, database: Path) -> int:
    """An FTS5 and a float vec0 table of the same texts and vectors; gives the bytes on disk."""
    connection = _connect(path, create=True)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("ATTACH ? AS given", (str(database),))
    connection.execute(
        "CREATE VIRTUAL TABLE texts USING fts5("
        "content, tokenize='porter unicode61 remove_diacritics 2')"
    )
    connection.execute(
        "CREATE VIRTUAL TABLE vectors USING vec0(pk INTEGER PRIMARY KEY, v float[256])"
    )
    connection.execute("BEGIN")
    connection.execute("INSERT INTO texts (rowid, content) SELECT pk, content FROM given.memories")
    connection.execute(
        "INSERT INTO vectors (pk, v) SELECT memory_pk, vector FROM given.memory_embeddings"
        " WHERE state = 'ready'"
    )
    connection.execute("COMMIT")
    connection.execute("DETACH given")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


def time_floor(path: Path, questions: Sequence[tuple[str, bytes]]) -> list[float]:
    """Milliseconds of FTS5's best 50 of any word, then vec0's nearest 50, for each question."""
    connection = _connect(path)
    asked = [(_any_word(text), vector) for text, vector in questions]
    taken = []
    for match, vector in asked:
        start = time.perf_counter()
        connection.execute(
            "SELECT rowid, rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (match, LEG)
        ).fetchall()
        connection.execute(
            "SELECT pk, distance FROM vectors WHERE v MATCH ? AND k = ?", (vector, LEG)
        ).fetchall()
        taken.append((time.perf_counter() - start) * 1000)
    connection.close()
    return taken


def time_writes(copy: Path, written: Path, count: int) -> list[float]:
    """Milliseconds of one transaction for each of the last ``count`` memories of ``written``.

    Writes the same rows into ``copy``, a copy of the database from before they were written.
    """
    connection = _connect(copy)
    connection.execute("ATTACH ? AS given", (str(written),))
    batches = _rows_by_memory(connection, count)
    connection.execute("DETACH given")
    taken = []
    for batch in batches:
        start = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        for statement, rows in batch:
            connection.executemany(statement, rows)
        connection.execute("COMMIT")
        taken.append((time.perf_counter() - start) * 1000)
    connection.close()
    return taken


def _rows_by_memory(connection: Any, count: int) -> list[list[tuple[str, list[Any]]]]:
    """For each of the new memories the statements and rows that store it."""
    pks = [
        pk
        for (pk,) in connection.execute(
            "SELECT pk FROM given.memories ORDER BY pk DESC LIMIT ?", (count,)
        )
    ][::-1]
    seqs = [
        seq
        for (seq,) in connection.execute(
            "SELECT seq FROM given.audit_log ORDER BY seq DESC LIMIT ?", (count,)
        )
    ][::-1]
    key_of = {
        "memory_sources": "source_id = (SELECT source_id FROM given.memories WHERE pk = :pk)",
        "sessions": "session_id = (SELECT session_id FROM given.memories WHERE pk = :pk)",
        "memories": "pk = :pk",
        "memory_status": "memory_id = (SELECT memory_id FROM given.memories WHERE pk = :pk)",
        "memory_embeddings": "memory_pk = :pk",
        "entities": "pk IN (SELECT entity_pk FROM given.memory_entities WHERE memory_pk = :pk)",
        "memory_entities": "memory_pk = :pk",
        "audit_log": "seq = :seq",
    }
    batches = []
    for pk, seq in zip(pks, seqs, strict=True):
        batch = []
        for table in _WRITTEN:
            found = connection.execute(
                f"SELECT * FROM given.{table} WHERE {key_of[table]}", {"pk": pk, "seq": seq}
            ).fetchall()
            if found:
                marks = ", ".join("?" * len(found[0]))
                batch.append((f"INSERT OR REPLACE INTO main.{table} VALUES ({marks})", found))
        batches.append(batch)
    return batches


def _any_word(text: str) -> str:
    words = query.read(text).words.values()
    return " OR ".join(f'"{word}"' for word in words)


def _connect(path: Path, *, create: bool = False) -> Any:
    return sqlite.connect(path, busy_timeout_ms=30_000, create=create)
