"""The records of an export: the columns of each line, and how they are written.

A line is a JSON object: ``record`` names its kind, every other field is a column of its table.
Times are integers, milliseconds since 1970. Internal keys (``pk``) are left out: a line refers to
memories and entities by their ids.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from memgraph.model.columns import Table, python_type
from memgraph.model.tables import metadata
from memgraph.store import whole_tables
from memgraph.store.statements import CompiledStatement

encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

_JSON_COLUMNS: Final = frozenset({"tags", "attributes", "resolution", "manifest"})


@dataclass(frozen=True, slots=True)
class RecordMapping:
    """The mapping of one kind of line to one table.

    Attributes:
        fields: the columns in the order of the line.
        select: the statement that reads them, in the order of the export.
    """

    name: str
    table: Table
    fields: tuple[str, ...]
    select: CompiledStatement

    def write(self, row: tuple[Any, ...]) -> bytes:
        """Return a row as a line.

        Raises:
            ValueError: it contains NaN or an infinity.
        """
        line: dict[str, Any] = {"record": self.name}
        for field, value in zip(self.fields, row, strict=True):
            line[field] = self._shown(field, value)
        return encode(line).encode() + b"\n"

    def _shown(self, field: str, value: Any) -> Any:
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        if value is not None and field in _JSON_COLUMNS:
            return json.loads(value)
        if value is not None and python_type(self.table, field) is bool:
            return bool(value)
        return value


def _record(
    name: str,
    table: str,
    *order: str,
    without: tuple[str, ...] = (),
    refers: Mapping[str, str] | None = None,
    state: str | None = None,
) -> RecordMapping:
    """Return the record of a table.

    Args:
        order: the columns that sort the lines.
        without: columns to omit.
        refers: maps a key column to the field of the line that has the id instead.
        state: export only rows in this state, which is not in the line; None: all.
    """
    refers = refers or {}
    result = metadata.tables[table]
    hidden = {*without, *(() if state is None else ("state",))}
    names = [column.name for column in result.c if column.name not in hidden]
    columns = tuple((name, refers.get(name, name)) for name in names)
    return RecordMapping(
        name=name,
        table=result,
        fields=tuple(field for _, field in columns),
        select=whole_tables.rows(table, columns, order, state),
    )


# Ordered so that no record refers to a later one.
RECORDS: Final[tuple[RecordMapping, ...]] = (
    _record("source", "memory_sources", "source_id"),
    _record(
        "memory",
        "memories",
        "pk",
        without=("pk", "orchestrator_id", "search_terms"),
    ),
    _record("edge", "memory_edges", "edge_id"),
    _record("derivation", "memory_derivations", "memory_id", "derived_from_id"),
    _record("support", "memory_supports", "memory_id", "source_id"),
    _record("status", "memory_status", "status_id", without=("status_id",)),
    _record("entity", "entities", "pk", without=("pk",)),
    _record(
        "alias",
        "entity_aliases",
        "alias_key",
        "entity_pk",
        refers={"entity_pk": "entity_id"},
    ),
    _record(
        "mention",
        "memory_entities",
        "memory_pk",
        "entity_pk",
        refers={"entity_pk": "entity_id", "memory_pk": "memory_id"},
    ),
    _record("session", "sessions", "session_id"),
    _record("ingest_file", "ingest_files", "sha256"),
    _record("document_key", "ingest_document_keys", "document_key", "memory_id"),
    _record("pending_link", "ingest_pending_links", "link_id", without=("link_id",)),
    _record("recall", "recalls", "recall_id"),
    _record("recall_item", "recall_items", "recall_id", "rank"),
    _record("bulletin", "bulletins", "bulletin_id"),
    _record("job_run", "job_runs", "run_id", without=("renewed_at",)),
    _record("journal", "audit_log", "seq"),
    _record(
        "embedding",
        "memory_embeddings",
        "memory_pk",
        without=("attempts", "next_attempt_at", "error_code", "visibility"),
        refers={"memory_pk": "memory_id"},
        state="ready",
    ),
)
