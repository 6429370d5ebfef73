"""Parse lists of memories, our own and mem0's; each item is accepted or rejected separately."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from ingest.candidates import (
    MAX_CANDIDATES,
    MAX_CONFIDENCE,
    MAX_IMPORTANCE,
    ParsedDocument,
    clean_tags,
)
from ingest.reasons import RejectionReason, SkippedPart, refuse
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, Scope, Sensitivity
from memgraph.model.values import MAX_ATTRIBUTES_CHARS, MAX_CONTENT_CHARS, MAX_NAME_CHARS, EdgeInput
from memgraph.text.dates import to_ms

_FIELDS = frozenset(("memories", "edges"))
# Reported separately from other unknown fields: they would forge a memory's provenance.
_CLAIMS = frozenset(("captured_by", "source", "memory_id", "created_at", "orchestrator_id"))
_DEFAULT_CONFIDENCE = 0.8
_CAPS = (
    ("importance", MAX_IMPORTANCE, SkippedPart.IMPORTANCE_CAPPED),
    ("confidence", MAX_CONFIDENCE, SkippedPart.CONFIDENCE_CAPPED),
)
_MEM0_IDS = ("id", "user_id", "agent_id", "run_id", "app_id", "actor_id", "role")
# A user id that is a person's name, not a number or a digest.
_NAME = re.compile(r"[^\W\d_]{2,40}(?:[ ._-][^\W\d_]{1,40}){0,3}")


def is_memories_document(value: Any) -> bool:
    """Return True for JSON that is meant as a document of memories, valid or not."""
    if not isinstance(value, dict) or "memories" not in value:
        return False
    return isinstance(value["memories"], list) or set(value) <= _FIELDS


def parse_memories(document: ParsedDocument, value: Mapping[str, Any]) -> None:
    """Add the document's items as candidates, and report invalid ones.

    Raises:
        IngestRejected: schema_violation for the document as a whole, too_many_items, or
            no_valid_items with the findings when every memory broke a rule.
    """
    document.format = "memories"
    unknown = sorted(set(value) - _FIELDS)
    edges = value.get("edges", [])
    memories = value["memories"]
    if unknown or not isinstance(edges, list) or not isinstance(memories, list):
        raise refuse(
            RejectionReason.SCHEMA_VIOLATION,
            "the document must have only the fields memories and edges, both lists",
            unknown=[name[:80] for name in unknown[:10]],
        )
    if len(edges) > 10 * MAX_CANDIDATES:
        raise refuse(RejectionReason.TOO_MANY_ITEMS, "the document has too many edges: split it")
    keys: dict[str, str] = {}
    for place, raw in enumerate(memories):
        _add_memory(document, raw, f"/memories/{place}", keys)
    if memories and not document.candidates:
        raise refuse(
            RejectionReason.NO_VALID_ITEMS,
            "no memory of the document is valid",
            findings=[finding.as_dict() for finding in document.findings[:100]],
        )
    joined: set[tuple[str, str, str]] = set()
    for place, raw in enumerate(edges):
        _add_edge(document, raw, f"/edges/{place}", keys, joined)


def is_mem0(value: Any) -> bool:
    """Return True for an export of mem0: at least half of its items have text as ``memory``."""
    items = _mem0_items(value)[1]
    good = sum(isinstance(item, dict) and isinstance(item.get("memory"), str) for item in items)
    return good > 0 and good * 2 >= len(items)


def parse_mem0(document: ParsedDocument, value: Any) -> None:
    """Add each memory as a fact or preference of its user, dated by its last change."""
    document.format, document.origin = "memories", "mem0"
    ids: set[str] = set()
    pointer, items = _mem0_items(value)
    for place, raw in enumerate(items):
        where = f"{pointer}/{place}"
        text = raw.get("memory") if isinstance(raw, dict) else None
        name = raw["id"] if isinstance(raw, dict) and isinstance(raw.get("id"), str) else ""
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_CONTENT_CHARS:
            problems = {"problems": ["memory: invalid text"]}
            document.report(SkippedPart.VALUE_INVALID, where, problems)
        elif name in ids:
            document.report(SkippedPart.KEY_REPEATED, where)
        elif raw.get("event") in ("DELETE", "NONE"):
            document.report(SkippedPart.MESSAGE_HIDDEN, where)
        else:
            ids |= {name} - {""}
            _add_mem0_memory(document, raw, text.strip(), where)
    if isinstance(value, dict) and value.get("relations"):
        document.report(SkippedPart.FIELD_NOT_ALLOWED, "/relations")


def _mem0_items(value: Any) -> tuple[str, Sequence[Any]]:
    """Return the JSON pointer to the list of items, and the items."""
    if isinstance(value, dict):
        for name in ("results", "memories"):
            if isinstance(value.get(name), list):
                return f"/{name}", value[name]
    return "", value if isinstance(value, list) else ()


def _add_mem0_memory(
    document: ParsedDocument, raw: Mapping[str, Any], text: str, where: str
) -> None:
    about = raw.get("metadata")
    about = about if isinstance(about, dict) else {}
    categories = raw.get("categories")
    labels = [*(categories if isinstance(categories, list) else ()), about.get("category")]
    tags = clean_tags(label for label in labels if isinstance(label, str))
    times = (raw.get(name) for name in ("updated_at", "created_at"))
    time = next((label for label in times if label is not None), None)
    at, until = map(document.json_time, (time, raw.get("expiration_date")))
    if time is not None and at is None:
        document.report_date(time, where)
    user = raw.get("user_id")
    user = " ".join(user.split())[:MAX_NAME_CHARS] if isinstance(user, str) else ""
    # "Lives in Braga" has no subject.
    is_named = user.casefold() in text.casefold()
    prefers = any("preference" in tag for tag in tags)
    ids = {name: raw[name] for name in _MEM0_IDS if isinstance(raw.get(name), str)}
    document.add(
        text if is_named or not _NAME.fullmatch(user) else f"{user}: {text}",
        where,
        type=MemoryType.PREFERENCE if prefers else MemoryType.FACT,
        confidence=_DEFAULT_CONFIDENCE,
        event_time=at,
        valid_until=until,
        tags=tags,
        attributes={name: label[:MAX_NAME_CHARS] for name, label in ids.items()},
    )


def _add_memory(document: ParsedDocument, raw: Any, where: str, keys: dict[str, str]) -> None:
    """Add an item, or report why it is invalid; ``keys`` maps its key to that of the candidate."""
    if isinstance(raw, dict) and raw.get("type") == MemoryType.IDENTITY.value:
        document.report(SkippedPart.IDENTITY_NOT_ALLOWED, where)
        return
    if isinstance(raw, dict) and (claimed := sorted(_CLAIMS & set(raw))):
        document.report(SkippedPart.FIELD_NOT_ALLOWED, where, {"fields": claimed})
        return
    try:
        item = MemoryItem.model_validate(raw)
    except ValidationError as error:
        document.report(SkippedPart.VALUE_INVALID, where, _problems(error))
        return
    if item.key in keys:
        document.report(SkippedPart.KEY_REPEATED, where, {"key": item.key})
        return
    fields = item.model_dump(exclude={"key", "content", "type", "status", "tags"})
    for name, limit, code in _CAPS:
        if fields[name] is not None and fields[name] > limit:
            document.report(code, where, {"given": fields[name]})
            fields[name] = limit
    if fields["confidence"] is None:
        fields["confidence"] = _DEFAULT_CONFIDENCE
    made = document.add(
        item.content.strip(),
        where,
        type=MemoryType(item.type),
        status=MemoryStatus(item.status),
        tags=tuple(dict.fromkeys(item.tags)),
        **fields,
    )
    if item.key is not None:
        keys[item.key] = made.key


def _problems(error: ValidationError) -> dict[str, list[str]]:
    """Return the problems of an item, without the invalid values."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    messages = []
    for problem in problems[:5]:
        place = ".".join(str(part)[:80] for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        if not place and problem["type"] != "value_error":
            place = "(all)"
        # A check of the whole item names the field itself.
        messages.append(f"{place}: {message}" if place else message)
    return {"problems": messages}


def _add_edge(
    document: ParsedDocument,
    raw: Any,
    where: str,
    keys: Mapping[str, str],
    joined: set[tuple[str, str, str]],
) -> None:
    """Add an edge, or report why it is invalid; ``joined`` contains those before it."""
    try:
        item = EdgeItem.model_validate(raw)
    except ValidationError as error:
        document.report(SkippedPart.VALUE_INVALID, where, _problems(error))
        return
    ends = (item.from_key, item.to_key, item.type.value)
    if missing := [key for key in ends[:2] if key not in keys]:
        document.report(SkippedPart.EDGE_ENDPOINT_MISSING, where, {"keys": missing})
    elif item.from_key == item.to_key:
        document.report(SkippedPart.SELF_EDGE, where)
    elif ends in joined:
        document.report(SkippedPart.EDGE_REPEATED, where)
    else:
        joined.add(ends)
        document.edges.append(
            EdgeInput(
                from_id=f"#{keys[item.from_key]}",
                to_id=f"#{keys[item.to_key]}",
                edge_type=item.type,
                weight=item.weight,
                reason=item.reason,
                partial=item.partial,
            )
        )


Key = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=512)]
# Identity is missing on purpose: a dropped file cannot define who somebody is.
TypeName = Literal["Fact", "Preference", "Decision", "Event", "Observation", "Goal", "Todo"]


