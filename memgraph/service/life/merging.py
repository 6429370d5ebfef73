"""Merging and splitting entities, journalled and traceable.

Both are stored as knowledge about names, so that a rebuild of all links gives the same result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from memgraph.audit.journal import Entry
from memgraph.entities.normalise import canonical
from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.model.entities import EntityInfo
from memgraph.rules.scope import Viewer
from memgraph.service.life.profiles import Found, Reader
from memgraph.service.opened import Opened
from memgraph.service.rebuilding import names_in
from memgraph.store import entities, text_index
from memgraph.store.entities import EntityName, EntityRow
from memgraph.store.snapshot import Snapshot, Transaction

MAX_NAMES: Final = 50
BATCH: Final = 1_000

Named = dict[int, tuple[EntityName, ...]]
"""The names in memories, by the memories' keys."""


def merge(
    opened: Opened, viewer: Viewer, into: str, other: str, *, reason: str, actor: str
) -> EntityInfo:
    """Move every name and link of ``other`` to ``into``; return the merged entity.

    Raises:
        NotFound: the viewer may see no memory that names one of them.
        Conflict: a name may mean several (``details["candidates"]``), or both are one already.
    """
    with opened.transaction(actor) as transaction:
        reader = Reader(transaction, viewer, opened.naming)
        kept, gone = reader.only(into), reader.only(other)
        transaction.tell([merge_found(transaction, kept, gone, reason)])
        return reader.only(kept.row.entity_id).info


def merge_found(transaction: Transaction, into: Found, other: Found, reason: str) -> Entry:
    """Merge two entities and return the journal entry. Raises Conflict: they are one."""
    kept, gone = into.row, other.row
    if kept.pk == gone.pk:
        raise Conflict("these are one entity already", entity_id=kept.entity_id)
    moved = entities.merge(transaction, (kept.pk, kept.entity_id), (gone.pk, gone.entity_id))
    told = {"other": _told(gone), "into": _told(kept), "links": moved, "reason": reason}
    return Entry("merge_entities", kept.entity_id, told)


def protect(
    opened: Opened, viewer: Viewer, name: str, *, protected: bool, reason: str, actor: str
) -> EntityInfo:
    """Protect the facts about an entity from decay, or stop protecting them.

    Raises:
        NotFound: the viewer may see no memory that names it.
        Conflict: the name may mean several.
    """
    with opened.transaction(actor) as transaction:
        one = Reader(transaction, viewer, opened.naming).only(name)
        entities.protect(transaction, one.row.pk, protected=protected)
        details = {"protected": protected, "reason": reason}
        transaction.tell([Entry("protect_entity", one.row.entity_id, details)])
        return one.info


def split(
    opened: Opened, viewer: Viewer, entity: str, names: Sequence[str], *, reason: str, actor: str
) -> EntityInfo:
    """Move names of an entity to another entity, named by the first; return the new one.

    Memories with one of these names in their text move; those with both kinds of names are linked
    to both.

    Raises:
        InvalidInput: no name, or too many.
        NotFound: the viewer sees no such entity, or no such name of it.
        Conflict: a name is the entity's own one, or comes from the settings.
    """
    keys = list(dict.fromkeys(canonical(each) for each in names))
    if not 1 <= len(keys) <= MAX_NAMES or not all(keys):
        raise InvalidInput(f"1 to {MAX_NAMES} names, none of them empty", field="names")
    with opened.database.read() as snapshot:
        row = _splittable(Reader(snapshot, viewer, opened.naming), opened, entity, keys)
        linked = entities.linked_memories(snapshot, row.pk)
    # Names are searched outside the transaction: it may take longer than writers wait.
    named: Named = {}
    for start in range(0, len(linked), BATCH):
        with opened.database.read() as snapshot:
            named |= _named(opened, snapshot, linked[start : start + BATCH])
    with opened.transaction(actor) as transaction:
        reader = Reader(transaction, viewer, opened.naming)
        row = _splittable(reader, opened, row.entity_id, keys)
        since = [pk for pk in entities.linked_memories(transaction, row.pk) if pk not in named]
        named |= _named(opened, transaction, since)
        new = _part(opened, transaction, row, keys, transaction.at)
        moved = _relink(transaction, row, new, named)
        told = {"from": _told(row), "new": _told(new), "names": keys, "links": moved}
        transaction.tell([Entry("split_entity", row.entity_id, {**told, "reason": reason})])
        found = reader.found(new)
        shown = new.canonical_name if found is None else found.names.shown
        return EntityInfo(
            entity_id=new.entity_id,
            canonical_name=shown,
            type=new.type,
            mention_count=0 if found is None else found.seen.mentions,
        )


def _splittable(reader: Reader, opened: Opened, entity: str, keys: Collection[str]) -> EntityRow:
    """Return the entity, if all these are names of it that can be removed from it."""
    one = reader.only(entity)
    for key in keys:
        # First, so that nothing is disclosed about a hidden name.
        if key not in one.names.keys:
            raise NotFound(f"{one.names.shown!r} is not called {key[:80]!r}", name=key[:80])
        if key == one.row.name_key:
            raise Conflict(f"{key!r} is the entity's own name; split the other names off", name=key)
        if opened.naming.nicknames.pairs_of([key]):
            raise Conflict(f"{key!r} is told by memory.entities.nicknames", name=key)
    return one.row


def _named(opened: Opened, snapshot: Snapshot, pks: Sequence[int]) -> Named:
    found = text_index.contents_of(snapshot, pks)
    return {pk: names_in(opened, content, kept) for pk, content, kept in found}


def _part(
    opened: Opened, transaction: Transaction, row: EntityRow, keys: Sequence[str], at: int
) -> EntityRow:
    """Give the names to an entity of their own: one that was merged, or else a new one."""
    merged = [
        each
        for key in keys
        for each in entities.merged_names(transaction, row.entity_id)
        if each.name_key == key
    ]
    group = [row.pk, *(each.pk for each in entities.merged_names(transaction, row.entity_id))]
    aliases = [each for each in entities.aliases(transaction, group) if each[1] in keys]
    if merged and merged[0].name_key == keys[0]:
        new = merged[0]
        entities.make_own(transaction, new.pk)
    else:
        _, key, written = min(aliases, key=lambda each: keys.index(each[1]))
        entity_id = opened.ids.new("ent_")
        made = entities.create(transaction, {EntityName(key, written, row.type): entity_id}, at)
        [pk] = made.values()
        new = EntityRow(pk, entity_id, written, key, row.type, 0)
    names = [each.pk for each in merged if each.pk != new.pk]
    entities.make_name_of(transaction, names, new.entity_id)
    moving = {pk for pk in group if pk not in {each.pk for each in merged}}
    entities.move_aliases(
        transaction, [(pk, key) for pk, key, _ in aliases if pk in moving], new.pk
    )
    return new


def _relink(transaction: Transaction, old: EntityRow, new: EntityRow, named: Named) -> int:
    """Link memories by the names in their texts; return how many links the new entity has."""
    names = dict.fromkeys(name for each in named.values() for name in each)
    known = entities.find(transaction, list(names))
    meant = {
        pk: {known.keys[name] for name in names if name in known.keys}
        for pk, names in named.items()
    }
    add = [(new.pk, pk) for pk, means in meant.items() if new.pk in means]
    remove = [(old.pk, pk) for _, pk in add if old.pk not in meant[pk]]
    entities.relink(transaction, add=add, remove=remove)
    entities.recount(transaction, [old.pk, new.pk])
    return len(add)


def _told(row: EntityRow) -> dict[str, str]:
    return {"id": row.entity_id, "name": row.canonical_name, "type": row.type.value}
