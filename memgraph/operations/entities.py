"""Entities through a handle, found only through memories that its viewer may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from memgraph.model.access import Permission
from memgraph.model.entities import EntityInfo, EntityProfile, EntityProposal
from memgraph.model.operation import WireFormat, operation
from memgraph.model.remote import EntityList, EntityProposals, Limit
from memgraph.model.values import MAX_NAME_CHARS, Name, Reason
from memgraph.operations.handle import Handle

Named = Annotated[Name, WireFormat(name="name")]


class EntitiesHandle(Handle):
    """The part of ``Orchestrator`` for the entities that memories name."""

    @property
    def accurate_ner_available(self) -> bool:
        """Return True when spaCy or a language model is set up for entities; calls neither."""
        with self._service.opened(self.name) as opened:
            return opened.naming.accurate_available

    @operation(
        Permission.READ, "GET", "/entities", tag="entities", id="list_entities", answer=EntityList
    )
    def entities(
        self,
        *,
        prefix: Annotated[
            str, Field(max_length=MAX_NAME_CHARS, description="How a name begins.")
        ] = "",
        limit: Limit = 50,
    ) -> Sequence[EntityInfo]:
        """Return entities, most mentioned first. ``limit`` is 1..1000.

        Args:
            prefix: the beginning of one of their names, in any case.
        """
        from memgraph.operations.life.profiles import listing

        with self._service.opened(self.name) as opened:
            return listing(opened, self.viewer, prefix=prefix, limit=limit)

    @operation(Permission.READ, "POST", "/entities/info", tag="entities", body="EntityWanted")
    def get_entity_info(
        self, name_or_id: Named, *, limit: Annotated[int, Field(ge=0, le=100)] = 10
    ) -> EntityProfile:
        """Return an entity's profile, by its id, its name, an alias or a nickname.

        An ambiguous name returns the most mentioned entity; ``candidates`` lists the others.

        Args:
            limit: memories at most, 0..100.

        Raises:
            NotFound: no memory that this handle may see names it.
            InvalidInput: not a name, or a limit out of range.
        """
        from memgraph.operations.life.profiles import profile

        with self._service.opened(self.name) as opened:
            return profile(opened, self.viewer, name_or_id, limit=limit)

    @operation(Permission.ADMIN, "POST", "/entities/merge", tag="entities", body="Merge")
    def merge_entities(self, into: Name, other: Name, *, reason: Reason) -> EntityInfo:
        """Merge two entities: ``other`` becomes a name of ``into``. Journalled.

        Args:
            into, other: ids or names.

        Raises:
            NotFound: no memory that this handle may see names one of them.
            Conflict: a name may mean several (``details["candidates"]``), or they are one already.
        """
        from memgraph.operations.life.entity_merge import merge

        because = self._because(reason)
        with self._service.opened(self.name) as opened:
            return merge(opened, self.viewer, into, other, reason=because, actor=self.actor)

    @operation(Permission.ADMIN, "POST", "/entities/split", tag="entities", body="Split")
    def split_entity(
        self,
        entity: Name,
        *,
        names: Annotated[
            Sequence[str], WireFormat(tuple[Name, ...]), Field(min_length=1, max_length=50)
        ],
        reason: Reason,
    ) -> EntityInfo:
        """Move some names of an entity to another entity; return that one. Journalled.

        The first name becomes its own; memories move by the names in their texts.

        Raises:
            NotFound: this handle sees no such entity, or no such name of it.
            Conflict: a name is the entity's own, or comes from the settings.
            InvalidInput: no name, or more than 50.
        """
        from memgraph.operations.life.entity_merge import split

        because = self._because(reason)
        with self._service.opened(self.name) as opened:
            return split(opened, self.viewer, entity, names, reason=because, actor=self.actor)

    @operation(Permission.ADMIN, "POST", "/entities/protect", tag="entities", body="Protect")
    def protect_entity(
        self, name_or_id: Named, *, reason: Reason, protected: bool = True
    ) -> EntityInfo:
        """Protect the facts about an entity from decay. Journalled.

        Args:
            protected: False removes the protection.

        Raises:
            NotFound: no memory that this handle may see names it.
            Conflict: the name may mean several (``details["candidates"]``).
        """
        from memgraph.operations.life.entity_merge import protect

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

    @operation(
        Permission.READ, "GET", "/entities/proposals", tag="entities", answer=EntityProposals
    )
    def entity_proposals(self) -> Sequence[EntityProposal]:
        """Return the model's nightly proposals: names that may mean a known entity."""
        from memgraph.operations.life.entity_merge import listing

        with self._service.opened(self.name) as opened:
            return listing(opened, self.viewer)

    @operation(Permission.ADMIN, "POST", "/entities/decide", tag="entities", body="Decide")
    def decide_entity_proposal(
        self, proposal_id: Name, *, accept: bool, reason: Reason
    ) -> EntityInfo:
        """Merge the entities of a proposal, or reject it for good; return the remaining one.

        Raises:
            NotFound: no such proposal is open for this handle.
        """
        from memgraph.operations.life.entity_merge import decide

        because = self._because(reason)
        with self._service.opened(self.name) as opened:
            return decide(
                opened, self.viewer, proposal_id, accept=accept, reason=because, actor=self.actor
            )
