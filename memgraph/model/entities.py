"""Entities, and the items of an agent's own memory."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from memgraph.model.enums import CapturedBy, EntityType, MemoryKind, Scope, Sensitivity
from memgraph.model.recall import MAX_TOP_N, Query
from memgraph.model.values import (
    MAX_ATTRIBUTES_CHARS,
    Content,
    Memory,
    Millis,
    Name,
    Text,
    Value,
    spelled,
)


class EntityInfo(Value):
    """An entity as its reader sees it.

    ``mention_count``: the number of memories that mention it, without retracted ones and those that
    the reader may not see.
    """

    entity_id: str
    canonical_name: str
    type: EntityType
    mention_count: int


class RelatedEntity(EntityInfo):
    """An entity named together with another one. ``together``: the number of these memories."""

    together: int


class EntitySummary(Value):
    """What a language model wrote about an entity, as it is stored.

    Attributes:
        text: at most 120 words; empty if the model wrote nothing.
        cited: the memories that its sentences cite, all of them active.
        read: the memories that the model read; who may not see one of them is not shown the text.
        model: the model that wrote it.
        written_at: milliseconds.
    """

    text: str
    cited: tuple[str, ...]
    read: tuple[str, ...]
    model: str
    written_at: Millis


class EntityProfile(EntityInfo):
    """The profile of an entity, from memories that the reader may see.

    Attributes:
        aliases: its other names, sorted: other spellings, merged names, and nicknames from the
            settings.
        protected: facts about it do not decay.
        summary: what a language model wrote about it, at most 120 words; None without one that the
            reader may see and whose cited memories are all active.
        first_seen, last_seen: the earliest and the latest of its memories, by ``event_time`` or,
            without one, ``created_at``.
        memories: its active memories, most important first, then newest.
        related: the entities named in the same memories, most frequent first.
        candidates: other entities that the requested name may refer to.
    """

    aliases: tuple[str, ...]
    protected: bool = False
    summary: str | None = None
    first_seen: Millis
    last_seen: Millis
    memories: tuple[Memory, ...]
    related: tuple[RelatedEntity, ...]
    candidates: tuple[EntityInfo, ...] = ()


MAX_ITEMS = 1_000
DEFAULT_LIMIT = 20

METADATA = "metadata_json"
"""The attribute of a memory that stores ``metadataJson``."""

EntityTier = Annotated[
    MemoryKind,
    *spelled({MemoryKind.EPISODE: "EpisodicMemory", MemoryKind.FACT: "SemanticMemory"}),
]
"""The tier of an item: episodes (what happened), or facts and reflections (what is known)."""
EntityScope = Annotated[
    Scope, *spelled({scope: f"{scope.value.capitalize()}Scope" for scope in Scope})
]
EntitySource = Annotated[
    CapturedBy,
    *spelled(
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
        metadata_json: any text, stored unchanged.
        generated_by_turn_id: the turn that produced it.
        session_id: the session in which it was said; for ``SessionScope`` also its scope.
        project_id: the project of a ``ProjectScope``; None: the entity's, or else ``default``.
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
            raise ValueError("sessionId: required for a SessionScope")
        if self.scope is not Scope.PROJECT and self.project_id is not None:
            raise ValueError("projectId: allowed only for a ProjectScope")
        return self


class StoreRequest(CamelCaseValue):
    """A request to store at most 1,000 items, all or none.

    ``call_id``: the caller's id of this request, which is carried out once.
    """

    items: Annotated[tuple[StoreItemInput, ...], Field(max_length=MAX_ITEMS)]
    call_id: Name | None = None


class ListRequest(CamelCaseValue):
    """A request for a list of visible items, optionally of one tier or scope.

    Without a session they are of all sessions of the agent; without a project of the entity's, or
    else of ``default``.
    """

    tier: EntityTier | None = None
    scope: EntityScope | None = None
    limit: Limit = DEFAULT_LIMIT
    session_id: Name | None = None
    project_id: Name | None = None


class RetrieveRequest(ListRequest):
    """A request to search items; an empty query returns the most important ones."""

    query: Query


class ForgetRequest(CamelCaseValue):
    """A request to forget items; ``cutoff_date``, ``scope`` and ``item_ids`` are combined (AND).

    Attributes:
        cutoff_date: forget items stored before this time; ISO 8601 or milliseconds.
        session_id, project_id: within session or project scopes, only items of this one.
    """

    cutoff_date: Millis | None = None
    scope: EntityScope | None = None
    item_ids: Annotated[tuple[Name, ...], Field(max_length=MAX_ITEMS)] | None = None
    session_id: Name | None = None
    project_id: Name | None = None

    @model_validator(mode="after")
    def _says_what(self) -> ForgetRequest:
        if self.cutoff_date is None and self.scope is None and self.item_ids is None:
            raise ValueError("requires at least one of cutoffDate, scope and itemIds")
        return self


class StoreResult(CamelCaseValue):
    """The ids in the order of the items; a duplicate has the id of the stored item."""

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
