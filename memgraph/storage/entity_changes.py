"""Merging entities and splitting them again. The caller holds the transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import sqlalchemy as sa

from memgraph.storage.entities import EntityName, Typed
from memgraph.storage.statements import Insert, driver

_link = Insert("memory_entities", ("entity_pk", "memory_pk"), or_ignore=True)


def merge(connection: sa.Connection, into: tuple[int, str], other: tuple[int, str]) -> int:
    """Everything that names ``other`` names ``into``; both as (key, id). Gives the moved links.

    The row of ``other`` stays as a name of ``into``, its aliases with it, and so do those of what
    had been merged into it.
    """
    execute = driver(connection).execute
    moved = execute(
        "UPDATE OR IGNORE memory_entities SET entity_pk = ? WHERE entity_pk = ?",
        (into[0], other[0]),
    ).rowcount
    execute("DELETE FROM memory_entities WHERE entity_pk = ?", (other[0],))
    execute("UPDATE entities SET merged_into = ? WHERE merged_into = ?", (into[1], other[1]))
    execute(
        "UPDATE entities SET protected = 1 WHERE pk = ? AND (SELECT protected FROM entities"
        " WHERE pk = ?)",
        (into[0], other[0]),
    )
    execute("UPDATE entities SET merged_into = ? WHERE pk = ?", (into[1], other[0]))
    recount(connection, [into[0], other[0]])
    return int(moved)


def retype(connection: sa.Connection, one: Typed, name: EntityName) -> None:
    """Give an entity the type that a better provider told, or join it to the one that has it."""
    execute = driver(connection).execute
    found = execute(
        "SELECT e.pk, e.entity_id FROM entities o"
        " JOIN entities e ON e.entity_id = coalesce(o.merged_into, o.entity_id)"
        " WHERE o.name_key = ? AND o.type = ?",
        (name.key, name.type.value),
    ).fetchone()
    if found is not None:
        merge(connection, found, (one.pk, one.entity_id))
        return
    execute(
        "UPDATE entities SET type = ?, type_provider = ?, type_confidence = ? WHERE pk = ?",
        (name.type.value, name.provider, name.confidence, one.pk),
    )


def protect(connection: sa.Connection, pk: int, *, protected: bool) -> None:
    """Whether time may retire the facts about an entity."""
    driver(connection).execute(
        "UPDATE entities SET protected = ? WHERE pk = ?", (int(protected), pk)
    )


def make_own(connection: sa.Connection, pk: int) -> None:
    """A merged name is an entity of its own again."""
    driver(connection).execute("UPDATE entities SET merged_into = NULL WHERE pk = ?", (pk,))


def make_name_of(connection: sa.Connection, pks: Collection[int], entity_id: str) -> None:
    """These merged names become names of another entity."""
    driver(connection).execute(
        "UPDATE entities SET merged_into = ? WHERE pk IN (SELECT value FROM json_each(?))",
        (entity_id, json.dumps(list(pks))),
    )


def move_aliases(
    connection: sa.Connection, aliases: Sequence[tuple[int, str]], entity_pk: int
) -> None:
    """Aliases, as (entity key, alias key), become those of another entity."""
    execute = driver(connection).execute
    for pk, key in aliases:
        execute(
            "UPDATE OR REPLACE entity_aliases SET entity_pk = ?"
            " WHERE entity_pk = ? AND alias_key = ?",
            (entity_pk, pk, key),
        )


def linked_memories(connection: sa.Connection, entity_pk: int) -> list[int]:
    """Keys of the memories that name an entity, ascending."""
    found = driver(connection).execute(
        "SELECT memory_pk FROM memory_entities WHERE entity_pk = ? ORDER BY memory_pk",
        (entity_pk,),
    )
    return [int(pk) for (pk,) in found]


def relink(
    connection: sa.Connection,
    *,
    add: Sequence[tuple[int, int]],
    remove: Sequence[tuple[int, int]],
) -> None:
    """Pairs of (entity key, memory key) to add and to remove; the caller recounts."""
    _link(connection, add)
    driver(connection).executemany(
        "DELETE FROM memory_entities WHERE entity_pk = ? AND memory_pk = ?", remove
    )


def recount(connection: sa.Connection, pks: Collection[int]) -> None:
    """Count the mentions of these entities anew."""
    driver(connection).execute(
        "UPDATE entities SET mention_count ="
        " (SELECT count(*) FROM memory_entities l WHERE l.entity_pk = entities.pk)"
        " WHERE pk IN (SELECT value FROM json_each(?))",
        (json.dumps(list(pks)),),
    )
