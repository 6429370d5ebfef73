"""Entities through a handle, found only through memories that its viewer may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memgraph.service.handle import Handle

if TYPE_CHECKING:
    from memgraph.model.entities import EntityInfo, EntityProfile, EntityProposal


class EntitiesHandle(Handle):
    """The part of ``Orchestrator`` for the entities that memories name."""

    @property
    def accurate_ner_available(self) -> bool:
        """Return True when spaCy or a language model is set up for entities; calls neither."""
        with self._service.opened(self.name) as opened:
            return opened.naming.accurate_available

    def entities(self, *, prefix: str = "", limit: int = 50) -> Sequence[EntityInfo]:
        """Return entities, most mentioned first. ``limit`` is 1..1000.

        Args:
            prefix: the beginning of one of their names, in any case.
        """
        from memgraph.service.life.profiles import listing

        with self._service.opened(self.name) as opened:
            return listing(opened, self.viewer, prefix=prefix, limit=limit)

    def get_entity_info(self, name_or_id: str, *, limit: int = 10) -> EntityProfile:
        """Return an entity's profile, by its id, its name, an alias or a nickname.

        An ambiguous name returns the most mentioned entity; ``candidates`` lists the others.

        Args:
            limit: memories at most, 0..100.

        Raises:
            NotFound: no memory that this handle may see names it.
            InvalidInput: not a name, or a limit out of range.
        """
        from memgraph.service.life.profiles import profile

        with self._service.opened(self.name) as opened:
            return profile(opened, self.viewer, name_or_id, limit=limit)

    def merge_entities(self, into: str, other: str, *, reason: str) -> EntityInfo:
        """Merge two entities: ``other`` becomes a name of ``into``. Journalled.

        Args:
            into, other: ids or names.

        Raises:
            NotFound: no memory that this handle may see names one of them.
            Conflict: a name may mean several (``details["candidates"]``), or they are one already.
        """
        from memgraph.service.life.merging import merge

        because = self._because(reason)
        with self._service.opened(self.name) as opened:
            return merge(opened, self.viewer, into, other, reason=because, actor=self.actor)

    def split_entity(self, entity: str, *, names: Sequence[str], reason: str) -> EntityInfo:
        """Move some names of an entity to another entity; return that one. Journalled.

        The first name becomes its own; memories move by the names in their texts.

        Raises:
            NotFound: this handle sees no such entity, or no such name of it.
            Conflict: a name is the entity's own, or comes from the settings.
            InvalidInput: no name, or more than 50.
        """
        from memgraph.service.life.merging import split

        because = self._because(reason)
        with self._service.opened(self.name) as opened:
            return split(opened, self.viewer, entity, names, reason=because, actor=self.actor)

    def protect_entity(self, name_or_id: str, *, reason: str, protected: bool = True) -> EntityInfo:
        """Protect the facts about an entity from decay. Journalled.

        Args:
            protected: False removes the protection.

        Raises:
            NotFound: no memory that this handle may see names it.
            Conflict: the name may mean several (``details["candidates"]``).
        """
        from memgraph.service.life.merging import protect

        because = self._because(reason)
        with self._service.opened(self.name) as opened:
            return protect(
                opened,
                self.viewer,
                name_or_id,
                protected=protected,
                reason=because,
                actor=self.actor,
            )

    def entity_proposals(self) -> Sequence[EntityProposal]:
        """Return the model's nightly proposals: names that may mean a known entity."""
        from memgraph.service.life.merging import listing

        with self._service.opened(self.name) as opened:
            return listing(opened, self.viewer)

    def decide_entity_proposal(self, proposal_id: str, *, accept: bool, reason: str) -> EntityInfo:
        """Merge the entities of a proposal, or reject it for good; return the remaining one.

        Raises:
            NotFound: no such proposal is open for this handle.
        """
        from memgraph.service.life.merging import decide

        because = self._because(reason)
        with self._service.opened(self.name) as opened:
            return decide(
                opened, self.viewer, proposal_id, accept=accept, reason=because, actor=self.actor
            )
