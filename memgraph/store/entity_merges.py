"""Merge entities and take their aliases away, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.orm import aliased
from sqlmodel import col, select

from memgraph.model.tables import EntityAliasRow, EntityRow, MemoryEntityRow
from memgraph.store.entities import EntityName, Link, last_name, link, links_of, recount, set_names
from memgraph.store.entity_records import set_summary
from memgraph.store.rows import fetch, first, remove, save
from memgraph.store.snapshot import Transaction


def merge(transaction: Transaction, into: int, other: int) -> int:
    """Merge the entity ``other`` into ``into``: move its links, and inherit its protection.

    The rows of ``other``, and of entities merged into it earlier, stay as names of ``into``, with
    their aliases.

    Args:
        into, other: the keys of the entities.

    Returns:
        The number of moved links.
    """
    moved = _copy_links(transaction, into, other)
    transaction.execute(sa.delete(MemoryEntityRow).where(col(MemoryEntityRow.entity_pk) == other))
    target, merged = _entity(transaction, into), _entity(transaction, other)
    earlier = select(EntityRow).where(EntityRow.merged_into == merged.entity_id)
    names = [merged, *fetch(transaction, earlier)]
    for name in names:
        name.merged_into = target.entity_id
    target.protected = target.protected or merged.protected
    target.summary = merged.summary = None
    save(transaction, target, *names)
    recount(transaction, [into, other])
    return moved


def absorb(transaction: Transaction, into: int, other: int) -> int:
    """Merge an entity into the person of whose name its own is the first or the last word.

    Its row goes: the person is found by that word anyway, until another one has it, too.

    Returns:
        The number of moved links.
    """
    moved = merge(transaction, into, other)
    a, row = EntityAliasRow, _entity(transaction, other)
    columns = ("alias_key", "entity_pk", "alias")
    names = sa.select(col(a.alias_key), sa.literal(into), col(a.alias))
    names = names.where(col(a.entity_pk) == other, col(a.alias_key) != row.name_key)
    transaction.execute(insert(a).from_select(columns, names).on_conflict_do_nothing())
    transaction.execute(sa.delete(a).where(col(a.entity_pk) == other))
    remove(transaction, row)
    return moved


def _copy_links(transaction: Transaction, into: int, other: int) -> int:
    columns = ("entity_pk", "memory_pk", "names")
    n = MemoryEntityRow
    links = sa.select(sa.literal(into), col(n.memory_pk), col(n.names))
    copied = insert(n).from_select(columns, links.where(col(n.entity_pk) == other))
    both = col(n.names).concat("\n").concat(copied.excluded.names)
    copied = copied.on_conflict_do_update(index_elements=columns[:2], set_={"names": both})
    return transaction.execute(copied).rowcount


def _entity(transaction: Transaction, pk: int) -> EntityRow:
    [row] = fetch(transaction, select(EntityRow).where(EntityRow.pk == pk))
    return row


def retype(transaction: Transaction, row: EntityRow, name: EntityName) -> None:
    """Set a better provider's type, or merge with the entity that has that name and type."""
    meant = aliased(EntityRow)
    is_meant = col(meant.entity_id) == sa.func.coalesce(EntityRow.merged_into, EntityRow.entity_id)
    of_name = select(meant).select_from(EntityRow).join(meant, is_meant)
    of_name = of_name.where(EntityRow.name_key == name.key, EntityRow.type == name.type)
    if existing := first(transaction, of_name):
        merge(transaction, existing.pk, row.pk)
        return
    row.last_name = last_name(row.name_key, name.type)
    row.type, row.type_provider, row.type_confidence = name.type, name.provider, name.confidence
    save(transaction, row)


def protect(transaction: Transaction, pk: int, *, protected: bool) -> None:
    """Set whether the facts about an entity are protected from decay."""
    row = _entity(transaction, pk)
    row.protected = protected
    save(transaction, row)


def unmerge(transaction: Transaction, pks: Sequence[int]) -> None:
    """Make merged entities one entity again: the first, with the names of the others."""
    target, *others = (_entity(transaction, pk) for pk in pks)
    target.merged_into = None
    for other in others:
        other.merged_into = target.entity_id
    save(transaction, target, *others)


def forget_alias(transaction: Transaction, pks: Collection[int], key: str) -> None:
    """Delete an alias of these entities."""
    of_entities = (col(EntityAliasRow.entity_pk).in_(pks), col(EntityAliasRow.alias_key) == key)
    transaction.execute(sa.delete(EntityAliasRow).where(*of_entities))


def unlink(transaction: Transaction, links: Collection[Link]) -> None:
    """Delete links, and count the mentions of their entities again."""
    if links:
        pairs = sa.tuple_(col(MemoryEntityRow.entity_pk), col(MemoryEntityRow.memory_pk))
        transaction.execute(sa.delete(MemoryEntityRow).where(pairs.in_(sorted(links))))
        recount(transaction, sorted({entity_pk for entity_pk, _ in links}))


def relink(
    transaction: Transaction, entity_pk: int, keys: Collection[str], meant: Mapping[str, int]
) -> int:
    """Move the links of an entity that rest on some names to the entities that these mean now.

    A memory that also says another name of the entity stays linked to it.

    Args:
        meant: the entity that each of ``keys`` means; a key that means none only unlinks.

    Returns:
        The number of memories whose links changed.
    """
    moving = {key for key in keys if meant.get(key) != entity_pk}
    kept: dict[Link, set[str]] = {}
    gained: dict[Link, set[str]] = {}
    links = select(MemoryEntityRow).where(MemoryEntityRow.entity_pk == entity_pk)
    for row in fetch(transaction, links.order_by(col(MemoryEntityRow.memory_pk))):
        old = set(row.names.split("\n"))
        if not moving & old:
            continue
        kept[entity_pk, row.memory_pk] = old - moving
        for key in moving & old & meant.keys():
            gained.setdefault((meant[key], row.memory_pk), set()).add(key)
        if old <= moving:
            remove(transaction, row)
    set_names(transaction, {pair: names for pair, names in kept.items() if names})
    link(transaction, gained, links_of(transaction, sorted({pk for _, pk in gained})))
    recount(transaction, [entity_pk])
    set_summary(transaction, entity_pk, None)
    return len(kept)
