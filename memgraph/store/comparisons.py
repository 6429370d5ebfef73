"""The SQL of comparing new facts with stored ones, and of the outbox of those that wait. SQLite's.

A fact enters the outbox in the transaction that stores it, and leaves it in the one that writes
what was found: neither a crash nor a failing model loses a comparison.

Every function works on a snapshot or transaction that the caller holds, and binds
plain values.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from memgraph.model.enums import ComparisonStage, Sensitivity
from memgraph.store.items import is_no_item
from memgraph.store.sessions import Place
from memgraph.store.snapshot import Insert, Snapshot, Transaction, driver
from memgraph.store.visibility import View


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


class WaitingFact(NamedTuple):
    """A fact in the outbox, with what tells its place and author; ``active``: 1 where it is.

    ``entities``: keys of the entities that are named in it, as a JSON array. ``roles``: who said
    the turns that it was drawn from, as a JSON array.
    """

    pk: int
    stage: str
    attempts: int
    memory_id: str
    active: int
    content: str
    time: int
    scope: str
    scope_id: str | None
    agent_id: str | None
    sensitivity: str
    captured_by: str
    source_type: str
    source_path: str | None
    content_sha256: str | None
    entities: str
    roles: str


_enqueue = Insert("memory_comparisons", ("memory_pk", "stage"), or_ignore=True)
_SAID_AT = "min(coalesce(m.event_time, m.created_at), m.created_at)"
_WAITING = (
    "SELECT c.memory_pk, c.stage, c.attempts, m.memory_id,"
    " m.status = 'active' AND (m.valid_until IS NULL OR m.valid_until > ?1), m.content,"
    f" {_SAID_AT}, m.scope, m.scope_id, m.agent_id, m.sensitivity, s.captured_by, s.source_type,"
    " s.source_path, s.content_sha256,"
    " (SELECT json_group_array(l.entity_pk) FROM memory_entities l WHERE l.memory_pk = m.pk),"
    " (SELECT json_group_array(DISTINCT t.source_role) FROM memory_derivations d"
    " JOIN memories t ON t.memory_id = d.derived_from_id"
    " WHERE d.memory_id = m.memory_id AND t.kind = 'episode')"
    " FROM memory_comparisons c JOIN memories m ON m.pk = c.memory_pk"
    " JOIN memory_sources s ON s.source_id = m.source_id"
)
_DUE = (
    f"{_WAITING} WHERE c.next_attempt_at <= ?1 AND c.stage IN (SELECT value FROM json_each(?2))"
    " ORDER BY c.memory_pk LIMIT ?3"
)
_OF_KEYS = f"{_WAITING} WHERE c.memory_pk IN (SELECT value FROM json_each(?2)) ORDER BY c.memory_pk"
_LISTED = "(SELECT value FROM json_each(?))"


def enqueue(transaction: Transaction, pks: Sequence[int], stage: ComparisonStage) -> None:
    """Let facts wait to be compared; those that wait already stay as they are."""
    _enqueue(transaction, [(pk, stage.value) for pk in pks])


def due(
    snapshot: Snapshot, stages: Collection[ComparisonStage], *, at: int, limit: int
) -> list[WaitingFact]:
    """Return what waits for one of some stages and is not put off, the oldest first."""
    wanted = json.dumps(sorted(stages))
    return [WaitingFact._make(row) for row in driver(snapshot).execute(_DUE, (at, wanted, limit))]


def waiting_facts(snapshot: Snapshot, pks: Sequence[int], *, at: int) -> list[WaitingFact]:
    """Return those of some memories that wait, the oldest first."""
    rows = driver(snapshot).execute(_OF_KEYS, (at, json.dumps(list(pks))))
    return [WaitingFact._make(row) for row in rows]


def still_waiting(snapshot: Snapshot, pks: Sequence[int], stage: ComparisonStage) -> set[int]:
    """Return those that nobody else has finished meanwhile."""
    found = driver(snapshot).execute(
        f"SELECT memory_pk FROM memory_comparisons WHERE memory_pk IN {_LISTED} AND stage = ?",
        (json.dumps(list(pks)), stage.value),
    )
    return {pk for (pk,) in found}


def move_on(transaction: Transaction, pks: Sequence[int], stage: ComparisonStage) -> None:
    """Let facts wait for another stage, at once."""
    driver(transaction).execute(
        "UPDATE memory_comparisons SET stage = ?, attempts = 0, next_attempt_at = 0,"
        f" error_code = NULL WHERE memory_pk IN {_LISTED}",
        (stage.value, json.dumps(list(pks))),
    )


def put_off(transaction: Transaction, pks: Sequence[int], until_ms: int, error_code: str) -> None:
    """Try these again later."""
    driver(transaction).execute(
        "UPDATE memory_comparisons SET attempts = attempts + 1, next_attempt_at = ?,"
        f" error_code = ? WHERE memory_pk IN {_LISTED}",
        (until_ms, error_code, json.dumps(list(pks))),
    )


def is_failing(snapshot: Snapshot) -> bool:
    """Return True if any fact was put off because a model failed."""
    # As text: whoever asks how a store does need not wait until all tables are made.
    statement = "SELECT 1 FROM memory_comparisons WHERE error_code IS NOT NULL LIMIT 1"
    return driver(snapshot).execute(statement).fetchone() is not None


def joined_ids(snapshot: Snapshot, memory_id: str, others: Collection[str]) -> set[str]:
    """Return those of some memories that an earlier comparison joined with a fact."""
    types = "edge_type IN ('Updates', 'Contradicts', 'RelatedTo')"
    found = driver(snapshot).execute(
        f"SELECT to_memory_id FROM memory_edges WHERE from_memory_id = ?1 AND {types}"
        " AND to_memory_id IN (SELECT value FROM json_each(?2))"
        f" UNION SELECT from_memory_id FROM memory_edges WHERE to_memory_id = ?1 AND {types}"
        " AND from_memory_id IN (SELECT value FROM json_each(?2))",
        (memory_id, json.dumps(sorted(others))),
    )
    return {other for (other,) in found}


def remove(transaction: Transaction, pks: Sequence[int]) -> int:
    """Take facts out of the outbox; returns how many there were."""
    done = driver(transaction).execute(
        f"DELETE FROM memory_comparisons WHERE memory_pk IN {_LISTED}", (json.dumps(list(pks)),)
    )
    return int(done.rowcount)


def waiting(snapshot: Snapshot) -> int:
    """Return how many facts wait, those put off among them."""
    [(count,)] = driver(snapshot).execute("SELECT count(*) FROM memory_comparisons")
    return int(count)


def has_waiting(snapshot: Snapshot) -> bool:
    """Return True if any fact waits; cheap."""
    found = driver(snapshot).execute("SELECT 1 FROM memory_comparisons LIMIT 1").fetchone()
    return found is not None


class Beside(NamedTuple):
    """What a fact may be compared with: active facts of its place.

    Attributes:
        at: milliseconds; what is valid no more then is left out.
        view: what the writer may see; None: everything.
        before: only facts with a lower key; None: any.
    """

    place: Place
    at: int
    view: View | None = None
    before: int | None = None

    def columns(self) -> str:
        """Return the columns of ``ComparedFact``."""
        seen = "1" if self.view is None else f"({self.view.text.where('m')})"
        return (
            "m.pk, m.memory_id, m.content, m.type, m.confidence, m.decay_rate,"
            f" {_SAID_AT}, s.captured_by, s.source_type, s.source_path, s.content_sha256,"
            f" m.agent_id, m.agent_id IS :agent_id AND m.sensitivity = :sensitivity, {seen}"
        )

    @property
    def params(self) -> dict[str, Any]:
        most = Sensitivity(self.place.sensitivity).level
        levels = [each.value for each in Sensitivity if each.level <= most]
        bound = {"sensitivities": json.dumps(levels), "at": self.at, "before": self.before}
        seen = {} if self.view is None else self.view.params
        return {**self.place._asdict(), **bound, **seen}


_BESIDE = (
    f"m.kind = 'fact' AND {is_no_item('m')} AND m.status = 'active'"
    " AND m.scope = :scope AND m.scope_id IS :scope_id"
    " AND (m.agent_id IS NULL OR m.agent_id IS :agent_id)"
    " AND m.sensitivity IN (SELECT value FROM json_each(:sensitivities))"
    " AND (m.valid_until IS NULL OR m.valid_until > :at)"
    " AND (:before IS NULL OR m.pk < :before)"
)


def facts_by_text(snapshot: Snapshot, match: str, beside: Beside, limit: int) -> list[ComparedFact]:
    """Return facts that fulfil an FTS5 expression, best bm25 first."""
    statement = (
        f"SELECT {beside.columns()} FROM memory_fts f CROSS JOIN memories m ON m.pk = f.rowid"
        " JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE f.memory_fts MATCH :match AND {_BESIDE} ORDER BY f.rank LIMIT :most"
    )
    return _facts(snapshot, statement, beside, {"match": match, "most": limit})


def facts_of_entities(
    snapshot: Snapshot, entity_pks: Collection[int], beside: Beside, limit: int
) -> list[ComparedFact]:
    """Return facts in which entities are named, the newest of each first."""
    statement = (
        f"SELECT {beside.columns()} FROM (SELECT l.memory_pk FROM memory_entities l"
        " WHERE l.entity_pk = :entity ORDER BY l.memory_pk DESC LIMIT :looked_at) e"
        " CROSS JOIN memories m ON m.pk = e.memory_pk"
        " JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE {_BESIDE} ORDER BY m.pk DESC LIMIT :most"
    )
    facts: dict[int, ComparedFact] = {}
    for entity in sorted(entity_pks):
        values = {"entity": entity, "looked_at": 4 * limit, "most": limit}
        for fact in _facts(snapshot, statement, beside, values):
            facts.setdefault(fact.pk, fact)
    return list(facts.values())


def facts_by_key(snapshot: Snapshot, pks: Sequence[int], beside: Beside) -> list[ComparedFact]:
    """Return those of some memories that are beside, in the order of ``pks``."""
    statement = (
        f"SELECT {beside.columns()} FROM json_each(:pks) k"
        " CROSS JOIN memories m ON m.pk = k.value"
        " JOIN memory_sources s ON s.source_id = m.source_id"
        f" WHERE {_BESIDE} ORDER BY k.key"
    )
    return _facts(snapshot, statement, beside, {"pks": json.dumps(list(pks))})


def _facts(
    snapshot: Snapshot, statement: str, beside: Beside, values: dict[str, Any]
) -> list[ComparedFact]:
    rows = driver(snapshot).execute(statement, beside.params | values)
    return [ComparedFact._make(row) for row in rows]
