"""Rows of ``memory_edges``."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from memgraph.errors import NotFound
from memgraph.model.enums import EdgeType
from memgraph.model.values import Edge
from memgraph.rules.lifecycle import DISMISSED
from memgraph.store import tables
from memgraph.store.recall import plain_rows
from memgraph.store.rows import edge_from_row, json_text
from memgraph.store.snapshot import Snapshot, Transaction, driver
from memgraph.store.text_index import saying
from memgraph.store.visibility import View

SYMMETRIC = (EdgeType.CONTRADICTS, EdgeType.RELATED_TO)
# A clock that was set back must not let an edge be as it was before it came to be so.
_KEEP = (
    "INSERT INTO memory_edge_revisions (edge_id, until, partial, resolved_at, resolution)"
    " SELECT e.edge_id, max(:at, e.created_at, coalesce(e.resolved_at, :at), coalesce((SELECT"
    " max(r.until) FROM memory_edge_revisions r WHERE r.edge_id = e.edge_id), :at)),"
    " e.partial, e.resolved_at, e.resolution FROM memory_edges e WHERE e.edge_id = :edge_id"
)
# From a memory to what replaced it or won against it, and on from there where that does not stand.
_FALLEN = (
    "(s.old = s.new OR s.new IN (SELECT value FROM json_each(:gone)) OR EXISTS (SELECT 1 FROM"
    " memories m WHERE m.memory_id = s.new AND m.status = 'retracted'"
    " AND m.memory_id NOT IN (SELECT value FROM json_each(:back))))"
)
_LOST = "e.edge_type = 'Contradicts' AND json_extract(e.resolution, '$.loser_id') = s.new"
_STEPS = " ".join(
    f"UNION SELECT s.old, e.{far} FROM successors s CROSS JOIN memory_edges e ON e.{near} = s.new"
    f" WHERE {condition} AND e.edge_id IS NOT :but AND {_FALLEN}"
    for near, far, condition in (
        ("to_memory_id", "from_memory_id", "e.edge_type = 'Updates' AND e.partial = 0"),
        ("to_memory_id", "from_memory_id", _LOST),
        ("from_memory_id", "to_memory_id", _LOST),
    )
)
_STILL_REPLACED: Final = (
    "WITH RECURSIVE successors (old, new) AS ("
    f"SELECT value, value FROM json_each(:ids) {_STEPS})"
    f" SELECT DISTINCT s.old FROM successors s WHERE s.old <> s.new AND NOT {_FALLEN}"
)
# The other way: what a memory replaced, and on from there where that is retracted.
_REPLACED_BY: Final = """
    WITH RECURSIVE replaced (old, new, at, edge_id) AS (
        SELECT e.to_memory_id, f.value, e.created_at, e.edge_id FROM json_each(:ids) f
        CROSS JOIN memory_edges e ON e.from_memory_id = f.value
        WHERE e.edge_type = 'Updates' AND e.partial = 0
        UNION SELECT e.to_memory_id, r.new, e.created_at, e.edge_id FROM replaced r
        CROSS JOIN memories g ON g.memory_id = r.old AND g.status = 'retracted'
        CROSS JOIN memory_edges e ON e.from_memory_id = r.old
        WHERE e.edge_type = 'Updates' AND e.partial = 0)"""


def insert(transaction: Transaction, *rows: Mapping[str, Any]) -> None:
    transaction.execute(sa.insert(tables.edges), rows)


def find(snapshot: Snapshot, from_id: str, to_id: str, edge_type: EdgeType) -> Edge | None:
    """The edge between two memories; a type without direction is found from either end."""
    ends = [(from_id, to_id)]
    if edge_type in SYMMETRIC:
        ends.append((to_id, from_id))
    statement = sa.select(tables.edges).where(
        tables.edges.c.edge_type == edge_type,
        sa.or_(
            *(
                sa.and_(
                    tables.edges.c.from_memory_id == one,
                    tables.edges.c.to_memory_id == other,
                )
                for one, other in ends
            )
        ),
    )
    row = snapshot.execute(statement.order_by(tables.edges.c.edge_id)).first()
    return edge_from_row(row) if row else None


def get_between(snapshot: Snapshot, from_id: str, to_id: str, edge_type: EdgeType) -> Edge:
    """As ``find``. Raises NotFound: no such edge joins them."""
    edge = find(snapshot, from_id, to_id, edge_type)
    if edge is None:
        raise NotFound(f"no {edge_type.value} edge between {from_id} and {to_id}")
    return edge


def get(snapshot: Snapshot, edge_id: str) -> Edge:
    """Raises NotFound, the one that ``missing`` gives."""
    row = snapshot.execute(sa.select(tables.edges).where(tables.edges.c.edge_id == edge_id)).first()
    if row is None:
        raise missing(edge_id)
    return edge_from_row(row)


def missing(edge_id: str) -> NotFound:
    """What is said of an edge that is not there, and of one that may not be seen."""
    return NotFound(f"no edge {edge_id[:80]!r}", edge_id=edge_id[:80])


def replaces(snapshot: Snapshot, newer_id: str, older_id: str) -> bool:
    """Whether whole Updates edges lead from one memory to the other, over any number of steps."""
    statement = """
        WITH RECURSIVE replaced (id) AS (
            SELECT to_memory_id FROM memory_edges
            WHERE from_memory_id = ?1 AND edge_type = 'Updates' AND partial = 0
            UNION SELECT e.to_memory_id FROM memory_edges e JOIN replaced r
            ON e.from_memory_id = r.id WHERE e.edge_type = 'Updates' AND e.partial = 0
        ) SELECT 1 FROM replaced WHERE id = ?2 LIMIT 1"""
    return snapshot.exec_driver_sql(statement, (newer_id, older_id)).first() is not None


def still_replaced(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    *,
    gone: Collection[str] = (),
    back: Collection[str] = (),
    but: str | None = None,
) -> set[str]:
    """Those of some memories against which something stands: it replaced them, or won.

    What is retracted does not stand; then what replaced that counts, over any number of steps.

    Args:
        gone: ids that count as retracted, too.
        back: ids that count as not retracted.
        but: the id of an edge that does not count.
    """
    values = {"ids": memory_ids, "gone": gone, "back": back}
    given = {name: json.dumps(list(each)) for name, each in values.items()}
    found = driver(snapshot).execute(_STILL_REPLACED, given | {"but": but})
    return {one for (one,) in found}


def replaced_and_active(
    snapshot: Snapshot, memory_ids: Collection[str], view: View | None
) -> dict[str, str]:
    """Visible active memories that one of some others replaced as a whole, each with the newest.

    Where one of them replaced what is retracted, what that had replaced counts as well.
    ``view`` None: whoever looks.
    """
    seen, values = ("1", {}) if view is None else (view.text.where("m"), view.params)
    found = driver(snapshot).execute(
        f"{_REPLACED_BY} SELECT m.memory_id, r.new FROM replaced r"
        " CROSS JOIN memories m ON m.memory_id = r.old"
        f" WHERE m.status = 'active' AND {seen} ORDER BY r.at, r.edge_id",
        {**values, "ids": json.dumps(list(memory_ids))},
    )
    return dict(found.fetchall())


def losers(snapshot: Snapshot, memory_ids: Collection[str]) -> list[str]:
    """Those of some memories against which a contradiction was decided, in their order."""
    lost = " OR ".join(
        f"EXISTS (SELECT 1 FROM memory_edges e WHERE e.{end} = f.value"
        " AND e.edge_type = 'Contradicts'"
        " AND json_extract(e.resolution, '$.loser_id') = f.value)"
        for end in ("from_memory_id", "to_memory_id")
    )
    found = driver(snapshot).execute(
        f"SELECT f.value FROM json_each(?) f WHERE {lost} ORDER BY f.key",
        (json.dumps(list(memory_ids)),),
    )
    return [one for (one,) in found]


def make_whole(transaction: Transaction, edge_id: str, *, at: int) -> None:
    """A partial Updates edge becomes one that replaces all of the older memory."""
    _keep(transaction, edge_id, at)
    transaction.execute(
        sa.update(tables.edges).where(tables.edges.c.edge_id == edge_id).values(partial=False)
    )


def of_memory(
    snapshot: Snapshot, memory_id: str, edge_types: Sequence[EdgeType] = tuple(EdgeType)
) -> list[Edge]:
    """Edges in and out of a memory, oldest first."""
    statement = sa.select(tables.edges).where(
        sa.or_(
            tables.edges.c.from_memory_id == memory_id,
            tables.edges.c.to_memory_id == memory_id,
        ),
        tables.edges.c.edge_type.in_(edge_types),
    )
    found = snapshot.execute(statement.order_by(tables.edges.c.created_at, tables.edges.c.edge_id))
    return [edge_from_row(row) for row in found]


def set_resolution(
    transaction: Transaction, edge_id: str, at: int, resolution: Mapping[str, Any] | None
) -> None:
    """Decided at that time, or, with None, open again since then. How it was before is kept."""
    _keep(transaction, edge_id, at)
    text = None if resolution is None else json_text(resolution)
    transaction.execute(
        sa.update(tables.edges)
        .where(tables.edges.c.edge_id == edge_id)
        .values(resolved_at=None if resolution is None else at, resolution=text)
    )


def _keep(transaction: Transaction, edge_id: str, at: int) -> None:
    driver(transaction).execute(_KEEP, {"edge_id": edge_id, "at": at})


def counts(snapshot: Snapshot) -> dict[str, int]:
    statement = sa.select(tables.edges.c.edge_type, sa.func.count()).group_by(
        tables.edges.c.edge_type
    )
    return {
        str(kind): count
        for kind, count in snapshot.execute(statement.order_by(tables.edges.c.edge_type))
    }


@dataclass(frozen=True, slots=True)
class FoundContradiction:
    """A contradiction, and its place among all edges in the order in which they were stored."""

    place: int
    edge_id: str
    from_id: str
    to_id: str
    created_at: int


def open_contradictions(
    snapshot: Snapshot, view: View, place: int, limit: int
) -> list[FoundContradiction]:
    """Contradictions after a place that nobody has decided, with both sides in view, in order."""
    terms = f"e.rowid > :place AND e.resolved_at IS NULL AND {_both_seen(view)} ORDER BY e.rowid"
    return _contradictions(snapshot, terms, {**view.params, "place": place, "limit": limit})


def last_contradiction(
    snapshot: Snapshot, view: View, edge_id: str | None = None
) -> FoundContradiction | None:
    """The contradiction that was stored last, or the one of an id, with both sides in view."""
    terms = (
        f"(:edge_id IS NULL OR e.edge_id = :edge_id) AND {_both_seen(view)} ORDER BY e.rowid DESC"
    )
    found = _contradictions(snapshot, terms, {**view.params, "edge_id": edge_id, "limit": 1})
    return found[0] if found else None


def last_place(snapshot: Snapshot) -> int:
    """The place of the edge that was stored last; 0: there is none."""
    [(place,)] = driver(snapshot).execute("SELECT max(rowid) FROM memory_edges")
    return int(place or 0)


def _contradictions(
    snapshot: Snapshot, terms: str, values: Mapping[str, Any]
) -> list[FoundContradiction]:
    found = driver(snapshot).execute(
        "SELECT e.rowid, e.edge_id, e.from_memory_id, e.to_memory_id, e.created_at"
        f" FROM memory_edges e WHERE e.edge_type = 'Contradicts' AND {terms} LIMIT :limit",
        values,
    )
    return [FoundContradiction(*row) for row in found]


def _both_seen(view: View) -> str:
    seen = f"SELECT 1 FROM memories m WHERE {view.text.where('m')}"
    ends = ("from_memory_id", "to_memory_id")
    return " AND ".join(f"EXISTS ({seen} AND m.memory_id = e.{one})" for one in ends)


# Which Contradicts edges a reader sees, page by page; only those of which it sees both ends.


_PAIRED: Final = (
    "CROSS JOIN memories a ON a.memory_id = e.from_memory_id"
    " CROSS JOIN memories b ON b.memory_id = e.to_memory_id WHERE e.edge_type = 'Contradicts'"
)


@dataclass(frozen=True, slots=True)
class Sought:
    """Which contradictions are looked for; None leaves nothing out.

    Attributes:
        words: one of the sides says each of them.
        memory_id: of one of the sides.
        dismissed: of the decided ones those that are, or are not, dismissed.
        oldest_first: else the newest comes first.
    """

    words: tuple[str, ...] = ()
    memory_id: str | None = None
    dismissed: bool | None = None
    oldest_first: bool = False


EVERY: Final = Sought()


def contradictions(
    snapshot: Snapshot,
    view: View,
    *,
    resolved: bool,
    limit: int,
    after: tuple[int, str] | None = None,
    sought: Sought = EVERY,
) -> list[Edge]:
    """Contradicts edges with both ends visible, in the order of a time.

    Args:
        resolved: those with a resolution, by ``resolved_at``; else the open ones, by
            ``created_at``. Under ``as_of``, as it was then.
        after: (that time, edge id) of the last one of the page before.
    """
    time = view.text.resolved_at("e") if resolved else "e.created_at"
    terms = [
        f"{view.text.resolved_at('e')} IS {'NOT ' if resolved else ''}NULL",
        view.text.edge_where("e"),
        view.text.where("a"),
        view.text.where("b"),
    ]
    narrowing, values = _narrowed(sought, view)
    terms += narrowing
    behind, order = (">", "ASC") if sought.oldest_first else ("<", "DESC")
    if after is not None:
        terms.append(f"({time}, e.edge_id) {behind} (:after_time, :after_id)")
        values |= {"after_time": after[0], "after_id": after[1]}
    # Left to itself, SQLite sorts all decided ones, and reads their memories before that.
    statement = (
        f"SELECT {view.text.edge_columns('e')} FROM memory_edges e"
        f" INDEXED BY ix_memory_edges_contradictions {_PAIRED} AND {' AND '.join(terms)}"
        f" ORDER BY {time} {order}, e.edge_id {order} LIMIT :limit"
    )
    rows = driver(snapshot).execute(statement, view.params | values | {"limit": limit})
    return [edge_from_row(row) for row in rows]


def _narrowed(sought: Sought, view: View) -> tuple[list[str], dict[str, Any]]:
    """Conditions on an edge ``e`` with its ends ``a`` and ``b``, and what they bind."""
    terms: list[str] = []
    values: dict[str, Any] = {}
    if sought.words:
        # The index is asked once, whoever may see what it finds; the ends are joined already.
        says = "IN (SELECT rowid FROM memory_fts WHERE memory_fts MATCH :words)"
        terms.append(f"(a.pk {says} OR b.pk {says})")
        values["words"] = " AND ".join(f"({saying([each])})" for each in sought.words)
    if sought.memory_id is not None:
        terms.append(":memory_id IN (e.from_memory_id, e.to_memory_id)")
        values["memory_id"] = sought.memory_id
    if sought.dismissed is not None:
        differs = "IS" if sought.dismissed else "IS NOT"
        terms.append(f"({view.text.resolution('e')}) ->> '$.outcome' {differs} :dismissed")
        values["dismissed"] = DISMISSED
    return terms, values


def contradiction_times(
    snapshot: Snapshot, edge_id: str, view: View
) -> tuple[int, int | None] | None:
    """(created_at, resolved_at) of a Contradicts edge; None: there is none with both ends seen."""
    found = driver(snapshot).execute(
        f"SELECT e.created_at, {view.text.resolved_at('e')} FROM memory_edges e {_PAIRED}"
        f" AND e.edge_id = :edge_id AND {view.text.where('a')} AND {view.text.where('b')}",
        view.params | {"edge_id": edge_id},
    )
    row = found.fetchone()
    return None if row is None else (row[0], row[1])


# What the journal tells of the two sides of a contradiction, and of pairs that are none.


def was_confirmed(snapshot: Snapshot, memory_id: str, *, until: int | None) -> bool:
    """Whether somebody confirmed a memory, by a time in milliseconds; None: ever."""
    found = plain_rows(
        snapshot,
        "SELECT 1 FROM audit_log WHERE subject = ? AND action = 'confirm' AND at <= ? LIMIT 1",
        (memory_id, _latest(until)),
    )
    return bool(found)


def journal_of_edge(snapshot: Snapshot, edge: Edge, *, until: int | None, limit: int) -> list[Any]:
    """(seq, at, actor, action, details as JSON) about an edge: the last ``limit``, in order.

    Args:
        until: milliseconds, included; None: all.
    """
    found = plain_rows(
        snapshot,
        "SELECT seq, at, actor, action, details FROM audit_log WHERE subject IN (?, ?) AND at <= ?"
        " AND json_valid(details) AND json_extract(details, '$.edge_id') = ?"
        " ORDER BY seq DESC LIMIT ?",
        (edge.from_id, edge.to_id, _latest(until), edge.edge_id, limit),
    )
    return found[::-1]


def dismissed_alike(
    snapshot: Snapshot, one_id: str, other_id: str, view: View | None
) -> str | None:
    """The edge of a dismissed contradiction of what two memories say, in their own places.

    Args:
        view: who asks; of memories that they may not see they are told nothing. None: of all.
    """
    seen = "" if view is None else f" AND {view.text.where('a')} AND {view.text.where('b')}"
    same = " AND ".join(
        f"{copy}.content_hash = {side}.content_hash AND {copy}.kind <> 'episode'"
        f" AND {copy}.scope = {side}.scope AND {copy}.scope_id IS {side}.scope_id"
        f" AND {copy}.agent_id IS {side}.agent_id"
        for copy, side in (("a", "x"), ("b", "y"))
    )
    ways = " UNION ALL ".join(
        "SELECT e.edge_id FROM memories x CROSS JOIN memories y CROSS JOIN memories a"
        f" CROSS JOIN memory_edges e ON e.{near} = a.memory_id AND e.edge_type = 'Contradicts'"
        f" CROSS JOIN memories b ON b.memory_id = e.{far}"
        f" WHERE x.memory_id = :one AND y.memory_id = :other AND {same}"
        f" AND json_extract(e.resolution, '$.outcome') = '{DISMISSED}'{seen}"
        for near, far in (("from_memory_id", "to_memory_id"), ("to_memory_id", "from_memory_id"))
    )
    values = {} if view is None else view.params
    found = plain_rows(
        snapshot,
        f"SELECT min(edge_id) FROM ({ways})",
        {**values, "one": one_id, "other": other_id},
    )
    return None if found[0][0] is None else str(found[0][0])


def _latest(until: int | None) -> int:
    return 2**63 - 1 if until is None else until
