"""Entities, and the items of one agent's own memory."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator
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

    ``mention_count``: memories that name it, of those that the reader may see and that were not
    taken back.
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
    """All about one entity, from memories that the reader may see.

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


class MemoryTier(StrEnum):
    """The kind of a memory: what happened, or what is known."""

    EPISODIC = "EpisodicMemory"
    SEMANTIC = "SemanticMemory"

    @property
    def kinds(self) -> tuple[MemoryKind, ...]:
        """The kinds of memories in it; the first is what is stored."""
        if self is MemoryTier.EPISODIC:
            return (MemoryKind.EPISODE,)
        return (MemoryKind.FACT, MemoryKind.REFLECTION)

    @staticmethod
    def of(kind: MemoryKind) -> MemoryTier:
        """The tier that a kind of memory is in."""
        return next(tier for tier in MemoryTier if kind in tier.kinds)


class MemoryScope(StrEnum):
    """For whom it holds: one session, one project, everywhere."""

    SESSION = "SessionScope"
    PROJECT = "ProjectScope"
    GLOBAL = "GlobalScope"

    @property
    def scope(self) -> Scope:
        return Scope(self.value.removesuffix("Scope").lower())

    @staticmethod
    def of(scope: Scope) -> MemoryScope:
        return MemoryScope(f"{scope.value.capitalize()}Scope")


class MemorySource(StrEnum):
    """The origin of a memory: who said it."""

    USER = "UserSource"
    SYSTEM = "SystemSource"
    AGENT = "AgentSource"

    @property
    def captured_by(self) -> CapturedBy:
        return _CAPTURED_BY[self]

    @staticmethod
    def of(captured_by: CapturedBy) -> MemorySource:
        return next(source for source, each in _CAPTURED_BY.items() if each is captured_by)


_CAPTURED_BY = {
    MemorySource.USER: CapturedBy.USER,
    MemorySource.SYSTEM: CapturedBy.SYSTEM,
    MemorySource.AGENT: CapturedBy.EXTRACTOR,
}


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
    """A value whose JSON is camelCase; it is read in either spelling."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class StoreItemInput(CamelCaseValue):
    """One thing to remember.

    Attributes:
        content: 1 to 32,000 characters.
        metadata_json: any text, kept as it is.
        generated_by_turn_id: the turn that it came of.
        session_id: where it was said; for ``SessionScope`` also where it holds.
        project_id: where a ``ProjectScope`` holds; None: the entity's.
    """

    tier: MemoryTier
    scope: MemoryScope
    source: MemorySource
    content: Content
    metadata_json: Annotated[Text, AfterValidator(_fits_attributes)] | None = None
    generated_by_turn_id: Name | None = None
    session_id: Name | None = None
    sensitivity: Sensitivity = Sensitivity.INTERNAL
    project_id: Name | None = None

    @model_validator(mode="after")
    def _placed(self) -> StoreItemInput:
        if self.scope is MemoryScope.SESSION and self.session_id is None:
            raise ValueError("sessionId: a SessionScope needs one")
        if self.scope is not MemoryScope.PROJECT and self.project_id is not None:
            raise ValueError("projectId: only a ProjectScope has one")
        return self


class StoreRequest(CamelCaseValue):
    """At most 1,000 items, stored together or not at all."""

    items: Annotated[tuple[StoreItemInput, ...], Field(max_length=MAX_ITEMS)]


class ListRequest(CamelCaseValue):
    """A request for a list: all that is visible, one tier, or one scope.

    ``session_id`` and ``project_id`` open a session and a project; without one, none is seen.
    """

    tier: MemoryTier | None = None
    scope: MemoryScope | None = None
    limit: Limit = DEFAULT_LIMIT
    session_id: Name | None = None
    project_id: Name | None = None


class RetrieveRequest(ListRequest):
    """A question; an empty one gives the most important."""

    query: Query


class ForgetRequest(CamelCaseValue):
    """A request to forget what meets every criterion of ``cutoff_date``, ``scope`` and
    ``item_ids``.

    Attributes:
        cutoff_date: goes what was stored before it; ISO 8601 or milliseconds.
        session_id, project_id: of session and project scopes only this one's.
    """

    cutoff_date: Millis | None = None
    scope: MemoryScope | None = None
    item_ids: Annotated[tuple[Name, ...], Field(max_length=MAX_ITEMS)] | None = None
    session_id: Name | None = None
    project_id: Name | None = None

    @model_validator(mode="after")
    def _says_what(self) -> ForgetRequest:
        if self.cutoff_date is None and self.scope is None and self.item_ids is None:
            raise ValueError("one of cutoffDate, scope and itemIds says what is to be forgotten")
        return self


class StoreResult(CamelCaseValue):
    """Ids in the order of the items; of one that was there already, its own."""

    stored_ids: tuple[str, ...]


class ForgetResult(CamelCaseValue):
    deleted_count: int


class MemoryItemRecord(CamelCaseValue):
    """One thing that an agent remembers. Times are ISO 8601 in JSON, milliseconds in Python."""

    memory_item_id: str
    agent_id: str
    tier: MemoryTier
    scope: MemoryScope
    source: MemorySource
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
        """The record of a memory that belongs to an agent."""
        metadata = memory.attributes.get(METADATA)
        return MemoryItemRecord(
            memory_item_id=memory.memory_id,
            agent_id=memory.agent_id or "",
            tier=MemoryTier.of(memory.kind),
            scope=MemoryScope.of(memory.scope),
            source=MemorySource.of(captured_by),
            content=memory.content,
            metadata_json=metadata if isinstance(metadata, str) else None,
            generated_by_turn_id=memory.turn_id,
            session_id=memory.session_id,
            project_id=memory.scope_id if memory.scope is Scope.PROJECT else None,
            sensitivity=memory.sensitivity,
            created_at=memory.created_at,
            updated_at=memory.updated_at,
        )
