"""What happened between two times, and the values that a memory had.

A moment belongs to the time that it ends: an interval is without its beginning and with its end.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from memgraph.store.snapshot import Snapshot, driver
from memgraph.store.visibility import View

EXCERPT_CHARS: Final = 200
_WITHIN: Final = "> :since AND {0} <= :until"
# The first status of a memory is how it came; what it had before has an end by then.
_CAME: Final = (
    "NOT EXISTS (SELECT 1 FROM memory_status b WHERE b.memory_id = h.memory_id"
    " AND (b.since, b.status_id) < (h.since, h.status_id))"
)
DECISIONS: Final = ("resolve", "dismiss", "reopen")


class Interval(NamedTuple):
    """After ``since`` until ``until``, milliseconds."""

    since: int
    until: int


class Begun(NamedTuple):
    """A status that began. ``first``: 1 where the memory came with it."""

    memory_id: str
    kind: str
    type: str
    text: str
    status: str
    at: int
    actor: str
    reason: str | None
    first: int


class Pair(NamedTuple):
    """A contradiction that is seen, with the beginnings of what its sides say."""

    edge_id: str
    first_id: str
    second_id: str
    first_text: str
    second_text: str
    created_at: int


class Decision(NamedTuple):
    """A journal entry about a contradiction; ``details`` is JSON."""

    seq: int
    at: int
    actor: str
    action: str
    details: str


class Moved(NamedTuple):
    """A confidence before the first of its changes in an interval and after the last."""

    memory_id: str
    text: str
    at: int
    before: float
    after: float


def begun(snapshot: Snapshot, view: View, during: Interval) -> list[Begun]:
    """Every status but that of turns that began during an interval, the newest first."""
    statement = (
        f"SELECT m.memory_id, m.kind, m.type, {_text('m')}, h.status, h.since, h.actor, h.reason,"
        f" {_CAME} FROM memory_status h CROSS JOIN memories m ON m.memory_id = h.memory_id"
        f" WHERE h.since {_WITHIN.format('h.since')} AND m.kind <> 'episode'"
        f" AND {view.text.where('m')}"
        " ORDER BY h.since DESC, h.status_id DESC"
    )
    return [Begun._make(row) for row in _rows(snapshot, statement, view, during)]


def said(snapshot: Snapshot, view: View, during: Interval) -> int:
    """How many turns were stored during an interval."""
    statement = (
        "SELECT count(*) FROM memory_status h CROSS JOIN memories m ON m.memory_id = h.memory_id"
        f" WHERE h.since {_WITHIN.format('h.since')} AND h.since = m.created_at"
        f" AND h.status = 'active' AND m.kind = 'episode' AND {view.text.where('m')}"
    )
    [(count,)] = _rows(snapshot, statement, view, during)
    return int(count)


def contradicted(snapshot: Snapshot, view: View, during: Interval) -> list[Pair]:
    """Contradictions that were found during an interval, both sides seen, the newest first."""
    terms = f"e.created_at {_WITHIN.format('e.created_at')}"
    statement = f"{_pairs(view)} AND {terms} ORDER BY e.created_at DESC, e.edge_id DESC"
    return [Pair._make(row) for row in _rows(snapshot, statement, view, during)]


def pairs(snapshot: Snapshot, view: View, edge_ids: Collection[str]) -> dict[str, Pair]:
    """Those of some contradictions of which both sides are seen, by edge id."""
    statement = f"{_pairs(view)} AND e.edge_id IN (SELECT value FROM json_each(:ids))"
    values = view.params | {"ids": json.dumps(sorted(edge_ids))}
    found = driver(snapshot).execute(statement, values).fetchall()
    return {row[0]: Pair._make(row) for row in found}


def decisions(snapshot: Snapshot, during: Interval) -> list[Decision]:
    """What the journal tells of decided and reopened contradictions, the newest first."""
    listed = ", ".join(f"'{each}'" for each in DECISIONS)
    statement = (
        "SELECT seq, at, actor, action, details FROM audit_log"
        f" WHERE at {_WITHIN.format('at')} AND action IN ({listed}) ORDER BY seq DESC"
    )
    found = driver(snapshot).execute(statement, during._asdict())
    return [Decision._make(row) for row in found.fetchall()]


def who_found(snapshot: Snapshot, found: Collection[Pair]) -> dict[str, tuple[str, str]]:
    """(actor, reason) of the entry that joined the sides of some contradictions, by edge id."""
    statement = (
        "SELECT f.value ->> 0, a.actor, coalesce(a.details ->> '$.reason', '') FROM json_each(?) f"
        " CROSS JOIN audit_log a ON a.subject = f.value ->> 1 AND a.action = 'relate'"
        " AND a.details ->> '$.edge_id' = f.value ->> 0"
    )
    given = json.dumps([(one.edge_id, one.first_id) for one in found])
    rows = driver(snapshot).execute(statement, (given,))
    return {edge_id: (actor, reason) for edge_id, actor, reason in rows}


def moved(snapshot: Snapshot, view: View, during: Interval) -> list[Moved]:
    """Memories that were there before an interval and whose confidence is another after it."""
    then = View(view.viewer, during.until)
    statement = (
        "WITH changed AS MATERIALIZED (SELECT r.memory_id, max(r.until) AS at,"
        " min(r.revision_id) AS first_id FROM memory_revisions r"
        f" WHERE r.until {_WITHIN.format('r.until')} GROUP BY r.memory_id)"
        f" SELECT m.memory_id, {_text('m')}, c.at, f.confidence,"
        f" {then.text.confidence('m')} AS after"
        " FROM changed c CROSS JOIN memory_revisions f ON f.revision_id = c.first_id"
        " CROSS JOIN memories m ON m.memory_id = c.memory_id"
        f" WHERE m.created_at <= :since AND {view.text.where('m')} AND after <> f.confidence"
        " ORDER BY c.at DESC, m.memory_id DESC"
    )
    values = then.params | view.params | {"view_as_of": during.until} | during._asdict()
    return [Moved._make(row) for row in driver(snapshot).execute(statement, values).fetchall()]


def revisions(snapshot: Snapshot, memory_id: str) -> list[tuple[Any, ...]]:
    """(until, importance, confidence, decay_rate, valid_until, tags as JSON) that a memory had."""
    return list(
        driver(snapshot)
        .execute(
            "SELECT until, importance, confidence, decay_rate, valid_until, tags"
            " FROM memory_revisions WHERE memory_id = ? ORDER BY until, revision_id",
            (memory_id,),
        )
        .fetchall()
    )


def _pairs(view: View) -> str:
    return (
        f"SELECT e.edge_id, a.memory_id, b.memory_id, {_text('a')}, {_text('b')}, e.created_at"
        " FROM memory_edges e CROSS JOIN memories a ON a.memory_id = e.from_memory_id"
        " CROSS JOIN memories b ON b.memory_id = e.to_memory_id"
        f" WHERE e.edge_type = 'Contradicts' AND {view.text.where('a')} AND {view.text.where('b')}"
    )


def _text(alias: str) -> str:
    long = f"CASE {alias}.summary WHEN '' THEN {alias}.content ELSE {alias}.summary END"
    return f"substr({long}, 1, {EXCERPT_CHARS})"


def _rows(snapshot: Snapshot, statement: str, view: View, during: Interval) -> list[Any]:
    found = driver(snapshot).execute(statement, view.params | during._asdict())
    return list(found.fetchall())
