"""Operations on entities; an entity is visible only through visible memories that name it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from memgraph.model.access import Permission
from memgraph.model.entities import EntityInfo, EntityProfile
from memgraph.model.operation import F, WireFormat, operation
from memgraph.model.remote import EntityList, Limit
from memgraph.model.values import MAX_NAME_CHARS, Name, Reason
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.operations.life.profiles import EntityReader
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.snapshot import JournalledTransaction

Named = Annotated[Name, WireFormat(name="name")]


class Entities(Handle[F], group="entities"):
    """The entities that memories name: ``orc.entities``."""

    @operation(
        Permission.READ, "GET /entities", id="list_entities", answer=EntityList, command="entities"
    )
    def list(
        self,
        *,
        prefix: Annotated[
            str, Field(max_length=MAX_NAME_CHARS, description="Beginning of a name.")
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

    @operation(
        Permission.READ,
        "POST /entities/info",
        body="EntityWanted",
        id="get_entity_info",
        command="entity",
    )
    def get(
        self, name_or_id: Named, *, limit: Annotated[int, Field(ge=0, le=100)] = 10
    ) -> EntityProfile:
        """Return an entity's profile, by its id, its name, an alias or a nickname.

        An ambiguous name returns the most mentioned entity; ``candidates`` lists the others.

        Args:
            name_or_id: a name, a nickname or an id.
            limit: the maximum number of memories, 0..100.

        Raises:
            NotFound: no visible memory names it.
            InvalidInput: the name or the limit is invalid.
        """
        from memgraph.operations.life.profiles import profile

        with self._service.opened(self.name) as opened:
            return profile(opened, self.viewer, name_or_id, limit=limit)

    @operation(Permission.ADMIN, "POST /entities/merge", body="Merge", id="merge_entities")
    def merge(self, into: Name, other: Name, *, reason: Reason) -> EntityInfo:
        """Merge two entities: ``other`` becomes a name of ``into``. Journalled.

        Args:
            into, other: ids or names.

        Raises:
            NotFound: no visible memory names one of them.
            Conflict: a name is ambiguous (``details["candidates"]``), they are already merged, or
                ``other`` was merged into another entity (``details["entity_id"]``).
        """
        from memgraph.operations.life.entity_merge import merge

        because = self._because(reason)
        with self._reading_names() as (_, transaction, reader):
            return merge(transaction, reader, into, other, because)

    @operation(Permission.ADMIN, "POST /entities/remove-alias", body="AliasRemoval")
    def remove_alias(self, entity: Name, alias: Name, *, reason: Reason) -> EntityInfo:
        """Take a name away from an entity, and return the entity. Journalled.

        Memories that name the entity by this alias alone are no longer linked to it. An alias that
        comes from a merge becomes an entity of its own again, with these memories; so does a first
        or last name, which then does not mean the person any more.

        Args:
            entity: an id or a name.

        Raises:
            NotFound: no visible entity has this id or name, or it does not have this alias.
            Conflict: the name is ambiguous (``details["candidates"]``); or the alias is the
                entity's main name, or comes from the settings.
        """
        from memgraph.operations.life.entity_merge import remove_alias

        because = self._because(reason)
        with self._reading_names() as (opened, transaction, reader):
            return remove_alias(opened, transaction, reader, entity, alias, because)

    @operation(Permission.ADMIN, "POST /entities/protect", body="Protect", id="protect_entity")
    def protect(self, name_or_id: Named, *, reason: Reason, protected: bool = True) -> EntityInfo:
        """Protect the facts about an entity from decay. Journalled.

        Args:
            name_or_id: a name, a nickname or an id.
            protected: False removes the protection.

        Raises:
            NotFound: no visible memory names it.
            Conflict: the name is ambiguous (``details["candidates"]``).
        """
        from memgraph.store import entity_merges
        from memgraph.store.snapshot import NewEntry

        because = self._because(reason)
        with self._reading_names() as (_, transaction, reader):
            entity = reader.only(name_or_id)
            entity_merges.protect(transaction, entity.row.pk, protected=protected)
            details = {"protected": protected, "reason": because}
            transaction.record([NewEntry("protect_entity", entity.row.entity_id, details)])
            return entity.info

    @contextmanager
    def _reading_names(
        self,
    ) -> Iterator[tuple[OpenOrchestrator, JournalledTransaction, EntityReader]]:
        from memgraph.operations.life.profiles import EntityReader

        with self._write() as (opened, transaction):
            yield opened, transaction, EntityReader(transaction, self.viewer, opened.naming)
