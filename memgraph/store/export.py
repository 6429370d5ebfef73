"""The rows of an export: which tables it has, and their values as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import sqlalchemy as sa

from memgraph.model.columns import JSON
from memgraph.model.enums import EmbeddingState
from memgraph.store import tables
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column

_PAGE: Final = 2_000
EXPORTED: Final[Mapping[str, str]] = {
    "source": "memory_sources",
    "memory": "memories",
    "edge": "memory_edges",
    "edge_state": "memory_edge_states",
    "derivation": "memory_derivations",
    "support": "memory_supports",
    "status": "memory_status",
    "entity": "entities",
    "alias": "entity_aliases",
    "mention": "memory_entities",
    "session": "sessions",
    "ingest_file": "ingest_files",
    "document_key": "ingest_document_keys",
    "pending_link": "ingest_pending_links",
    "recall": "recalls",
    "recall_item": "recall_items",
    "bulletin": "bulletins",
    "job_run": "job_runs",
    "journal": "audit_log",
    "embedding": "memory_embeddings",
}
"""The tables of an export by the name of their records. No record refers to a later one."""
_MADE_ANEW: Final[Mapping[str, frozenset[str]]] = {
    "memory": frozenset({"pk", "orchestrator_id", "search_terms"}),
    "status": frozenset({"status_id"}),
    "entity": frozenset({"pk"}),
    "pending_link": frozenset({"link_id"}),
    "job_run": frozenset({"renewed_at"}),
    "embedding": frozenset({"state", "attempts", "next_attempt_at", "error_code", "visibility"}),
}
_PUBLIC: Final = {
    "memory_pk": tables.memories.c.memory_id,
    "entity_pk": tables.entities.c.entity_id,
}
"""The ids that stand for internal keys."""


def exported(snapshot: Snapshot, record: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table by primary key, as values of JSON; of embeddings the ready ones.

    Raises:
        ValueError: a text is not the JSON that its column holds.
    """
    table = tables.memories.metadata.tables[EXPORTED[record]]
    hidden = _MADE_ANEW.get(record, frozenset())
    columns = [_PUBLIC.get(each.name, each) for each in table.c if each.name not in hidden]
    joined: sa.FromClause = table
    for key, public in _PUBLIC.items():
        if key in table.c:
            joined = joined.join(public.table, public.table.c.pk == table.c[key])
    query = sa.select(*columns).select_from(joined).order_by(*table.primary_key)
    if record == "embedding":
        query = query.where(table.c.state == EmbeddingState.READY)
    for rows in snapshot.pages(query, _PAGE):
        for row in rows:
            pairs = zip(columns, row, strict=True)
            yield {column.name: _as_json(column, value) for column, value in pairs}


def _as_json(column: Column, value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if value is not None and column.info.get(JSON):
        return json.loads(value)
    return bool(value) if value is not None and isinstance(column.type, sa.Boolean) else value
