"""Entities, and the items of one agent's own memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel

from memgraph.model.enums import CapturedBy, EntityType, MemoryKind, Scope, Sensitivity
from memgraph.model.recall import MAX_TOP_N, Query
from memgraph.model.values import (
    MAX_ATTRIBUTES_CHARS,
    MAX_CONTENT_CHARS,
    Memory,
    Millis,
    Name,
    Text,
    Value,
)


class EntityInfo(Value):
    """An entity as its reader sees it.

    ``mention_count``: memories that name it; only those that the reader may see and that are not
    retracted.
    """

    entity_id: str
    canonical_name: str
    type: EntityType
    mention_count: int


class RelatedEntity(EntityInfo):
    """An entity that is named beside another. ``together``: in how many memories."""

    together: int


class EntityProposal(Value):
    """A model's proposal that ``entity`` is another name of ``into``; it waits for a decision."""

    proposal_id: str
    entity: EntityInfo
    into: EntityInfo
    confidence: float
    provider: str
    proposed_at: Millis


class EntityProfile(EntityInfo):
    """The profile of an entity, from memories that the reader may see.

    Attributes:
        aliases: what else it is called, sorted: other spellings, names that were merged into it,
            nicknames of the settings.
        protected: time retires no fact about it.
        first_seen, last_seen: the earliest and the latest of its memories, by ``event_time`` or,
            without one, ``created_at``.
        memories: active ones, the most important first, then the newest.
        related: entities named in the same memories, the most frequent first.
        candidates: what else the asked name may mean; empty when it is clear.
    """

    aliases: tuple[str, ...]
    protected: bool = False
    first_seen: Millis
    last_seen: Millis
    memories: tuple[Memory, ...]
    related: tuple[RelatedEntity, ...]
    candidates: tuple[EntityInfo, ...] = ()


MAX_ITEMS = 1_000
DEFAULT_LIMIT = 20

METADATA = "metadata_json"
"""The attribute of a memory that keeps what came as ``metadataJson``."""


_EnumT = TypeVar("_EnumT", bound=StrEnum)


def _spelled(words: Mapping[_EnumT, str]) -> tuple[Any, ...]:
    """Return annotations that read and write enum members by other words than their values."""
    members = {word: member for member, word in words.items()}

    def parse(text: Any) -> Any:
        if isinstance(text, StrEnum) and text in words:
            return text
        if isinstance(text, str) and text in members:
            return members[text]
        raise ValueError(f"must be one of: {', '.join(members)}")

    return (
        BeforeValidator(parse),
        PlainSerializer(words.__getitem__, return_type=str),
        WithJsonSchema({"type": "string", "enum": list(members)}),
    )


EntityTier = Annotated[
    MemoryKind,
    *_spelled({MemoryKind.EPISODE: "EpisodicMemory", MemoryKind.FACT: "SemanticMemory"}),
]
"""What happened, as an episode, or what is known, as a fact or a reflection."""
EntityScope = Annotated[
    Scope, *_spelled({scope: f"{scope.value.capitalize()}Scope" for scope in Scope})
]
EntitySource = Annotated[
    CapturedBy,
    *_spelled(
        {
            CapturedBy.USER: "UserSource",
            CapturedBy.SYSTEM: "SystemSource",
            CapturedBy.EXTRACTOR: "AgentSource",
        }
    ),
]


def kinds_of(tier: MemoryKind) -> tuple[MemoryKind, ...]:
    """Return the kinds of memories in an ``EntityTier``."""
    if tier is MemoryKind.EPISODE:
        return (MemoryKind.EPISODE,)
    return (MemoryKind.FACT, MemoryKind.REFLECTION)


def _fits_attributes(text: str) -> str:
    if len(json.dumps({METADATA: text}, ensure_ascii=False)) > MAX_ATTRIBUTES_CHARS:
        raise ValueError(f"is over {MAX_ATTRIBUTES_CHARS} characters as a JSON string")
    return text


def _says_something(text: str) -> str:
    if not text.strip():
        raise ValueError("is only white space")
    return text


Content = Annotated[
    Text,
    StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS),
    AfterValidator(_says_something),
]
Limit = Annotated[int, Field(ge=1, le=MAX_TOP_N, strict=True)]


