"""Reading entities: by id, by name, by how often they are named, as far as a view shows it.

An entity that was merged into another is that other one: every function gives whom a name means.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import EntityType
from memgraph.model.values import Memory
from memgraph.storage.entities import ENTITY_NAMES
from memgraph.storage.rows import memory_from_row
from memgraph.storage.statements import driver
from memgraph.storage.text_index import saying
from memgraph.storage.visibility import View

_FIELDS = "r.pk, r.entity_id, r.canonical_name, r.name_key, r.type, r.mention_count"
# Of an entity its own row, of a merged one the row of what it was merged into.
_MEANT = "JOIN entities r ON r.entity_id = coalesce(e.merged_into, e.entity_id)"
_WHEN = "coalesce(m.event_time, m.created_at)"
_LAST_CHARACTER = "\U0010ffff"


class EntityRow(NamedTuple):
    """``mention_count`` counts all memories, whoever may see them."""

    pk: int
    entity_id: str
    canonical_name: str
    name_key: str
    type: EntityType
    mention_count: int


class Seen(NamedTuple):
    """How many visible memories name an entity, and when the first and the last was."""

    mentions: int
    first: int
    last: int


def by_id(connection: sa.Connection, entity_id: str) -> EntityRow | None:
    found = _rows(
        connection, f"SELECT {_FIELDS} FROM entities e {_MEANT} WHERE e.entity_id = ?", (entity_id,)
    )
    return found[0] if found else None


def by_keys(connection: sa.Connection, keys: Collection[str]) -> list[EntityRow]:
    """Entities that have one of these names or aliases, the most mentioned first."""
    return _rows(
        connection,
        f"SELECT DISTINCT {_FIELDS} FROM entities e {_MEANT}"
        " WHERE e.name_key IN (SELECT value FROM json_each(?1))"
        f" UNION SELECT {_FIELDS} FROM entity_aliases a JOIN entities e ON e.pk = a.entity_pk"
        f" {_MEANT} WHERE a.alias_key IN (SELECT value FROM json_each(?1)) ORDER BY 6 DESC, 1",
        (json.dumps(sorted(keys)),),
    )


def by_prefix(connection: sa.Connection, prefix: str, view: View) -> Iterator[EntityRow]:
    """Entities of the view with a name or an alias that begins so, the most mentioned first."""
    seen = _is_named(view)
    cursor = driver(connection).execute(
        f"SELECT DISTINCT {_FIELDS} FROM entities e {_MEANT}"
        f" WHERE e.name_key >= :begin AND e.name_key < :end AND {seen}"
        f" UNION SELECT {_FIELDS} FROM entity_aliases a JOIN entities e ON e.pk = a.entity_pk"
        f" {_MEANT} WHERE a.alias_key >= :begin AND a.alias_key < :end AND {seen}"
        " ORDER BY 6 DESC, 1",
        {**view.params, "begin": prefix, "end": prefix + _LAST_CHARACTER},
    )
    return (_row(each) for each in cursor)


def most_mentioned(connection: sa.Connection, view: View) -> Iterator[EntityRow]:
    """All that is named by a memory of the view, the most mentioned by all memories first."""
    cursor = driver(connection).execute(
        f"SELECT {_FIELDS} FROM entities r WHERE r.mention_count > 0 AND {_is_named(view)}"
        " ORDER BY r.mention_count DESC, r.pk",
        view.params,
    )
    return (_row(each) for each in cursor)


def is_protected(connection: sa.Connection, pk: int) -> bool:
    [(protected,)] = driver(connection).execute(
        "SELECT protected FROM entities WHERE pk = ?", (pk,)
    )
    return bool(protected)


def merged_names(connection: sa.Connection, entity_id: str) -> list[EntityRow]:
    """The entities that were merged into this one, as they were."""
    return _rows(
        connection,
        f"SELECT {_FIELDS} FROM entities r WHERE r.merged_into = ? ORDER BY r.pk",
        (entity_id,),
    )


def aliases(connection: sa.Connection, pks: Collection[int]) -> list[tuple[int, str, str]]:
    """(entity key, alias key, alias) of these entities."""
    found = driver(connection).execute(
        "SELECT entity_pk, alias_key, alias FROM entity_aliases"
        " WHERE entity_pk IN (SELECT value FROM json_each(?)) ORDER BY entity_pk, alias_key",
        (json.dumps(sorted(pks)),),
    )
    return [(int(pk), str(key), str(alias)) for pk, key, alias in found]


def seen(connection: sa.Connection, pk: int, view: View) -> Seen | None:
    """None: no memory of the view names it, so that it is not there."""
    [(count, first, last)] = driver(connection).execute(
        f"SELECT count(*), min({_WHEN}), max({_WHEN}) {_memories_of(view)}", _values(view, pk)
    )
    return Seen(int(count), int(first), int(last)) if count else None


def of_first_names(connection: sa.Connection, keys: Collection[str]) -> list[EntityRow]:
    """People whose full name begins with one of these names, the most mentioned first."""
    return _rows(
        connection,
        f"SELECT DISTINCT {_FIELDS} FROM json_each(?) f CROSS JOIN entities e"
        f" ON e.name_key > f.value || ' ' AND e.name_key < f.value || '!' {_MEANT}"
        " WHERE e.type = 'person' ORDER BY 6 DESC, 1",
        (json.dumps(sorted(keys)),),
    )


def contents(connection: sa.Connection, pk: int, view: View) -> Iterator[str]:
    """The texts that name an entity, newest first, as they are asked for.

    With the speaker of a turn before its text, and behind a text the names that it was given.
    """
    found = driver(connection).execute(
        "SELECT coalesce(m.source_role || ': ', '') || m.content"
        f" || coalesce(' ' || json_extract(m.attributes, '$.{ENTITY_NAMES}'), '')"
        f" {_memories_of(view)} ORDER BY l.memory_pk DESC",
        _values(view, pk),
    )
    return (str(content) for (content,) in found)


def contents_saying(
    connection: sa.Connection, pk: int, view: View, names: Collection[str]
) -> Iterator[str]:
    """Those of the texts that name an entity in which the full-text index finds one of the names,
    as they are asked for: what it finds may be written otherwise."""
    found = driver(connection).execute(
        "SELECT m.content FROM memory_fts f CROSS JOIN memories m ON m.pk = f.rowid"
        f" WHERE f.memory_fts MATCH :match AND {view.where('m')} AND EXISTS (SELECT 1"
        " FROM memory_entities l WHERE l.entity_pk = :entity_pk AND l.memory_pk = m.pk)",
        {**_values(view, pk), "match": saying(names)},
    )
    return (str(content) for (content,) in found)


def top_memories(connection: sa.Connection, pk: int, view: View, limit: int) -> list[Memory]:
    """Facts that name an entity, then turns: the most important first, then the newest."""
    found = driver(connection).execute(
        f"SELECT {view.memory_columns('m')} {_memories_of(view)} AND m.kind <> 'reflection'"
        f" ORDER BY m.kind = 'episode', m.importance DESC, {_WHEN} DESC, m.pk DESC LIMIT :limit",
        {**_values(view, pk), "limit": limit},
    )
    return [memory_from_row(row) for row in found]


def together(
    connection: sa.Connection, pk: int, view: View, limit: int
) -> list[tuple[EntityRow, int]]:
    """Entities named in the same memories, each with their number, the most frequent first."""
    found = driver(connection).execute(
        f"SELECT {_FIELDS}, count(*) AS shared {_memories_of(view, 'JOIN memory_entities o')}"
        " AND o.entity_pk <> l.entity_pk GROUP BY r.pk ORDER BY shared DESC, r.pk LIMIT :limit",
        {**_values(view, pk), "limit": limit},
    )
    return [(_row(row[:-1]), int(row[-1])) for row in found]


def _is_named(view: View) -> str:
    return (
        "EXISTS (SELECT 1 FROM memory_entities l CROSS JOIN memories m ON m.pk = l.memory_pk"
        f" WHERE l.entity_pk = r.pk AND {view.where('m')})"
    )


def _memories_of(view: View, beside: str = "") -> str:
    more = (
        f" {beside} ON o.memory_pk = m.pk JOIN entities r ON r.pk = o.entity_pk" if beside else ""
    )
    return (
        "FROM memory_entities l CROSS JOIN memories m ON m.pk = l.memory_pk"
        f"{more} WHERE l.entity_pk = :entity_pk AND {view.where('m')}"
    )


def _values(view: View, pk: int) -> dict[str, Any]:
    return {**view.params, "entity_pk": pk}


def _rows(connection: sa.Connection, statement: str, values: tuple[Any, ...]) -> list[EntityRow]:
    return [_row(row) for row in driver(connection).execute(statement, values)]


def _row(row: tuple[Any, ...]) -> EntityRow:
    pk, entity_id, name, key, kind, mentions = row
    return EntityRow(pk, entity_id, name, key, EntityType(kind), mentions)
