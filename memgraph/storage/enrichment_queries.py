"""What the nightly enrichment reads: memories of few entities that nobody has enriched yet."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.storage.statements import driver

# Attributes of a memory: when it was enriched, and the names that rules alone do not find in it.
ENRICHED_AT: Final = "enriched_at"
ENRICHED_NAMES: Final = "enriched_names"

_OPEN: Final = (
    "m.status = 'active' AND m.kind IN ('episode', 'fact') AND m.content <> ''"
    f" AND json_extract(m.attributes, '$.{ENRICHED_AT}') IS NULL"
)
# In the order of the table: no index would be smaller than a window of it.
_CANDIDATES: Final = (
    "SELECT m.pk, m.memory_id, m.content, m.content_hash, m.sensitivity, m.attributes"
    " FROM memories m NOT INDEXED WHERE m.pk > ? AND m.pk <= ?"
    f" AND {_OPEN} AND (SELECT count(*) FROM memory_entities l WHERE l.memory_pk = m.pk) <= ?"
    " ORDER BY m.pk LIMIT ?"
)
_STILL_OPEN: Final = (
    "SELECT m.pk, m.memory_id, m.content, m.content_hash, m.sensitivity, m.attributes"
    f" FROM memories m WHERE m.pk IN (SELECT value FROM json_each(?)) AND {_OPEN} ORDER BY m.pk"
)


class Candidate(NamedTuple):
    pk: int
    memory_id: str
    content: str
    content_hash: str
    sensitivity: str
    attributes: dict[str, Any]


def last_pk(connection: sa.Connection) -> int:
    [(last,)] = driver(connection).execute("SELECT coalesce(max(pk), 0) FROM memories")
    return int(last)


def candidates(
    connection: sa.Connection, after: int, through: int, max_entities: int, limit: int
) -> list[Candidate]:
    """Active episodes and facts with keys in (``after``, ``through``] that were not enriched.

    Those that name more than ``max_entities`` are left out. In the order of their keys.
    """
    found = driver(connection).execute(_CANDIDATES, (after, through, max_entities, limit))
    return [_candidate(row) for row in found]


def still_open(connection: sa.Connection, pks: Collection[int]) -> list[Candidate]:
    """Those of ``pks`` that are active by now and not enriched, as they are by now."""
    found = driver(connection).execute(_STILL_OPEN, (json.dumps(list(pks)),))
    return [_candidate(row) for row in found]


def links_of(connection: sa.Connection, pks: Collection[int]) -> set[tuple[int, int]]:
    """Pairs of (entity key, memory key) of these memories."""
    found = driver(connection).execute(
        "SELECT entity_pk, memory_pk FROM memory_entities"
        " WHERE memory_pk IN (SELECT value FROM json_each(?))",
        (json.dumps(list(pks)),),
    )
    return {(int(entity), int(memory)) for entity, memory in found}


def _candidate(row: tuple[Any, ...]) -> Candidate:
    return Candidate._make((*row[:-1], json.loads(row[-1])))
