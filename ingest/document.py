"""The project's own JSON document, ``{"memories": […], "edges": […]}``, and its JSON Schema."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, Scope, Sensitivity

MAX_CONTENT_CHARS = 32_000

Key = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=512)]
# Identity is missing on purpose: a dropped file cannot define who somebody is.
TypeName = Literal["Fact", "Preference", "Decision", "Event", "Observation", "Goal", "Todo"]
Moment = Annotated[
    str,
    Field(
        description="ISO 8601; without a zone it is UTC.",
        max_length=40,
        json_schema_extra={"format": "date-time"},
    ),
]


class _Item(BaseModel):
    # Strict, so that "80" is no number and true is no 1; enums are given as their text.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class MemoryItem(_Item):
    """A memory. It cannot set its provenance or who captured it."""

    content: Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS)]
    type: TypeName
    key: Key | None = Field(default=None, description="What edges of this document call it by.")
    kind: Annotated[MemoryKind, Field(strict=False)] = MemoryKind.FACT
    summary: Annotated[str, StringConstraints(max_length=400)] | None = None
    importance: Annotated[int, Field(ge=0, le=100)] | None = Field(
        default=None, description="0 to 100; stored as 90 at most."
    )
    confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        default=None, description="0 to 1; stored as 0.9 at most."
    )
    status: Literal["active", "superseded"] = MemoryStatus.ACTIVE.value
    sensitivity: Annotated[Sensitivity, Field(strict=False)] = Sensitivity.INTERNAL
    scope: Annotated[Scope, Field(strict=False)] = Scope.GLOBAL
    scope_id: Name | None = Field(default=None, description="Needed unless the scope is global.")
    session_id: Name | None = None
    turn_id: Name | None = None
    conversation_id: Name | None = None
    source_role: Name | None = None
    sequence: Annotated[int, Field(ge=0, le=2**53)] | None = None
    event_time: Moment | None = None
    valid_until: Moment | None = None
    tags: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=64)]], Field(max_length=32)
    ] = Field(default_factory=list)
    attributes: dict[str, Any] = Field(
        default_factory=dict, description="Plain JSON, at most 16,000 characters."
    )


class EdgeItem(_Item):
    """An edge between two memories of this document, named by their keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)

    from_key: Key = Field(alias="from")
    to_key: Key = Field(alias="to")
    type: Annotated[EdgeType, Field(strict=False)]
    weight: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 1.0
    reason: Annotated[str, StringConstraints(max_length=2000)] | None = None
    partial: bool = Field(
        default=False, description="Of Updates: the older memory stays active, amended in part."
    )


class IngestDocument(_Item):
    """A document of memories and the edges between them."""

    memories: list[MemoryItem]
    edges: list[EdgeItem] = Field(default_factory=list)


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the document, as published in docs/schema."""
    schema = IngestDocument.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Memories to be ingested",
        **{name: value for name, value in schema.items() if name != "title"},
    }


def schema_text() -> str:
    """Return the text of the published file."""
    return json.dumps(document_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
