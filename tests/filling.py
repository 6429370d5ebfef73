"""Fills a database by plain SQL, so that tests of reading do not depend on the write path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from memgraph.config.schema import StorageSettings
from memgraph.store import tables
from memgraph.store.engine import Database
from memgraph.store.rows import MEMORY_FIELDS
from memgraph.store.snapshot import Transaction
from memgraph.store.sqlite.stores import SqliteStore
from memgraph.store.text_index import search_terms

NOW = 1_767_225_600_000
DAY = 86_400_000
SOURCE_ID = "src_0"

_TABLES = (
    "memory_sources",
    "memories",
    "memory_status",
    "memory_edges",
    "memory_edge_states",
    "memory_derivations",
)


@contextmanager
def fresh_database(folder: Path, dimensions: int = 8) -> Iterator[Database]:
    path = folder / "memory.db"
    SqliteStore(path, "orc").create(dimensions=dimensions, now_ms=NOW)
    database = SqliteStore(path, "orc").open(
        StorageSettings(synchronous="NORMAL", busy_timeout_ms=5_000)
    )
    try:
        yield database
    finally:
        database.close()


def add_source(transaction: Transaction) -> None:
    """Store the source of ``memory_row``."""
    source = {"source_id": SOURCE_ID, "source_type": "manual", "captured_by": "user"}
    transaction.execute(sa.insert(tables.sources).values(**source))


def memory_row(pk: int, content: str = "text", **values: Any) -> dict[str, Any]:
    """A row of all columns of ``memories``, as ``memories.insert`` takes it."""
    row = dict.fromkeys((*MEMORY_FIELDS, "search_terms")) | {
        "pk": pk,
        "memory_id": f"fact_{pk:05d}",
        "orchestrator_id": "orc",
        "kind": "fact",
        "type": "Fact",
        "content": content,
        "summary": "",
        "importance": 50,
        "confidence": 1.0,
        "status": "active",
        "sensitivity": "Public",
        "scope": "global",
        "created_at": NOW,
        "updated_at": NOW,
        "access_count": 0,
        "decay_rate": 0.0,
        "tags": "[]",
        "attributes": "{}",
        "content_hash": str(pk),
        "token_cost": 1,
        "source_id": SOURCE_ID,
        "search_terms": search_terms(content),
    }
    return row | values


def harbour_row(pk: int, content: str, **values: Any) -> dict[str, Any]:
    """A row of which every seventh has a tag, and every third a speaker."""
    tags, role = '["berth"]' if pk % 7 == 0 else "[]", "Mira Holt" if pk % 3 == 0 else None
    return memory_row(pk, content, **({"tags": tags, "source_role": role} | values))


class Filling:
    """Collects rows; ``flush`` writes what waits, with one journal entry, in one transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _TABLES}
        self._count = 0
        self.source(SOURCE_ID)

    def source(self, source_id: str, **values: Any) -> str:
        row = {
            "source_id": source_id,
            "source_type": "manual",
            "source_path": None,
            "captured_by": "user",
        }
        self._rows["memory_sources"].append(row | values)
        return source_id

    def memory(self, **values: Any) -> str:
        """One memory; ``history`` replaces its status periods: (status, since, until)."""
        self._count += 1
        kind = values.get("kind", "fact")
        memory_id = {"episode": "ep_", "fact": "fact_", "reflection": "ref_"}[kind]
        memory_id += f"{self._count:026d}"
        row = {
            "memory_id": memory_id,
            "orchestrator_id": "orc",
            "kind": kind,
            "type": "Fact",
            "content": f"Text of {memory_id}.",
            "summary": f"Text {self._count}.",
            "importance": 50,
            "confidence": 0.9,
            "status": "active",
            "sensitivity": "Internal",
            "scope": "global",
            "scope_id": None,
            "agent_id": None,
            "event_time": None,
            "created_at": NOW,
            "valid_until": None,
            "decay_rate": 0.1,
            "tags": [],
            "attributes": {},
            "content_hash": memory_id,
            "token_cost": 3,
            "source_id": SOURCE_ID,
        } | values
        history = row.pop("history", [(row["status"], row["created_at"], None)])
        row.setdefault("updated_at", max(since for _, since, _ in history))
        row["tags"] = json.dumps(row["tags"])
        row["attributes"] = json.dumps(row["attributes"])
        self._rows["memories"].append(row)
        for status, since, until in history:
            self._rows["memory_status"].append(
                {
                    "memory_id": row["memory_id"],
                    "status": status,
                    "since": since,
                    "until": until,
                    "actor": "test",
                    "reason": None,
                }
            )
        return str(row["memory_id"])

    def edge(self, from_id: str, to_id: str, edge_type: str = "RelatedTo", **values: Any) -> str:
        self._count += 1
        row = {
            "edge_id": f"edge_{self._count:026d}",
            "from_memory_id": from_id,
            "to_memory_id": to_id,
            "edge_type": edge_type,
            "weight": 1.0,
            "reason": None,
            "partial": 0,
            "created_at": NOW,
            "resolved_at": None,
            "resolution": None,
        } | values
        row["changed_at"] = row["resolved_at"]
        if row["resolution"] is not None:
            row["resolution"] = json.dumps(row["resolution"])
        self._rows["memory_edges"].append(row)
        if row["created_at"] < (row["resolved_at"] or 0):
            state = {"since": row["created_at"], "until": row["resolved_at"]}
            state |= {name: row[name] for name in ("edge_id", "weight", "reason", "partial")}
            self._rows["memory_edge_states"].append(state)
        return str(row["edge_id"])

    def derived(self, memory_id: str, ground: str) -> None:
        self._rows["memory_derivations"].append({"memory_id": memory_id, "derived_from_id": ground})

    def flush(self) -> None:
        if not any(self._rows.values()):
            return
        with self.database.write() as connection:
            for table in _TABLES:
                rows = self._rows[table]
                if rows:
                    names = list(rows[0])
                    connection.exec_driver_sql(
                        f"INSERT INTO {table} ({', '.join(names)})"
                        f" VALUES ({', '.join(':' + name for name in names)})",
                        rows,
                    )
                rows.clear()
        self.journal("remember")

    def journal(self, action: str, subject: str | None = None, **details: Any) -> int:
        """One entry at the end; its seal is not a real one."""
        self.flush()
        with self.database.write() as connection:
            seq = int(connection.scalar(sa.text("SELECT max(seq) FROM audit_log")) or 0) + 1
            connection.exec_driver_sql(
                "INSERT INTO audit_log (seq, at, actor, action, subject, details, hash)"
                " VALUES (?, ?, 'test', ?, ?, ?, ?)",
                (seq, NOW, action, subject, json.dumps(details), f"hash-{seq}"),
            )
        return seq

    def change(self, statement: str, *values: Any) -> None:
        """One statement, journalled."""
        self.flush()
        with self.database.write() as connection:
            connection.exec_driver_sql(statement, values)
        self.journal("change")


def flushed(given: Database | Filling) -> Database:
    """Return the database, with what waited to be written."""
    if isinstance(given, Filling):
        given.flush()
        return given.database
    return given