def _moment(text: object) -> int:
    """Return an ISO 8601 time in milliseconds since 1970."""
    try:
        moment = datetime.fromisoformat(text if isinstance(text, str) else "")
        return to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise ValueError("not an ISO 8601 time") from None


Moment = Annotated[
    int,
    BeforeValidator(_moment),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "pattern": r"^\d{4}-?[\dW]",
            "maxLength": 40,
            "description": "ISO 8601; without a zone it is UTC.",
        }
    ),
]


def _whole(number: object) -> object:
    """Return a number such as 2.0 as an integer: to JSON Schema it is one."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


class _Item(BaseModel):
    # Strict: "80" is not a number, and true is not 1. Enums are given as text.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class MemoryItem(_Item):
    """A memory. It cannot set its provenance or who captured it."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"scope": {"const": Scope.GLOBAL.value}}},
            "then": {"properties": {"scope_id": {"type": "null"}}},
            "else": {"properties": {"scope_id": {"type": "string"}}, "required": ["scope_id"]},
        }
    )

    content: Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS)]
    type: TypeName
    key: Key | None = Field(default=None, description="Identifies it in this document's edges.")
    kind: Annotated[MemoryKind, Field(strict=False)] = MemoryKind.FACT
    summary: Annotated[str, StringConstraints(max_length=400)] | None = None
    importance: Annotated[int, Field(ge=0, le=100), BeforeValidator(_whole)] | None = Field(
        default=None, description="0 to 100; stored as 90 at most."
    )
    confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        default=None, description="0 to 1; stored as 0.9 at most."
    )
    status: Literal["active", "superseded"] = MemoryStatus.ACTIVE.value
    sensitivity: Annotated[Sensitivity, Field(strict=False)] = Sensitivity.INTERNAL
    scope: Annotated[Scope, Field(strict=False)] = Scope.GLOBAL
    scope_id: Name | None = Field(default=None, description="Required unless the scope is global.")
    session_id: Name | None = None
    turn_id: Name | None = None
    conversation_id: Name | None = None
    source_role: Name | None = None
    sequence: Annotated[int, Field(ge=0, le=2**53), BeforeValidator(_whole)] | None = None
    event_time: Moment | None = None
    valid_until: Moment | None = None
    tags: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=64)]], Field(max_length=32)
    ] = Field(default_factory=list)
    attributes: dict[str, Any] = Field(
        default_factory=dict, description="Plain JSON, at most 16,000 characters."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.content.strip():
            raise ValueError("content: is only white space")
        if (self.scope is Scope.GLOBAL) != (self.scope_id is None):
            raise ValueError("scope_id: required for a session or project scope, else not allowed")
        if len(json.dumps(self.attributes, ensure_ascii=False)) > MAX_ATTRIBUTES_CHARS:
            raise ValueError(f"attributes: more than {MAX_ATTRIBUTES_CHARS} characters as JSON")
        return self


class EdgeItem(_Item):
    """An edge between two memories of this document, which are referred to by their keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)

    from_key: Key = Field(alias="from")
    to_key: Key = Field(alias="to")
    type: Annotated[EdgeType, Field(strict=False)]
    weight: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 1.0
    reason: Annotated[str, StringConstraints(max_length=2000)] | None = None
    partial: bool = Field(
        default=False, description="For Updates: the older memory is amended and stays active."
    )


class IngestDocument(_Item):
    """A document of memories and the edges between them."""

    memories: list[MemoryItem]
    edges: list[EdgeItem] = Field(default_factory=list)


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the document, as published in docs/schema."""
    schema = IngestDocument.model_json_schema(by_alias=True)
    return {
        **schema,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Memories to be ingested",
    }
