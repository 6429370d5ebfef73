"""Convert items to memories and back, without loss in either direction.

An item's text becomes the memory's content and is stored only there. The rest of its payload goes
into the memory's attributes, so that both share a Todo's ``done``. Values that a memory cannot
represent (``importance`` 0.555, a timestamp as it was written, a custom kind …) are kept in the
attribute ``context_item``, but only if they cannot be derived from the memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from memgraph.clock import iso, parse_time
from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem
from memgraph.model.enums import CapturedBy, MemoryType, Scope, SourceType
from memgraph.model.values import MAX_CONTENT_CHARS, Memory, MemoryInput, Source, validated
from memgraph.rules.budget import token_cost

MAX_DEPTH: Final = 100
"""The maximum depth of nested lists and objects in a payload; SQLite's own limit is 1,000."""

RECORD: Final = "context_item"
"""The attribute with the fields for which a memory has no column."""

RESERVED: Final = frozenset({RECORD, "supersedes", "enriched_at", "enriched_names"})
"""Attributes that the store itself keeps on a memory; they are never part of an item's payload."""

TEXT_KEYS: Final = (
    "text",
    "decision",
    "convention",
    "lesson",
    "preference",
    "pattern",
    "reasoning",
    "summary",
    "content",
    "output",
)
"""The payload keys that may contain the text, by precedence. Without any of them, the whole payload
as JSON is the text.
"""

_NEUTRAL_IMPORTANCE: Final = 50
# Together with ``context_item`` this stays within ``MAX_ATTRIBUTES_CHARS``.
_MAX_REST_CHARS: Final = 8_000
_TYPES = {each.value.lower(): each for each in MemoryType} | {
    "convention": MemoryType.PREFERENCE,
    "pattern": MemoryType.OBSERVATION,
    "failure": MemoryType.OBSERVATION,
    "reasoning": MemoryType.OBSERVATION,
    "tool_output": MemoryType.OBSERVATION,
}
_RECORDED: Final = frozenset({"kind", "source", "timestamp", "importance", "token_cost"})


def type_of(kind: str) -> MemoryType:
    """Return the type of memory that an item's kind is stored as; Fact for a custom kind."""
    return _TYPES.get(kind, MemoryType.FACT)


def text_key(payload: Mapping[str, Any]) -> str | None:
    """Return the key of a payload's text; None if the whole payload is the text."""
    return next((key for key in TEXT_KEYS if _is_text(payload.get(key))), None)


def source_of(scope: Scope, scope_id: str | None) -> str:
    """Return the default source of an item: ``task/t1``, ``project/web``, ``global``."""
    return scope.tier if scope_id is None else f"{scope.tier}/{scope_id}"


def memory_input_of(
    item: ContextItem, tier: Scope, scope_id: str | None, **fields: Any
) -> MemoryInput:
    """Return the memory input that stores an item.

    Args:
        scope_id: the id of the task or the project; None for the global tier.
        fields: further fields of ``MemoryInput``, which take precedence.

    Raises:
        InvalidInput: a memory cannot have these values, e.g. a text over 32,000 characters or more
            than 64 tags. The error names every such field.
    """
    content, attributes, record = _stored_payload(item.payload)
    type_ = type_of(item.kind)
    weight = _NEUTRAL_IMPORTANCE if item.importance is None else round(item.importance * 100)
    at = parse_time(item.timestamp)
    derived = {
        "kind": (item.kind, type_.value.lower()),
        "source": (item.source, source_of(tier, scope_id)),
        "timestamp": (item.timestamp, iso(at)),
        "importance": (item.importance, weight / 100),
        "token_cost": (item.token_cost, token_cost(content)),
    }
    record |= {
        name: value for name, (value, derived_value) in derived.items() if value != derived_value
    }
    input_fields = {
        "content": content,
        "type": type_,
        "importance": weight,
        "scope": tier,
        "scope_id": scope_id,
        "item_id": item.context_item_id,
        "event_time": at,
        "tags": item.tags,
        "attributes": attributes | ({RECORD: record} if record else {}),
        "source": Source(
            source_type=SourceType.WORKFLOW_OUTPUT if tier is Scope.SESSION else SourceType.MANUAL,
            step_id=_step_of(item.source, tier, scope_id),
            captured_by=CapturedBy.SYSTEM,
        ),
    }
    return validated(MemoryInput, input_fields | fields)


