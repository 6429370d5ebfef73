"""What is handed out about entities: who or what memories name."""

from __future__ import annotations

from memgraph.model.enums import EntityType
from memgraph.model.values import Memory, Millis, Value


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
