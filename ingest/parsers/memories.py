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
    MAX_NAME_CHARS,
    IngestCandidate,
    KeySource,
    ParsedDocument,
    ParseFinding,
    clean_tags,
)
from ingest.parsers.file_names import document_keys, title_of
from ingest.reasons import RejectionReason, SkippedPart, refuse
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, Scope, Sensitivity
from memgraph.model.values import EdgeInput
from memgraph.text.dates import read_json_time, to_ms

_FIELDS = frozenset(("memories", "edges"))
# Reported separately from other unknown fields: they would forge a memory's provenance.
_CLAIMS = frozenset(("captured_by", "source", "memory_id", "created_at", "orchestrator_id"))
_MAX_ATTRIBUTES_CHARS = 16_000
_DEFAULT_CONFIDENCE = 0.8
_CAPS = (
    ("importance", MAX_IMPORTANCE, SkippedPart.IMPORTANCE_CAPPED),
    ("confidence", MAX_CONFIDENCE, SkippedPart.CONFIDENCE_CAPPED),
)
_MEM0_IDS = ("id", "user_id", "agent_id", "run_id", "app_id", "actor_id", "role")
_SUBJECT = re.compile(r"(?:the|an?|this|these|there|it|user|from|since|in|on) ", re.IGNORECASE)
# A user id that is a person's name, not a number or a digest.
_NAME = re.compile(r"[^\W\d_]{2,40}(?:[ ._-][^\W\d_]{1,40}){0,3}")


def is_memories_document(value: Any) -> bool:
    """Return True for JSON that is meant as a document of memories, valid or not."""
    if not isinstance(value, dict) or "memories" not in value:
        return False
    if is_mem0(value):
        return False
    return isinstance(value["memories"], list) or set(value) <= _FIELDS


def parse_memories(
    value: Mapping[str, Any], path: str, findings: tuple[ParseFinding, ...] = ()
) -> ParsedDocument:
    """Return the document's items as candidates, and invalid ones as findings.

    Raises:
        IngestRejected: schema_violation for the document as a whole, too_many_items, or
            no_valid_items with the findings when every memory broke a rule.
    """
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
    all_findings = list(findings)
    keys = KeySource()
    candidates: list[IngestCandidate] = []
    keys_by_name: dict[str, str] = {}
    for place, raw in enumerate(memories):
        candidate = _memory(raw, f"/memories/{place}", keys, keys_by_name, all_findings)
        if candidate is not None:
            candidates.append(candidate)
    if memories and not candidates:
        raise refuse(
            RejectionReason.NO_VALID_ITEMS,
            "no memory of the document is valid",
            findings=[finding.as_dict() for finding in all_findings[:100]],
        )
    return ParsedDocument(
        "memories",
        tuple(candidates),
        tuple(_edges(edges, keys_by_name, all_findings)),
        findings=tuple(all_findings),
        title=title_of(path),
        main_key=candidates[0].key if candidates else None,
        document_keys=document_keys(path),
    )


def is_mem0(value: Any) -> bool:
    """Return True for an export of mem0: at least half of its items have text as ``memory``."""
    items = _mem0_items(value)[1]
    good = sum(isinstance(item, dict) and isinstance(item.get("memory"), str) for item in items)
    return good > 0 and good * 2 >= len(items)


def parse_mem0(value: Any, path: str, findings: tuple[ParseFinding, ...] = ()) -> ParsedDocument:
    """Return each memory as a fact or preference of its user, dated by its last change."""
    all_findings = list(findings)
    keys = KeySource()
    candidates: list[IngestCandidate] = []
    ids: set[str] = set()
    pointer, items = _mem0_items(value)
    for place, raw in enumerate(items):
        where = f"{pointer}/{place}"
        text = raw.get("memory") if isinstance(raw, dict) else None
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_CONTENT_CHARS:
            all_findings.append(
                ParseFinding(
                    SkippedPart.VALUE_INVALID, where, {"problems": ["memory: invalid text"]}
                )
            )
            continue
        name = raw["id"] if isinstance(raw.get("id"), str) else None
        if raw.get("event") in ("DELETE", "NONE") or (name is not None and name in ids):
            all_findings.append(
                ParseFinding(
                    SkippedPart.KEY_REPEATED if name in ids else SkippedPart.MESSAGE_HIDDEN, where
                )
            )
            continue
        ids |= {name} if name is not None else set()
        candidates.append(_mem0_memory(raw, text.strip(), keys.new(), where, all_findings))
    if isinstance(value, dict) and value.get("relations"):
        all_findings.append(ParseFinding(SkippedPart.FIELD_NOT_ALLOWED, "/relations"))
    return ParsedDocument(
        "memories",
        tuple(candidates),
        findings=tuple(all_findings),
        title=title_of(path),
        main_key=candidates[0].key if candidates else None,
        document_keys=document_keys(path),
    )


def _mem0_items(value: Any) -> tuple[str, Sequence[Any]]:
    """Return the JSON pointer to the list of items, and the items."""
    if isinstance(value, dict):
        for name in ("results", "memories"):
            if isinstance(value.get(name), list):
                return f"/{name}", value[name]
    return "", value if isinstance(value, list) else ()


