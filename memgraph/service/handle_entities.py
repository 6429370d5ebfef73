"""Entities through a handle; what its viewer may not see names nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memgraph.service.handle import Handle

if TYPE_CHECKING:
    from memgraph.model.entities import EntityInfo, EntityProfile, EntityProposal


class EntitiesHandle(Handle):
    """The part of ``Orchestrator`` that knows who and what memories name."""

    @property
    def accurate_ner_available(self) -> bool:
        """Whether spaCy or a language model can be asked for entities; asks neither."""
        with self._service.opened(self.name) as opened:
            return opened.naming.accurate_available

    def entities(self, *, prefix: str = "", limit: int = 50) -> Sequence[EntityInfo]:
        """Entities, the most mentioned first. ``limit`` is 1..1000.

        Args:
            prefix: how one of their names begins, in any case.
        """
        from memgraph.service.life.profiles import listing

        with self._service.opened(self.name) as opened:
            return listing(opened, self.viewer, prefix=prefix, limit=limit)

    def get_entity_info(self, name_or_id: str, *, limit: int = 10) -> EntityProfile:
        """All about an entity, by its id, its name, an alias or a nickname.

        A name that may mean several gives the most mentioned one; ``candidates`` tells the others.

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
        """Say that two entities are one: ``other`` becomes a name of ``into``. Journalled.

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
        """Make some names of an entity another one; gives that one. Journalled.

        The first name becomes its own; memories go over by what their texts say.

        Raises:
            NotFound: there is no such entity, or it is not called so, for this handle.
            Conflict: a name is the entity's own, or one that the settings tell.
            InvalidInput: no name, or more than 50.
        """
        from memgraph.service.life.merging import split

        because = self._because(reason)
        with self._service.opened(self.name) as opened:
            return split(opened, self.viewer, entity, names, reason=because, actor=self.actor)

    def protect_entity(self, name_or_id: str, *, reason: str, protected: bool = True) -> EntityInfo:
        """Keep the facts about an entity from being retired by time. Journalled.

        Args:
            protected: False lets time retire them again, where it would.

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
        """Return what a model proposed by night: names that mean an entity that is known."""
        from memgraph.service.life.aliases import listing

        with self._service.opened(self.name) as opened:
            return listing(opened, self.viewer)

    def decide_entity_proposal(self, proposal_id: str, *, accept: bool, reason: str) -> EntityInfo:
        """Merge the entities of a proposal, or reject it for good; gives the one that stays.

        Raises:
            NotFound: no such proposal is open for this handle.
        """
        from memgraph.service.life.aliases import decide

        because = self._because(reason)
        with self._service.opened(self.name) as opened:
            return decide(
                opened, self.viewer, proposal_id, accept=accept, reason=because, actor=self.actor
            )
