"""Merge entities, and take their aliases away."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.errors import Conflict, NotFound
from memgraph.ids import ENTITY_PREFIX
from memgraph.model.entities import EntityInfo
from memgraph.model.enums import EntityType
from memgraph.operations.life.profiles import EntityReader, one_word_names
from memgraph.operations.write.entity_links import merge_entry, summary
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import entities, entity_merges, entity_records
from memgraph.store.entities import EntityName
from memgraph.store.entity_records import EntityRecord
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Transaction
from memgraph.text.names import canonical


def merge(
    transaction: JournalledTransaction, reader: EntityReader, into: str, other: str, reason: str
) -> EntityInfo:
    """Move every name and link of ``other`` to ``into``; return the merged entity.

    Raises:
        NotFound, Conflict: see ``Entities.merge``.
    """
    target, merged = reader.only(into), reader.only(other)
    if target.row.pk == merged.row.pk:
        message = "both names already mean the same entity"
        raise Conflict(message, entity_id=target.row.entity_id)
    _require_unmerged(transaction, merged.row, other)
    moved = entity_merges.merge(transaction, target.row.pk, merged.row.pk)
    transaction.record([merge_entry(target.row, merged.row, moved, reason)])
    return reader.only(target.row.entity_id).info


def _require_unmerged(transaction: Transaction, row: EntityRecord, name_or_id: str) -> None:
    """Raise Conflict if a name or id is that of an entity that was merged into this one."""
    given, own = {name_or_id, canonical(name_or_id)}, {row.entity_id, row.name_key}
    merged = entity_records.merged_names(transaction, row.entity_id)
    if not given & own and any(given & {each.entity_id, each.name_key} for each in merged):
        message = f"{name_or_id[:80]!r} was merged into {row.entity_id} before; merge that one"
        raise Conflict(message, entity_id=row.entity_id)


def remove_alias(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    reader: EntityReader,
    name: str,
    alias: str,
    reason: str,
) -> EntityInfo:
    """Take an alias from an entity; return the entity.

    Raises:
        NotFound, Conflict: see ``Entities.remove_alias``.
    """
    key, entity = canonical(alias), reader.only(name)
    row = entity.row
    # Checked first, so that hidden names are not disclosed.
    if key not in entity.keys:
        raise NotFound(f"{entity.shown!r} has no name {alias[:80]!r}", name=alias[:80])
    if opened.naming.nicknames.pairs_of([key]):
        raise Conflict(f"{alias!r} is set in memory.entities.nicknames", name=key)
    merged = entity_records.merged_names(transaction, row.entity_id)
    aliases = entity_records.aliases(transaction, [row.pk, *(other.pk for other in merged)])
    apart = [other for other in merged if other.name_key == key]
    if key == row.name_key:
        raise Conflict(f"{alias!r} is the main name of this entity", name=key)
    if not apart and (written := dict(one_word_names(row)).get(key)):
        apart = _of_its_own(opened, transaction, row, key, written)
    links = _take_away(transaction, row, key, apart, aliases)
    details = {
        "from": summary(row),
        "alias": key,
        "new": summary(apart[0]) if apart else None,
        "links": links,
        "reason": reason,
    }
    transaction.record([NewEntry("remove_alias", row.entity_id, details)])
    left = reader.found(row)
    # Only hidden memories may name it now, so its other names are not disclosed.
    return entity.info.model_copy(update={"mention_count": 0}) if left is None else left.info


def _of_its_own(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    row: EntityRecord,
    key: str,
    written: str,
) -> list[EntityRecord]:
    """Create a person with the first or last name of another; none if the name is a third one's."""
    name = EntityName(key, written, EntityType.PERSON)
    if entities.find(transaction, [name]).keys.get(name, row.pk) != row.pk:
        return []
    entity_id = opened.ids.new(ENTITY_PREFIX)
    pk = entities.create(transaction, {name: entity_id}, transaction.at)[name]
    return [EntityRecord(pk, entity_id, written, key, name.type, 0)]


def _take_away(
    transaction: Transaction,
    row: EntityRecord,
    key: str,
    apart: Sequence[EntityRecord],
    aliases: Sequence[tuple[int, str, str]],
) -> int:
    """Remove a name of an entity and relink its memories; return the number of changed ones.

    ``apart``: the merged entities with this name, which become one entity of their own.
    """
    pks = [other.pk for other in apart]
    if pks:
        entity_merges.unmerge(transaction, pks)
    staying = [pk for pk, alias_key, _ in aliases if alias_key == key and pk not in pks]
    entity_merges.forget_alias(transaction, staying, key)
    # Its first or last name may have meant the entity; now it may mean another one, or several.
    keys = {key, key.partition(" ")[0], key.rpartition(" ")[2]}
    keys.update(alias_key for pk, alias_key, _ in aliases if pk in pks)
    meant = entities.meant_by(transaction, keys)
    if pks:
        meant[key] = pks[0]
    return entity_merges.relink(transaction, row.pk, keys, meant)
