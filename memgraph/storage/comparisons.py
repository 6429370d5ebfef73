"""The SQL of comparing new facts with stored ones. SQLite's.

Every function works on the connection of a transaction or snapshot that the caller holds, and binds
plain values.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import Sensitivity
from memgraph.storage.consolidation_queries import Place
from memgraph.storage.namespace_queries import is_no_item
from memgraph.storage.statements import driver
from memgraph.storage.visibility import View


class ComparedFact(NamedTuple):
    """An active fact beside a place.

    ``time``: when it was said, as far as known: its event time, unless that was still to come when
    it was stored. ``twin``: it is of just that place. ``seen``: the view shows it.
    """

    pk: int
    memory_id: str
    content: str
    type: str
    confidence: float
    decay_rate: float
    time: int
    captured_by: str
    source_type: str
    source_path: str | None
    content_sha256: str | None
    agent_id: str | None
    twin: int
    seen: int


_BESIDE = (
    f"m.kind = 'fact' AND {is_no_item('m')} AND m.status = 'active'"
    " AND m.scope = :scope AND m.scope_id IS :scope_id"
    " AND (m.agent_id IS NULL OR m.agent_id IS :agent_id)"
    " AND m.sensitivity IN (SELECT value FROM json_each(:sensitivities))"
    " AND (m.valid_until IS NULL OR m.valid_until > :at)"
)


def facts_by_text(
    connection: sa.Connection, match: str, place: Place, view: View | None, *, at: int, limit: int
) -> list[ComparedFact]:
    """Facts beside a place that fulfil an FTS5 expression, best bm25 first."""
    statement = (
        f"SELECT {_columns(view)} FROM memory_fts f CROSS JOIN memories m ON m.pk = f.rowid"
        " JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE f.memory_fts MATCH :match AND {_BESIDE} ORDER BY f.rank LIMIT :most"
    )
    return _facts(connection, statement, place, view, at, {"match": match, "most": limit})


def facts_of_entities(
    connection: sa.Connection,
    entity_pks: Collection[int],
    place: Place,
    view: View | None,
    *,
    at: int,
    limit: int,
) -> list[ComparedFact]:
    """Facts beside a place in which entities are named, the newest of each first."""
    statement = (
        f"SELECT {_columns(view)} FROM (SELECT l.memory_pk FROM memory_entities l"
        " WHERE l.entity_pk = :entity ORDER BY l.memory_pk DESC LIMIT :looked_at) e"
        " CROSS JOIN memories m ON m.pk = e.memory_pk"
        " JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE {_BESIDE} ORDER BY m.pk DESC LIMIT :most"
    )
    found: dict[int, ComparedFact] = {}
    for entity in sorted(entity_pks):
        values = {"entity": entity, "looked_at": 4 * limit, "most": limit}
        for fact in _facts(connection, statement, place, view, at, values):
            found.setdefault(fact.pk, fact)
    return list(found.values())


def facts_by_key(
    connection: sa.Connection, pks: Sequence[int], place: Place, view: View | None, *, at: int
) -> list[ComparedFact]:
    """Those of some memories that are facts beside a place, in the order of ``pks``."""
    statement = (
        f"SELECT {_columns(view)} FROM json_each(:pks) k CROSS JOIN memories m ON m.pk = k.value"
        " JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE {_BESIDE} ORDER BY k.key"
    )
    return _facts(connection, statement, place, view, at, {"pks": json.dumps(list(pks))})


def _columns(view: View | None) -> str:
    seen = "1" if view is None else f"({view.where('m')})"
    return (
        "m.pk, m.memory_id, m.content, m.type, m.confidence, m.decay_rate,"
        " min(coalesce(m.event_time, m.created_at), m.created_at), s.captured_by, s.source_type,"
        " s.source_path, s.content_sha256, m.agent_id,"
        f" m.agent_id IS :agent_id AND m.sensitivity = :sensitivity, {seen}"
    )


def _facts(
    connection: sa.Connection,
    statement: str,
    place: Place,
    view: View | None,
    at: int,
    values: dict[str, Any],
) -> list[ComparedFact]:
    most = Sensitivity(place.sensitivity).level
    seen = [each.value for each in Sensitivity if each.level <= most]
    bound = place._asdict() | {"sensitivities": json.dumps(seen), "at": at} | values
    if view is not None:
        bound |= view.params
    return [ComparedFact._make(row) for row in driver(connection).execute(statement, bound)]
