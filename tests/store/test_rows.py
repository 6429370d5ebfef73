"""Rows become the same values that validation would have made of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from sampling import often

from memgraph.errors import DatabaseCorrupt
from memgraph.model.enums import (
    STORED_STATUSES,
    EdgeType,
    MemoryKind,
    MemoryStatus,
    MemoryType,
    Scope,
    Sensitivity,
)
from memgraph.model.tables import EdgeRow, MemoryRow, SourceRow
from memgraph.model.values import Edge, Memory
from memgraph.store import rows

TABLES: tuple[Any, ...] = (MemoryRow, EdgeRow, SourceRow)

text = st.text(max_size=8)
times = st.integers(min_value=0, max_value=2**41)
maybe = st.none() | text
json_objects = st.dictionaries(text, st.none() | st.booleans() | st.integers() | text, max_size=3)
for kind in (Memory, Edge):
    # Values are built at first use; Hypothesis looks at their signatures before.
    kind.model_rebuild()
memories = st.builds(
    Memory,
    memory_id=text,
    orchestrator_id=text,
    kind=st.sampled_from(MemoryKind),
    type=st.sampled_from(MemoryType),
    content=text,
    summary=text,
    importance=st.integers(0, 100),
    confidence=st.floats(0, 1),
    status=st.sampled_from(STORED_STATUSES),
    sensitivity=st.sampled_from(Sensitivity),
    scope=st.sampled_from(Scope),
    event_time=st.none() | times,
    created_at=times,
    updated_at=times,
    valid_until=st.none() | times,
    last_accessed_at=st.none() | times,
    tags=st.lists(text, max_size=3).map(tuple),
    attributes=json_objects,
)
edges = st.builds(
    Edge,
    edge_id=text,
    edge_type=st.sampled_from(EdgeType),
    created_at=times,
    resolved_at=st.none() | times,
    resolution=st.none() | json_objects,
)


@settings(max_examples=often(200))
@given(memories)
def test_a_memory_comes_back_as_it_was_validated(memory: Memory) -> None:
    stored = memory.model_dump() | {
        "tags": json.dumps(memory.tags),
        "attributes": json.dumps(memory.attributes),
    }
    result = rows.memory_from_row([_plain(stored[name]) for name in rows.MEMORY_FIELDS])
    assert result == memory
    assert result.model_dump_json() == memory.model_dump_json()
    assert result.model_fields_set == memory.model_fields_set
    assert repr(result) == repr(memory)


@given(edges)
def test_an_edge_comes_back_as_it_was_validated(edge: Edge) -> None:
    stored = edge.model_dump() | {
        "from_memory_id": edge.from_id,
        "to_memory_id": edge.to_id,
        "partial": int(edge.partial),
        "resolution": None if edge.resolution is None else json.dumps(edge.resolution),
    }
    row = [_plain(stored[name]) for name in rows.EDGE_FIELDS]
    assert rows.edge_from_row(row) == edge


@settings(max_examples=often(100))
@given(memories, st.sampled_from(["kind", "status", "tags", "attributes"]))
def test_a_value_that_no_constraint_lets_in_is_named_as_damage(memory: Memory, field: str) -> None:
    stored = memory.model_dump() | {"tags": "[]", "attributes": "{}", field: "{broken"}
    with pytest.raises(DatabaseCorrupt) as caught:
        rows.memory_from_row([_plain(stored[name]) for name in rows.MEMORY_FIELDS])
    assert caught.value.details == {"table": "memories", "row": memory.memory_id}


def test_a_row_of_another_shape_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        rows.memory_from_row(["only one"])


def test_the_fields_are_columns_in_the_order_of_the_tables() -> None:
    tables = {table.__tablename__: [c.name for c in table.__table__.columns] for table in TABLES}
    assert [*rows.SOURCE_FIELDS] == tables["memory_sources"]
    assert [*rows.EDGE_FIELDS, "changed_at"] == tables["memory_edges"]
    assert [*rows.MEMORY_FIELDS] == [
        name for name in tables["memories"] if name not in ("pk", "search_terms")
    ]


def _plain(value: object) -> object:
    return value.value if isinstance(value, MemoryKind | MemoryStatus) else value
