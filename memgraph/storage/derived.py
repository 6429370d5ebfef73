"""What a rebuild reads and writes: contents and vectors in batches, entity links and counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from memgraph.storage.enrichment_queries import ENRICHED_NAMES
from memgraph.storage.text_index import search_terms

_RECOUNT = (
    "UPDATE entities SET mention_count ="
    " (SELECT count(*) FROM memory_entities l WHERE l.entity_pk = entities.pk)"
)

# What somebody decided about a name is kept, whether or not it is named at present.
_UNNAMED = (
    "{0}.mention_count = 0 AND {0}.protected = 0 AND {0}.summary IS NULL"
    " AND {0}.merged_into IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM entities o WHERE o.merged_into = {0}.entity_id)"
    " AND NOT EXISTS (SELECT 1 FROM entity_aliases a"
    " WHERE a.entity_pk = {0}.pk AND a.alias_key <> {0}.name_key)"
)


def memory_count(connection: sa.Connection) -> int:
    return int(connection.exec_driver_sql("SELECT count(*) FROM memories").scalar_one())


def entity_count(connection: sa.Connection) -> int:
    return int(connection.exec_driver_sql("SELECT count(*) FROM entities").scalar_one())


def contents(connection: sa.Connection, after: int, limit: int) -> list[tuple[int, str, Any]]:
    """Keys, texts and ``attributes.enriched_names`` (None: none) of the next memories.

    ``after``: the last key of the batch before, or 0.
    """
    return _contents(connection, "pk > ? ORDER BY pk LIMIT ?", (after, limit))


def contents_of(connection: sa.Connection, pks: Sequence[int]) -> list[tuple[int, str, Any]]:
    """The same of the memories with these keys."""
    of_these = "pk IN (SELECT value FROM json_each(?)) ORDER BY pk"
    return _contents(connection, of_these, (json.dumps(list(pks)),))


def _contents(
    connection: sa.Connection, chosen: str, values: tuple[Any, ...]
) -> list[tuple[int, str, Any]]:
    found = connection.exec_driver_sql(
        f"SELECT pk, content, CASE json_type(attributes, '$.{ENRICHED_NAMES}') WHEN 'array'"
        f" THEN json_extract(attributes, '$.{ENRICHED_NAMES}') END FROM memories WHERE {chosen}",
        values,
    )
    return [
        (int(pk), str(content), None if kept is None else json.loads(kept))
        for pk, content, kept in found
    ]


def rewrite_search_terms(connection: sa.Connection) -> int:
    """Make ``search_terms`` anew where they do not fit the content; gives how many did not."""
    after, changed = 0, 0
    while batch := _terms(connection, after):
        wrong = [(fresh, pk) for pk, stored, fresh in batch if stored != fresh]
        if wrong:
            connection.exec_driver_sql("UPDATE memories SET search_terms = ? WHERE pk = ?", wrong)
        after, changed = batch[-1][0], changed + len(wrong)
    return changed


def _terms(connection: sa.Connection, after: int) -> list[tuple[int, str | None, str | None]]:
    found = connection.exec_driver_sql(
        "SELECT pk, search_terms, content FROM memories WHERE pk > ? ORDER BY pk LIMIT 5000",
        (after,),
    )
    return [
        (pk, stored, None if content.isascii() else search_terms(content))
        for pk, stored, content in found
    ]


def ready_vectors(connection: sa.Connection, size: int) -> Iterator[list[tuple[int, Any, Any]]]:
    """(key, vector, dimensions) of the ready ones, ``size`` at a time."""
    after = -1
    while True:
        found = connection.exec_driver_sql(
            "SELECT memory_pk, vector, dimensions FROM memory_embeddings"
            " WHERE state = 'ready' AND memory_pk > ? ORDER BY memory_pk LIMIT ?",
            (after, size),
        )
        batch = [(int(pk), vector, dimensions) for pk, vector, dimensions in found]
        if not batch:
            return
        yield batch
        after = batch[-1][0]


def unlink(connection: sa.Connection, pks: Sequence[int]) -> list[int]:
    """Take the entity links of memories away; gives the keys of the entities they named."""
    listed = (json.dumps(list(pks)),)
    found = connection.exec_driver_sql(
        "SELECT DISTINCT entity_pk FROM memory_entities"
        " WHERE memory_pk IN (SELECT value FROM json_each(?))",
        listed,
    )
    touched = [int(pk) for (pk,) in found]
    connection.exec_driver_sql(
        "DELETE FROM memory_entities WHERE memory_pk IN (SELECT value FROM json_each(?))", listed
    )
    return touched


def recount(connection: sa.Connection, entities: Sequence[int], memories: Sequence[int]) -> None:
    """Count the mentions of these entities, and of those that these memories name."""
    connection.exec_driver_sql(
        f"{_RECOUNT} WHERE pk IN (SELECT value FROM json_each(?))"
        " OR pk IN (SELECT entity_pk FROM memory_entities"
        " WHERE memory_pk IN (SELECT value FROM json_each(?)))",
        (json.dumps(list(entities)), json.dumps(list(memories))),
    )


def recount_all(connection: sa.Connection) -> None:
    connection.exec_driver_sql(_RECOUNT)


def remove_unnamed(connection: sa.Connection) -> int:
    """Remove entities that nothing names and nobody wrote anything about; gives how many."""
    # Another spelling of the own name is no more than that name.
    connection.exec_driver_sql(
        "DELETE FROM entity_aliases WHERE EXISTS (SELECT 1 FROM entities e"
        f" WHERE e.pk = entity_aliases.entity_pk AND {_UNNAMED.format('e')})"
    )
    removed = connection.exec_driver_sql(
        f"DELETE FROM entities WHERE {_UNNAMED.format('entities')}"
    )
    return int(removed.rowcount)