def item_of(memory: Memory) -> ContextItem:
    """Return a memory as an item, whether it was stored as one or not.

    A memory that was not stored as an item gets its ``memory_id`` as id, its type in lower case as
    kind, its scope as source, and its ``text`` and attributes as payload.
    """
    at = memory.said_at
    record = memory.attributes.get(RECORD)
    # Any caller may store a memory with this attribute, so its values are not trusted.
    record = record if isinstance(record, dict) else {}
    fields: dict[str, Any] = {
        "context_item_id": memory.item_id or memory.memory_id,
        "kind": memory.type.value.lower(),
        "source": source_of(memory.scope, memory.scope_id),
        "timestamp": iso(at),
        "tags": memory.tags,
        "importance": memory.importance / 100,
        "token_cost": memory.token_cost,
    }
    recorded = {name: record[name] for name in fields.keys() & record.keys() & _RECORDED}
    if recorded:
        try:
            item = ContextItem.model_validate(fields | recorded)
            if type_of(item.kind) is memory.type and parse_time(item.timestamp) == at:
                fields |= recorded
        except ValidationError:
            pass
    # Not validated again: a source made from a long scope_id may be longer than a name.
    return ContextItem.model_construct(**fields, payload=_payload(record, memory))


def checked(item: ContextItem) -> ContextItem:
    """Return a valid copy of the item that a backend can store.

    Raises:
        InvalidInput: it is not an item; its payload is nested more than 100 levels deep; or see
            ``memory_input_of``.
    """
    if not isinstance(item, ContextItem):
        raise InvalidInput("a backend stores only ContextItems", field="item")
    if _is_deep(item.payload, MAX_DEPTH):
        raise InvalidInput(f"payload: nested over {MAX_DEPTH} levels", field="payload")
    copy = validated(ContextItem, item.model_dump(warnings=False))
    memory_input_of(copy, Scope.GLOBAL, None)
    return copy


def equal(first: ContextItem, second: ContextItem) -> bool:
    """Return True when two items are equal; payloads are compared as JSON, so true is not 1."""
    texts = [json.dumps(item.payload, sort_keys=True) for item in (first, second)]
    return first == second and texts[0] == texts[1]


def _stored_payload(payload: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Split a payload into content, attributes, and the values for ``context_item``."""
    key = text_key(payload)
    rest = {name: value for name, value in payload.items() if name != key}
    if key is None or len(_json(rest)) > _MAX_REST_CHARS:
        return _whole(payload), {}, {"text": None}
    hidden = {name: value for name, value in rest.items() if name in RESERVED}
    open_ = {name: value for name, value in rest.items() if name not in RESERVED}
    record: dict[str, Any] = {} if key == "text" else {"text": key}
    return payload[key], open_, record | ({"payload": hidden} if hidden else {})


def _whole(payload: Mapping[str, Any]) -> str:
    text = _json(payload)
    if len(text) > MAX_CONTENT_CHARS:
        raise InvalidInput(
            f"payload: over {MAX_CONTENT_CHARS:,} characters as JSON", field="payload"
        )
    return text


def _payload(record: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    key = record.get("text", "text")
    if key is None:
        try:
            payload = json.loads(memory.content)
        except (ValueError, RecursionError):
            payload = None
        if isinstance(payload, dict) and not _is_deep(payload, MAX_DEPTH):
            return payload
    key = key if isinstance(key, str) else "text"
    rest = {name: value for name, value in memory.attributes.items() if name not in RESERVED}
    hidden = record.get("payload")
    if isinstance(hidden, dict):
        rest |= hidden
    # Only a memory that was never an item can have an attribute named like the text's key.
    return (
        {key: memory.content, "attributes": rest} if key in rest else {key: memory.content, **rest}
    )


def _is_text(value: Any) -> bool:
    """Return True if a value can be a memory's content unchanged."""
    if not isinstance(value, str) or len(value) > MAX_CONTENT_CHARS:
        return False
    return bool(value.strip()) and "\x00" not in value


def _step_of(source: str, tier: Scope, scope_id: str | None) -> str | None:
    """Return the task's stage in an item's source: ``plan`` in ``task/t1/plan``."""
    task = f"{source_of(tier, scope_id)}/"
    return (
        source[len(task) :] or None if tier is Scope.SESSION and source.startswith(task) else None
    )


def _is_deep(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return False
    return levels == 0 or any(_is_deep(item, levels - 1) for item in value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
