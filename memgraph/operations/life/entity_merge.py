"""Merge and split entities, and protect them from decay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.model.entities import EntityInfo
from memgraph.operations.life.profiles import EntityReader, VisibleEntity
from memgraph.operations.maintenance.rebuild import names_in
from memgraph.rules.scope import Viewer
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import entities, entity_merges, text_index
from memgraph.store.entities import EntityName, EntityRecord
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot, Transaction
from memgraph.text.names import canonical

MAX_NAMES: Final = 50
BATCH: Final = 1_000

NamesByKey = dict[int, tuple[EntityName, ...]]
"""The names in memories, by memory key."""


def merge(
    opened: OpenOrchestrator, viewer: Viewer, into: str, other: str, *, reason: str, actor: str
) -> EntityInfo:
    """Move every name and link of ``other`` to ``into``; return the merged entity.

    Raises:
        NotFound: no visible memory names one of them.
        Conflict: a name is ambiguous (``details["candidates"]``), or both are the same entity.
    """
    with opened.transaction(actor) as transaction:
        reader = EntityReader(transaction, viewer, opened.naming)
        target, merged = reader.only(into), reader.only(other)
        transaction.record([merge_found(transaction, target, merged, reason)])
        return reader.only(target.row.entity_id).info


def merge_found(
    transaction: Transaction, into: VisibleEntity, other: VisibleEntity, reason: str
) -> NewEntry:
    """Merge two entities and return the journal entry. Raises Conflict if they are the same."""
    target, merged = into.row, other.row
    if target.pk == merged.pk:
        raise Conflict("both names already mean the same entity", entity_id=target.entity_id)
    moved = entity_merges.merge(
        transaction, (target.pk, target.entity_id), (merged.pk, merged.entity_id)
    )
    details = {
        "other": _summary(merged),
        "into": _summary(target),
        "links": moved,
        "reason": reason,
    }
    return NewEntry("merge_entities", target.entity_id, details)


def protect(
    opened: OpenOrchestrator, viewer: Viewer, name: str, *, protected: bool, reason: str, actor: str
) -> EntityInfo:
    """Protect the facts about an entity from decay, or stop protecting them.

    Raises:
        NotFound: no visible memory names it.
        Conflict: the name is ambiguous.
    """
    with opened.transaction(actor) as transaction:
        entity = EntityReader(transaction, viewer, opened.naming).only(name)
        entity_merges.protect(transaction, entity.row.pk, protected=protected)
        details = {"protected": protected, "reason": reason}
        transaction.record([NewEntry("protect_entity", entity.row.entity_id, details)])
        return entity.info


def split(
    opened: OpenOrchestrator,
    viewer: Viewer,
    entity: str,
    names: Sequence[str],
    *,
    reason: str,
    actor: str,
) -> EntityInfo:
    """Split names off an entity; the first becomes the name of the new entity, which is returned.

    Memories with one of these names in their text are linked to the new entity; those with names of
    both are linked to both.

    Raises:
        InvalidInput: there are no names, or too many.
        NotFound: no visible entity has this name or id, or it does not have these names.
        Conflict: a name is the entity's canonical name, or comes from the settings.
    """
    keys = list(dict.fromkeys(canonical(name) for name in names))
    if not 1 <= len(keys) <= MAX_NAMES or not all(keys):
        raise InvalidInput(f"names must be 1 to {MAX_NAMES} non-empty names", field="names")
    with opened.database.read() as snapshot:
        row = _splittable(EntityReader(snapshot, viewer, opened.naming), opened, entity, keys)
        linked = entity_merges.linked_memories(snapshot, row.pk)
    # Names are searched outside the transaction, since this may exceed the write timeout.
    names_by_pk: NamesByKey = {}
    for start in range(0, len(linked), BATCH):
        with opened.database.read() as snapshot:
            names_by_pk |= _named(opened, snapshot, linked[start : start + BATCH])
    with opened.transaction(actor) as transaction:
        reader = EntityReader(transaction, viewer, opened.naming)
        row = _splittable(reader, opened, row.entity_id, keys)
        added_pks = [
            pk for pk in entity_merges.linked_memories(transaction, row.pk) if pk not in names_by_pk
        ]
        names_by_pk |= _named(opened, transaction, added_pks)
        new = _part(opened, transaction, row, keys)
        moved = _relink(transaction, row, new, names_by_pk)
        details = {"from": _summary(row), "new": _summary(new), "names": keys, "links": moved}
        transaction.record([NewEntry("split_entity", row.entity_id, {**details, "reason": reason})])
        visible = reader.found(new)
        shown_name = new.canonical_name if visible is None else visible.names.shown
        return EntityInfo(
            entity_id=new.entity_id,
            canonical_name=shown_name,
            type=new.type,
            mention_count=0 if visible is None else visible.seen.mentions,
        )


def _splittable(
    reader: EntityReader, opened: OpenOrchestrator, entity: str, keys: Collection[str]
) -> EntityRecord:
    """Return the entity after checking that all these names can be split off."""
    visible = reader.only(entity)
    for key in keys:
        # Checked first, so that hidden names are not disclosed.
        if key not in visible.names.keys:
            raise NotFound(f"{visible.names.shown!r} has no name {key[:80]!r}", name=key[:80])
        if key == visible.row.name_key:
            raise Conflict(
                f"{key!r} is the entity's main name; split off the other names", name=key
            )
        if opened.naming.nicknames.pairs_of([key]):
            raise Conflict(f"{key!r} is set in memory.entities.nicknames", name=key)
    return visible.row


def _named(opened: OpenOrchestrator, snapshot: Snapshot, pks: Sequence[int]) -> NamesByKey:
    contents = text_index.contents_of(snapshot, pks)
    return {pk: names_in(opened, content, attributes) for pk, content, attributes in contents}


def _part(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    row: EntityRecord,
    keys: Sequence[str],
) -> EntityRecord:
    """Move the names to an entity that was merged before, or else to a new one."""
    merged = [
        merged_name
        for key in keys
        for merged_name in entities.merged_names(transaction, row.entity_id)
        if merged_name.name_key == key
    ]
    pks = [
        row.pk,
        *(merged_name.pk for merged_name in entities.merged_names(transaction, row.entity_id)),
    ]
    aliases = [alias for alias in entities.aliases(transaction, pks) if alias[1] in keys]
    if merged and merged[0].name_key == keys[0]:
        new = merged[0]
        entity_merges.unmerge(transaction, new.pk)
    else:
        _, key, written = min(aliases, key=lambda each: keys.index(each[1]))
        entity_id = opened.ids.new("ent_")
        created = entities.create(
            transaction, {EntityName(key, written, row.type): entity_id}, transaction.at
        )
        [pk] = created.values()
        new = EntityRecord(pk, entity_id, written, key, row.type, 0)
    names = [item.pk for item in merged if item.pk != new.pk]
    entity_merges.make_name_of(transaction, names, new.entity_id)
    moving = {pk for pk in pks if pk not in {item.pk for item in merged}}
    entity_merges.move_aliases(
        transaction, [(pk, key) for pk, key, _ in aliases if pk in moving], new.pk
    )
    return new


def _relink(
    transaction: Transaction, old: EntityRecord, new: EntityRecord, names_by_pk: NamesByKey
) -> int:
    """Relink memories by the names in their texts; return the new entity's number of links."""
    names = dict.fromkeys(name for group in names_by_pk.values() for name in group)
    existing = entities.find(transaction, list(names))
    entity_pks = {
        pk: {existing.keys[name] for name in names if name in existing.keys}
        for pk, names in names_by_pk.items()
    }
    add = [(new.pk, pk) for pk, means in entity_pks.items() if new.pk in means]
    remove = [(old.pk, pk) for _, pk in add if old.pk not in entity_pks[pk]]
    entity_merges.relink(transaction, add=add, remove=remove)
    text_index.recount(transaction, [old.pk, new.pk], ())
    return len(add)


def _summary(row: EntityRecord) -> dict[str, str]:
    return {"id": row.entity_id, "name": row.canonical_name, "type": row.type.value}
