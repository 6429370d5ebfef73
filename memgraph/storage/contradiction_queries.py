"""Which Contradicts edges a reader sees, page by page; only those of which it sees both ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from memgraph.model.values import Edge
from memgraph.policy.lifecycle import DISMISSED
from memgraph.storage.rows import edge_from_row
from memgraph.storage.statements import driver
from memgraph.storage.text_index import saying
from memgraph.storage.visibility import View

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
    connection: sa.Connection,
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
    time = view.resolved_at("e") if resolved else "e.created_at"
    terms = [
        f"{view.resolved_at('e')} IS {'NOT ' if resolved else ''}NULL",
        view.edge_where("e"),
        view.where("a"),
        view.where("b"),
    ]
    narrowing, values = _narrowed(sought, view)
    terms += narrowing
    behind, order = (">", "ASC") if sought.oldest_first else ("<", "DESC")
    if after is not None:
        terms.append(f"({time}, e.edge_id) {behind} (:after_time, :after_id)")
        values |= {"after_time": after[0], "after_id": after[1]}
    # Left to itself, SQLite sorts all decided ones, and reads their memories before that.
    statement = (
        f"SELECT {view.edge_columns('e')} FROM memory_edges e"
        f" INDEXED BY ix_memory_edges_contradictions {_PAIRED} AND {' AND '.join(terms)}"
        f" ORDER BY {time} {order}, e.edge_id {order} LIMIT :limit"
    )
    rows = driver(connection).execute(statement, view.params | values | {"limit": limit})
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
        terms.append(f"({view.resolution('e')}) ->> '$.outcome' {differs} :dismissed")
        values["dismissed"] = DISMISSED
    return terms, values


def contradiction_times(
    connection: sa.Connection, edge_id: str, view: View
) -> tuple[int, int | None] | None:
    """(created_at, resolved_at) of a Contradicts edge; None: there is none with both ends seen."""
    found = driver(connection).execute(
        f"SELECT e.created_at, {view.resolved_at('e')} FROM memory_edges e {_PAIRED}"
        f" AND e.edge_id = :edge_id AND {view.where('a')} AND {view.where('b')}",
        view.params | {"edge_id": edge_id},
    )
    row = found.fetchone()
    return None if row is None else (row[0], row[1])
