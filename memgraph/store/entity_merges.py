"""Merge entities and take their aliases away, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.store import tables
from memgraph.store.entities import EntityName, Link, TypedEntity, link, links_of, set_names
from memgraph.store.snapshot import Transaction
from memgraph.store.statements import among, prepared, value
from memgraph.store.text_index import recount


@prepared
def _copy_links() -> sa.Insert:
    n = tables.links
    moved = sa.select(value("into"), n.c.memory_pk, n.c.names)
    moved = moved.where(n.c.entity_pk == value("other"))
    copied = insert(n).from_select(["entity_pk", "memory_pk", "names"], moved)
    both = n.c.names.concat("\n").concat(copied.excluded.names)
    return copied.on_conflict_do_update(index_elements=n.primary_key, set_={"names": both})


@prepared
def _unlink(one_memory: bool) -> sa.Delete:
    n = tables.links
    conditions = (n.c.memory_pk == value("memory"),) if one_memory else ()
    return sa.delete(n).where(n.c.entity_pk == value("entity"), *conditions)


@prepared
def _set_merged(by: str) -> sa.Update:
    e = tables.entities
    return sa.update(e).where(e.c[by] == value("which")).values(merged_into=value("into"))


@prepared
def _inherit_protection() -> sa.Update:
    e, o = tables.entities, tables.entities.alias("o")
    other = sa.exists().where(o.c.pk == value("other"), o.c.protected == sa.true())
    return sa.update(e).where(e.c.pk == value("into"), other).values(protected=sa.true())


def merge(transaction: Transaction, into: tuple[int, str], other: tuple[int, str]) -> int:
    """Merge the entity ``other`` into ``into``: move its links, and inherit its protection.

    The rows of ``other``, and of entities merged into it earlier, stay as names of ``into``, with
    their aliases.

    Args:
        into, other: (key, id) of each entity.

    Returns:
        The number of moved links.
    """
    pks = {"into": into[0], "other": other[0]}
    moved = _copy_links().write(transaction, pks)
    _unlink(False).write(transaction, entity=other[0])
    _set_merged("merged_into").write(transaction, which=other[1], into=into[1])
    _inherit_protection().write(transaction, pks)
    _set_merged("pk").write(transaction, which=other[0], into=into[1])
    recount(transaction, list(pks.values()), ())
    return moved


@prepared
def _of_type() -> sa.Select[Any]:
    e, o = tables.entities.alias("e"), tables.entities.alias("o")
    meant = e.c.entity_id == sa.func.coalesce(o.c.merged_into, o.c.entity_id)
    query = sa.select(e.c.pk, e.c.entity_id).select_from(o.join(e, meant))
    return query.where(o.c.name_key == value("key"), o.c.type == value("type"))


@prepared
def _set_type() -> sa.Update:
    e = tables.entities
    new_type = {"type_provider": value("provider"), "type_confidence": value("confidence")}
    return sa.update(e).where(e.c.pk == value("entity")).values(type=value("kind"), **new_type)


def retype(transaction: Transaction, entity: TypedEntity, name: EntityName) -> None:
    """Set a better provider's type, or merge with the entity that has that name and type."""
    existing = _of_type().row(transaction, key=name.key, type=name.type.value)
    if existing is not None:
        merge(transaction, existing, (entity.pk, entity.entity_id))
        return
    provenance = {"provider": name.provider, "confidence": name.confidence}
    _set_type().write(transaction, provenance, kind=name.type.value, entity=entity.pk)


@prepared
def _protect() -> sa.Update:
    e = tables.entities
    return sa.update(e).where(e.c.pk == value("entity")).values(protected=value("is_protected"))


def protect(transaction: Transaction, pk: int, *, protected: bool) -> None:
    """Set whether the facts about an entity are protected from decay."""
    _protect().write(transaction, entity=pk, is_protected=protected)


def unmerge(transaction: Transaction, pks: Sequence[int]) -> None:
    """Make merged entities one entity again: the first, with the names of the others."""
    first, *_ = pks
    entity_id = _entity_id().scalar(transaction, entity=first)
    rows = ({"which": pk, "into": None if pk == first else entity_id} for pk in pks)
    _set_merged("pk").write_all(transaction, rows)


@prepared
def _entity_id() -> sa.Select[Any]:
    return sa.select(tables.entities.c.entity_id).where(tables.entities.c.pk == value("entity"))


@prepared
def _forget_alias() -> sa.Delete:
    a = tables.aliases
    return sa.delete(a).where(among(a.c.entity_pk, "pks"), a.c.alias_key == value("key"))


def forget_alias(transaction: Transaction, pks: Collection[int], key: str) -> None:
    """Delete an alias of these entities."""
    _forget_alias().write(transaction, pks=pks, key=key)


@prepared
def _links_of_entity() -> sa.Select[Any]:
    n = tables.links
    query = sa.select(n.c.memory_pk, n.c.names).where(n.c.entity_pk == value("entity"))
    return query.order_by(n.c.memory_pk)


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
    for memory_pk, names in _links_of_entity().rows(transaction, entity=entity_pk):
        old = set(names.split("\n"))
        if not moving & old:
            continue
        kept[entity_pk, memory_pk] = old - moving
        for key in moving & old & meant.keys():
            gained.setdefault((meant[key], memory_pk), set()).add(key)
    _unlink(True).write_all(
        transaction, ({"entity": e, "memory": m} for (e, m), names in kept.items() if not names)
    )
    set_names(transaction, {pair: names for pair, names in kept.items() if names})
    link(transaction, gained, links_of(transaction, sorted({pk for _, pk in gained})))
    recount(transaction, [entity_pk], ())
    return len(kept)