def _mem0_memory(
    raw: Mapping[str, Any], text: str, key: str, where: str, findings: list[ParseFinding]
) -> IngestCandidate:
    about = raw.get("metadata")
    about = about if isinstance(about, dict) else {}
    categories = raw.get("categories")
    labels = [*(categories if isinstance(categories, list) else ()), about.get("category")]
    tags = clean_tags(label for label in labels if isinstance(label, str))
    times = (raw.get(name) for name in ("updated_at", "created_at"))
    time = next((label for label in times if label is not None), None)
    at, until = read_json_time(time), read_json_time(raw.get("expiration_date"))
    if time is not None and at is None:
        findings.append(ParseFinding(SkippedPart.DATE_NOT_UNDERSTOOD, where))
    user = raw.get("user_id")
    user = " ".join(user.split())[:MAX_NAME_CHARS] if isinstance(user, str) else ""
    # "Lives in Braga" has no subject.
    has_subject = user.casefold() in text.casefold() or _SUBJECT.match(text) is not None
    prefers = any("preference" in tag for tag in tags)
    ids = {name: raw[name] for name in _MEM0_IDS if isinstance(raw.get(name), str)}
    return IngestCandidate(
        key,
        text if has_subject or not _NAME.fullmatch(user) else f"{user}: {text}",
        where,
        type=MemoryType.PREFERENCE if prefers else MemoryType.FACT,
        confidence=_DEFAULT_CONFIDENCE,
        event_time=at,
        valid_until=until,
        tags=tags,
        attributes={name: label[:MAX_NAME_CHARS] for name, label in ids.items()},
    )


def _memory(
    raw: Any,
    where: str,
    keys: KeySource,
    keys_by_name: dict[str, str],
    findings: list[ParseFinding],
) -> IngestCandidate | None:
    refusal = _forged_field(raw, where)
    if refusal is not None:
        findings.append(refusal)
        return None
    try:
        item = MemoryItem.model_validate(raw)
    except ValidationError as error:
        findings.append(_validation_finding(error, where))
        return None
    if item.key is not None and item.key in keys_by_name:
        findings.append(ParseFinding(SkippedPart.KEY_REPEATED, where, {"key": item.key}))
        return None
    key = keys.new()
    if item.key is not None:
        keys_by_name[item.key] = key
    fields = item.model_dump(exclude={"key", "content", "type", "status", "tags"})
    for name, limit, code in _CAPS:
        if fields[name] is not None and fields[name] > limit:
            findings.append(ParseFinding(code, where, {"given": fields[name]}))
            fields[name] = limit
    if fields["confidence"] is None:
        fields["confidence"] = _DEFAULT_CONFIDENCE
    return IngestCandidate(
        key,
        item.content.strip(),
        where,
        type=MemoryType(item.type),
        status=MemoryStatus(item.status),
        tags=tuple(dict.fromkeys(item.tags)),
        **fields,
    )


def _forged_field(raw: Any, where: str) -> ParseFinding | None:
    if not isinstance(raw, dict):
        return None
    if raw.get("type") == MemoryType.IDENTITY.value:
        return ParseFinding(SkippedPart.IDENTITY_NOT_ALLOWED, where)
    claimed = sorted(_CLAIMS & set(raw))
    return (
        ParseFinding(SkippedPart.FIELD_NOT_ALLOWED, where, {"fields": claimed}) if claimed else None
    )


def _validation_finding(error: ValidationError, where: str) -> ParseFinding:
    """Return a finding with the problems of an item, without the invalid values."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    messages = []
    for problem in problems[:5]:
        place = ".".join(str(part)[:80] for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        if not place and problem["type"] != "value_error":
            place = "(all)"
        # A check of the whole item names the field itself.
        messages.append(f"{place}: {message}" if place else message)
    return ParseFinding(SkippedPart.VALUE_INVALID, where, {"problems": messages})


def _edges(
    raw_edges: Sequence[Any], keys_by_name: Mapping[str, str], findings: list[ParseFinding]
) -> list[EdgeInput]:
    edges: dict[tuple[str, str, str], EdgeInput] = {}
    for place, raw in enumerate(raw_edges):
        where = f"/edges/{place}"
        try:
            item = EdgeItem.model_validate(raw)
        except ValidationError as error:
            findings.append(_validation_finding(error, where))
            continue
        missing = [key for key in (item.from_key, item.to_key) if key not in keys_by_name]
        if missing:
            findings.append(
                ParseFinding(SkippedPart.EDGE_ENDPOINT_MISSING, where, {"keys": missing})
            )
            continue
        if item.from_key == item.to_key:
            findings.append(ParseFinding(SkippedPart.SELF_EDGE, where))
            continue
        ends = (keys_by_name[item.from_key], keys_by_name[item.to_key], item.type.value)
        if ends in edges:
            findings.append(ParseFinding(SkippedPart.EDGE_REPEATED, where))
            continue
        edges[ends] = EdgeInput(
            from_id=f"#{ends[0]}",
            to_id=f"#{ends[1]}",
            edge_type=item.type,
            weight=item.weight,
            reason=item.reason,
            partial=item.partial,
        )
    return list(edges.values())


MAX_CONTENT_CHARS = 32_000

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
        if len(json.dumps(self.attributes, ensure_ascii=False)) > _MAX_ATTRIBUTES_CHARS:
            raise ValueError(f"attributes: more than {_MAX_ATTRIBUTES_CHARS} characters as JSON")
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
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Memories to be ingested",
        **{name: value for name, value in schema.items() if name != "title"},
    }


def schema_text() -> str:
    """Return the published schema file as text."""
    return json.dumps(document_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
