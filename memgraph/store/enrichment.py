"""What the nightly enrichment reads: memories of few entities that nobody has enriched yet."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from memgraph.model.enums import Sensitivity
from memgraph.store.snapshot import Snapshot, driver

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


def last_pk(snapshot: Snapshot) -> int:
    [(last,)] = driver(snapshot).execute("SELECT coalesce(max(pk), 0) FROM memories")
    return int(last)


def candidates(
    snapshot: Snapshot, after: int, through: int, max_entities: int, limit: int
) -> list[Candidate]:
    """Active episodes and facts with keys in (``after``, ``through``] that were not enriched.

    Those that name more than ``max_entities`` are left out. In the order of their keys.
    """
    found = driver(snapshot).execute(_CANDIDATES, (after, through, max_entities, limit))
    return [_candidate(row) for row in found]


def still_open(snapshot: Snapshot, pks: Collection[int]) -> list[Candidate]:
    """Those of ``pks`` that are active by now and not enriched, as they are by now."""
    found = driver(snapshot).execute(_STILL_OPEN, (json.dumps(list(pks)),))
    return [_candidate(row) for row in found]


def links_of(snapshot: Snapshot, pks: Collection[int]) -> set[tuple[int, int]]:
    """Pairs of (entity key, memory key) of these memories."""
    found = driver(snapshot).execute(
        "SELECT entity_pk, memory_pk FROM memory_entities"
        " WHERE memory_pk IN (SELECT value FROM json_each(?))",
        (json.dumps(list(pks)),),
    )
    return {(int(entity), int(memory)) for entity, memory in found}


def _candidate(row: tuple[Any, ...]) -> Candidate:
    return Candidate._make((*row[:-1], json.loads(row[-1])))


# Names that may be other names of known entities: what a model is asked about.


_MOST: int = 200
# Active memories that a model may read.
_READABLE = (
    "FROM memory_entities l JOIN memories m ON m.pk = l.memory_pk WHERE l.entity_pk = {0}"
    " AND m.status = 'active' AND m.kind <> 'reflection'"
    " AND m.sensitivity IN (SELECT value FROM json_each(:readable))"
)
_NAMED = "e.type IN ('person', 'project', 'organization', 'other') AND e.merged_into IS NULL"
# A name whose type nobody was sure of, or a single name that others have as a part of theirs.
_UNSURE = (
    f"SELECT e.pk, e.entity_id, e.canonical_name, e.name_key, e.type FROM entities e WHERE {_NAMED}"
    " AND (coalesce(e.type_confidence, 1.0) < :unsure OR instr(e.name_key, ' ') = 0)"
    f" AND EXISTS (SELECT 1 {_READABLE.format('e.pk')}) ORDER BY e.mention_count DESC, e.pk LIMIT"
    f" {_MOST}"
)
# Whose name begins alike or has a word in common.
_ALIAS_CANDIDATES = (
    f"SELECT e.entity_id, e.canonical_name FROM entities e WHERE {_NAMED} AND e.pk <> :pk"
    " AND e.type = :type AND (substr(e.name_key, 1, 3) = substr(:key, 1, 3)"
    " OR instr(' ' || e.name_key || ' ', ' ' || :key || ' ') > 0"
    " OR instr(' ' || :key || ' ', ' ' || e.name_key || ' ') > 0)"
    f" AND EXISTS (SELECT 1 {_READABLE.format('e.pk')})"
    " ORDER BY e.mention_count DESC, e.pk LIMIT :limit"
)
_TEXTS = f"SELECT m.content {_READABLE.format(':pk')} ORDER BY m.pk DESC LIMIT :limit"


class Unsure(NamedTuple):
    """A name that is not sure, texts that hold it, and what it may mean, as (id, name)."""

    entity_id: str
    name: str
    texts: list[str]
    candidates: list[tuple[str, str]]


def unsure(
    snapshot: Snapshot,
    confidence: float,
    readable: Collection[Sensitivity],
    *,
    texts: int,
    candidates: int,
) -> list[Unsure]:
    """Names below ``confidence`` that may mean another entity, the most mentioned first.

    Args:
        readable: memories of other sensitivities are not looked at.
    """
    execute = driver(snapshot).execute
    values = {"readable": json.dumps([each.value for each in readable])}
    found = []
    for pk, entity_id, name, key, kind in execute(
        _UNSURE, {**values, "unsure": confidence}
    ).fetchall():
        alike = execute(
            _ALIAS_CANDIDATES, {**values, "pk": pk, "type": kind, "key": key, "limit": candidates}
        ).fetchall()
        if not alike:
            continue
        held = execute(_TEXTS, {**values, "pk": pk, "limit": texts}).fetchall()
        found.append(Unsure(entity_id, name, [text for (text,) in held], alike))
    return found
