"""Names that may be other names of known entities: what a model is asked about."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import Sensitivity
from memgraph.storage.statements import driver

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
_CANDIDATES = (
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
    connection: sa.Connection,
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
    execute = driver(connection).execute
    values = {"readable": json.dumps([each.value for each in readable])}
    found = []
    for pk, entity_id, name, key, kind in execute(
        _UNSURE, {**values, "unsure": confidence}
    ).fetchall():
        alike = execute(
            _CANDIDATES, {**values, "pk": pk, "type": kind, "key": key, "limit": candidates}
        ).fetchall()
        if not alike:
            continue
        held = execute(_TEXTS, {**values, "pk": pk, "limit": texts}).fetchall()
        found.append(Unsure(entity_id, name, [text for (text,) in held], alike))
    return found
