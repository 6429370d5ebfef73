"""Merge entities and split them again, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.store import tables
from memgraph.store.entities import EntityName, TypedEntity, add_links
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import among, prepared, value
from memgraph.store.text_index import recount


@prepared
def _copy_links() -> sa.Insert:
    n = tables.links
    moved = sa.select(value("into"), n.c.memory_pk).where(n.c.entity_pk == value("other"))
    copied = insert(n).from_select(["entity_pk", "memory_pk"], moved)
    return copied.on_conflict_do_nothing()


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
        The number of new links of ``into``.
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


def unmerge(transaction: Transaction, pk: int) -> None:
    """Make a merged name a separate entity again."""
    _set_merged("pk").write(transaction, which=pk, into=None)


@prepared
def _make_name_of() -> sa.Update:
    e = tables.entities
    return sa.update(e).where(among(e.c.pk, "pks")).values(merged_into=value("into"))


def make_name_of(transaction: Transaction, pks: Collection[int], entity_id: str) -> None:
    """Make merged names the names of another entity."""
    _make_name_of().write(transaction, pks=pks, into=entity_id)


@prepared
def _move_alias() -> sa.Update:
    a = tables.aliases
    moved = sa.update(a).prefix_with("OR REPLACE", dialect="sqlite")
    conditions = (a.c.entity_pk == value("entity"), a.c.alias_key == value("key"))
    return moved.where(*conditions).values(entity_pk=value("into"))


def move_aliases(
    transaction: Transaction, aliases: Sequence[tuple[int, str]], entity_pk: int
) -> None:
    """Move aliases, as (entity key, alias key), to another entity."""
    rows = ({"entity": pk, "key": key, "into": entity_pk} for pk, key in aliases)
    _move_alias().write_all(transaction, rows)


@prepared
def _linked_memories() -> sa.Select[Any]:
    n = tables.links
    query = sa.select(n.c.memory_pk).where(n.c.entity_pk == value("entity"))
    return query.order_by(n.c.memory_pk)


def linked_memories(snapshot: Snapshot, entity_pk: int) -> list[int]:
    """Return the keys of the memories that mention an entity, ascending."""
    return _linked_memories().column(snapshot, entity=entity_pk)


def relink(
    transaction: Transaction,
    *,
    add: Sequence[tuple[int, int]],
    remove: Sequence[tuple[int, int]],
) -> None:
    """Add and remove links as (entity key, memory key); the caller updates the counts."""
    add_links(transaction, add)
    rows = ({"entity": entity, "memory": memory} for entity, memory in remove)
    _unlink(True).write_all(transaction, rows)
