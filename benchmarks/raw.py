"""The floor beside the measurements: plain SQL on the same data, no Python around it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memgraph.retrieval import request
from memgraph.store import sqlite

LEG = 50
# Tables that one remembered turn writes to, in an order that foreign keys allow, and the rows of
# a memory in each.
_WRITTEN: Mapping[str, str] = {
    "memory_sources": "source_id = (SELECT source_id FROM given.memories WHERE pk = :pk)",
    "sessions": "session_id = (SELECT session_id FROM given.memories WHERE pk = :pk)",
    "memories": "pk = :pk",
    "memory_status": "memory_id = (SELECT memory_id FROM given.memories WHERE pk = :pk)",
    "memory_embeddings": "memory_pk = :pk",
    "entities": "pk IN (SELECT entity_pk FROM given.memory_entities WHERE memory_pk = :pk)",
    "memory_entities": "memory_pk = :pk",
    "audit_log": "seq = :seq",
}


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
    after = 0
    while rows := connection.execute(
        "SELECT memory_pk, vector FROM given.memory_embeddings WHERE state = 'ready'"
        " AND memory_pk > ? ORDER BY memory_pk LIMIT 10000",
        (after,),
    ).fetchall():
        connection.executemany(
            "INSERT INTO vectors (pk, v) VALUES (?, ?)",
            [(pk, np.frombuffer(vector, np.int8).astype("<f4").tobytes()) for pk, vector in rows],
        )
        after = rows[-1][0]
    connection.execute("COMMIT")
    connection.execute("DETACH given")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


class Floor:
    """FTS5's best 50 of any word, then the nearest 50 of vec0: what recall is held against.

    Opened as the product opens its database: the same driver, cache and extension.
    """

    def __init__(self, path: Path) -> None:
        self._connection = _connect(path)

    def seconds(self, asked: tuple[str, bytes]) -> float:
        """How long the two statements take for an FTS5 expression and a float32 vector."""
        match, vector = asked
        start = time.perf_counter()
        self._connection.execute(
            "SELECT rowid, rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (match, LEG)
        ).fetchall()
        self._connection.execute(
            "SELECT pk, distance FROM vectors WHERE v MATCH ? AND k = ?", (vector, LEG)
        ).fetchall()
        return time.perf_counter() - start

    def close(self) -> None:
        self._connection.close()


class PlainWrites:
    """Writes what memgraph wrote last once more, one plain transaction for each memory.

    Args:
        copy: a copy of the database, made before.
        written: the database.
    """

    def __init__(self, copy: Path, written: Path) -> None:
        self._connection = _connect(copy)
        self._written = str(written)

    def seconds(self, count: int) -> list[float]:
        """How long each of the last ``count`` memories takes."""
        self._connection.execute("ATTACH ? AS given", (self._written,))
        batches = [list(self._rows(pk, seq)) for pk, seq in self._last(count)]
        self._connection.execute("DETACH given")
        return [self._write(batch) for batch in batches]

    def close(self) -> None:
        self._connection.close()

    def _write(self, batch: Sequence[tuple[str, list[Any]]]) -> float:
        start = time.perf_counter()
        self._connection.execute("BEGIN IMMEDIATE")
        for statement, rows in batch:
            self._connection.executemany(statement, rows)
        self._connection.execute("COMMIT")
        return time.perf_counter() - start

    def _last(self, count: int) -> Iterable[tuple[int, int]]:
        """Keys of the last memories and of their entries in the journal, oldest first."""
        pks, seqs = (
            self._connection.execute(
                f"SELECT {key} FROM given.{table} ORDER BY {key} DESC LIMIT ?", (count,)
            ).fetchall()[::-1]
            for table, key in (("memories", "pk"), ("audit_log", "seq"))
        )
        return zip((pk for (pk,) in pks), (seq for (seq,) in seqs), strict=True)

    def _rows(self, pk: int, seq: int) -> Iterable[tuple[str, list[Any]]]:
        """The statements and rows that store a memory."""
        for table, where in _WRITTEN.items():
            found = self._connection.execute(
                f"SELECT * FROM given.{table} WHERE {where}", {"pk": pk, "seq": seq}
            ).fetchall()
            if found:
                marks = ", ".join("?" * len(found[0]))
                # A source that is there already is not written again, by memgraph neither.
                instead = "IGNORE" if table == "memory_sources" else "REPLACE"
                yield f"INSERT OR {instead} INTO main.{table} VALUES ({marks})", found


def any_word(text: str) -> str:
    """An FTS5 expression: any word of a question, stop words left out."""
    words = request.read(text).words.values()
    return " OR ".join(f'"{word}"' for word in words)


def _connect(path: Path, *, create: bool = False) -> Any:
    return sqlite.connect(path, busy_timeout_ms=30_000, create=create)