class CamelCaseValue(Value):
    """A value whose JSON is in camelCase; both spellings are accepted."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class StoreItemInput(CamelCaseValue):
    """An item to remember.

    Attributes:
        content: 1 to 32,000 characters.
        metadata_json: any text, kept as it is.
        generated_by_turn_id: the turn that it came of.
        session_id: where it was said; for ``SessionScope`` also where it holds.
        project_id: where a ``ProjectScope`` holds; None: the entity's.
    """

    tier: EntityTier
    scope: EntityScope
    source: EntitySource
    content: Content
    metadata_json: Annotated[Text, AfterValidator(_fits_attributes)] | None = None
    generated_by_turn_id: Name | None = None
    session_id: Name | None = None
    sensitivity: Sensitivity = Sensitivity.INTERNAL
    project_id: Name | None = None

    @model_validator(mode="after")
    def _placed(self) -> StoreItemInput:
        if self.scope is Scope.SESSION and self.session_id is None:
            raise ValueError("sessionId: a SessionScope needs one")
        if self.scope is not Scope.PROJECT and self.project_id is not None:
            raise ValueError("projectId: only a ProjectScope has one")
        return self


class StoreRequest(CamelCaseValue):
    """At most 1,000 items, stored together or not at all."""

    items: Annotated[tuple[StoreItemInput, ...], Field(max_length=MAX_ITEMS)]


class ListRequest(CamelCaseValue):
    """A request for a list: all that is visible, one tier, or one scope.

    ``session_id`` and ``project_id`` open a session and a project; without one, none is seen.
    """

    tier: EntityTier | None = None
    scope: EntityScope | None = None
    limit: Limit = DEFAULT_LIMIT
    session_id: Name | None = None
    project_id: Name | None = None


class RetrieveRequest(ListRequest):
    """A query; an empty one returns the most important items."""

    query: Query


class ForgetRequest(CamelCaseValue):
    """A request to forget the items that meet every criterion of ``cutoff_date``, ``scope`` and
    ``item_ids``.

    Attributes:
        cutoff_date: goes what was stored before it; ISO 8601 or milliseconds.
        session_id, project_id: of session and project scopes only this one's.
    """

    cutoff_date: Millis | None = None
    scope: EntityScope | None = None
    item_ids: Annotated[tuple[Name, ...], Field(max_length=MAX_ITEMS)] | None = None
    session_id: Name | None = None
    project_id: Name | None = None

    @model_validator(mode="after")
    def _says_what(self) -> ForgetRequest:
        if self.cutoff_date is None and self.scope is None and self.item_ids is None:
            raise ValueError("give at least one of cutoffDate, scope and itemIds")
        return self


class StoreResult(CamelCaseValue):
    """Ids in the order of the items; a duplicate has the id of the stored item."""

    stored_ids: tuple[str, ...]


class ForgetResult(CamelCaseValue):
    deleted_count: int


class MemoryItemRecord(CamelCaseValue):
    """An item that an agent remembers."""

    memory_item_id: str
    agent_id: str
    tier: EntityTier
    scope: EntityScope
    source: EntitySource
    content: str
    metadata_json: str | None
    generated_by_turn_id: str | None
    session_id: str | None
    project_id: str | None
    sensitivity: Sensitivity
    created_at: Millis
    updated_at: Millis

    @staticmethod
    def of(memory: Memory, captured_by: CapturedBy) -> MemoryItemRecord:
        """Return the record of a memory that belongs to an agent."""
        metadata = memory.attributes.get(METADATA)
        return MemoryItemRecord(
            memory_item_id=memory.memory_id,
            agent_id=memory.agent_id or "",
            tier=MemoryKind.EPISODE if memory.kind is MemoryKind.EPISODE else MemoryKind.FACT,
            scope=memory.scope,
            source=captured_by,
            content=memory.content,
            metadata_json=metadata if isinstance(metadata, str) else None,
            generated_by_turn_id=memory.turn_id,
            session_id=memory.session_id,
            project_id=memory.scope_id if memory.scope is Scope.PROJECT else None,
            sensitivity=memory.sensitivity,
            created_at=memory.created_at,
            updated_at=memory.updated_at,
        )
