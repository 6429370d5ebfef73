"""What a bulletin is made of, read along indexes: no query sorts or walks a whole type.

The conditions repeat those of the partial indexes in ``memgraph.model.tables`` word for word, else
SQLite does not use them. Nothing here looks at a clock: expiry is judged at the time of the last
journal entry, so that the same journal gives the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from memgraph.rules.bulletin import MOST_COUNTED
from memgraph.rules.contradictions import Side
from memgraph.store.items import is_no_item
from memgraph.store.snapshot import Snapshot, driver
from memgraph.store.visibility import View

# What a bulletin was made of at an earlier time.


# What the queries of a bulletin look at; the rest of a memory never changes or is not asked for.
_KEPT: Final = (
    "pk",
    "memory_id",
    "type",
    "kind",
    "source_id",
    "item_id",
    "content",
    "summary",
    "event_time",
    "created_at",
)
_CHANGING: Final = ("importance", "confidence", "valid_until", "tags", "attributes")
_TABLE: Final = "CREATE TEMP TABLE IF NOT EXISTS bulletin_changed (memory_id TEXT PRIMARY KEY)"
_CHANGED: Final = (
    "INSERT INTO temp.bulletin_changed"
    " SELECT m.memory_id FROM memory_status h CROSS JOIN memories m ON m.memory_id = h.memory_id"
    " WHERE h.since > :as_of AND m.created_at <= :as_of UNION SELECT m.memory_id"
    " FROM memory_revisions r CROSS JOIN memories m ON m.memory_id = r.memory_id"
    " WHERE r.until > :as_of AND m.created_at <= :as_of"
)


def prepare(snapshot: Snapshot, as_of: int) -> None:
    """Find once what has changed since a time; to be called before ``rows`` of that time."""
    execute = driver(snapshot).execute
    execute(_TABLE)
    execute("DELETE FROM temp.bulletin_changed")
    execute(_CHANGED, {"as_of": as_of})


def rows(
    snapshot: Snapshot,
    view: View,
    values: dict[str, Any],
    *,
    shown: str,
    where: str,
    order: str,
    index: str,
) -> list[Any]:
    """The first ``:limit`` rows of memories that had not expired ``:at`` a time, as of ``view``.

    Args:
        shown: the select list.
        where: the condition of the partial index, on the alias ``m``.
        order: the order of the index, on the alias ``m``.
    """
    valid = "(m.valid_until IS NULL OR m.valid_until > :at)"
    seen = f"{View(view.viewer).text.where('m')} AND m.created_at <= :view_as_of"
    same = (
        f"SELECT {_columns()} FROM memories m INDEXED BY {index} WHERE {where} AND {seen}"
        " AND (m.updated_at <= :view_as_of OR NOT EXISTS"
        " (SELECT 1 FROM temp.bulletin_changed c WHERE c.memory_id = m.memory_id))"
        f" AND {valid} ORDER BY {order} LIMIT :limit"
    )
    then = (
        f"SELECT {_columns(view)} FROM temp.bulletin_changed changed CROSS JOIN memories m"
        f" ON m.memory_id = changed.memory_id WHERE {seen} AND {view.text.unerased('m')}"
    )
    changed = f"SELECT * FROM ({then}) m WHERE {where} AND {valid} ORDER BY {order} LIMIT :limit"
    statement = (
        f"SELECT {shown} FROM"
        f" (SELECT * FROM ({same}) UNION ALL SELECT * FROM ({changed})) m"
        f" ORDER BY {order} LIMIT :limit"
    )
    return list(driver(snapshot).execute(statement, view.params | values).fetchall())


def _columns(view: View | None = None) -> str:
    """The columns of ``m``, with a view those of its time."""
    if view is None:
        return ", ".join(f"m.{name}" for name in (*_KEPT, "status", *_CHANGING))
    then = [f"m.{name}" for name in _KEPT]
    then.append(f"{view.text.status('m')} AS status")
    then.extend(f"{view.text.value(name, 'm')} AS {name}" for name in _CHANGING)
    return ", ".join(then)


# More of a text than any bulletin shows; keeps a long one from being read and copied whole.
EXCERPT_CHARS = 2_000
MOST_READ = 200
"""Rows of a section that are read: of these the fitting ones are offered."""
MOST_CONFLICTS = 2_000

_KNOWLEDGE = (
    "m.status = 'active' AND m.kind <> 'episode'"
    " AND m.type IN ('Fact', 'Identity', 'Observation', 'Event')"
)
_OPEN_TODOS = (
    "m.status = 'active' AND m.type = 'Todo' AND instr(m.tags, '\"done\"') = 0"
    " AND json_extract(m.attributes, '$.done') IS NOT 1"
)
_DECISIONS = "m.status = 'active' AND m.type = 'Decision'"
_UNCERTAIN = "m.status = 'active' AND m.kind <> 'episode' AND m.confidence < 0.5"
_OPEN_INDEX = "INDEXED BY ix_memory_edges_contradictions"
_BY_IMPORTANCE = "m.importance DESC, m.created_at DESC, m.pk DESC"


class Excerpt(NamedTuple):
    """The part of a memory that a bulletin shows.

    ``valid_until`` is None where reading puts the end off: no journal entry tells of that.
    ``decision_status`` is free text, or None. ``path``: of the file that says it; None: it is from
    no file.
    """

    memory_id: str
    type: str
    text: str
    confidence: float
    event_time: int | None
    created_at: int
    valid_until: int | None
    decision_status: str | None
    path: str | None

    @property
    def at(self) -> int | None:
        """When it happened, else when it was said; None: nobody knows, as a file does not tell."""
        if self.event_time is not None or self.path is not None:
            return self.event_time
        return self.created_at


class Conflict(NamedTuple):
    """An open contradiction; of a side from a file that does not tell its time, the time is 0."""

    since: int
    first: Side
    second: Side


def journal_head(snapshot: Snapshot, as_of: int | None = None) -> tuple[int, int, str]:
    """(seq, time in milliseconds, seal) of the last entry, now or at a time; (0, 0, "") of an empty
    journal.
    """
    last = "SELECT seq, at, hash FROM audit_log ORDER BY seq DESC LIMIT 1"
    if as_of is not None:
        # By the index of times: of the entries of one millisecond the last one.
        last = (
            "SELECT seq, at, hash FROM audit_log WHERE at ="
            " (SELECT max(at) FROM audit_log WHERE at <= :as_of) ORDER BY seq DESC LIMIT 1"
        )
    found = _rows(snapshot, last, {"as_of": as_of})
    return tuple(found[0]) if found else (0, 0, "")


class Section(NamedTuple):
    """Where the memories of a section lie: a condition, the index that serves it, their order."""

    where: str
    by_index: str
    by: str = _BY_IMPORTANCE

    def read(self, snapshot: Snapshot, view: View, at: int, floor: float) -> list[Excerpt]:
        """Return the first memories with a stored confidence of at least ``floor``."""
        values = {"at": at, "floor": floor, "limit": MOST_READ}
        where = f"{self.where} AND m.confidence >= :floor"
        found = _selected(snapshot, view, self._replace(where=where), _excerpt("m"), values)
        return [Excerpt._make(row) for row in found]

    def total(self, snapshot: Snapshot, view: View, at: int) -> int:
        """Return how many there are, at most one more than ``MOST_COUNTED``."""
        values = {"at": at, "limit": MOST_COUNTED + 1}
        return len(_selected(snapshot, view, self, "1", values))


def _of_type(type_: str) -> Section:
    return Section(f"m.type = '{type_}' AND m.status = 'active'", "ix_memories_type_status")


KNOWLEDGE = Section(_KNOWLEDGE, "ix_memories_knowledge")
"""Facts, identities, observations and events that are no raw turns."""
GOALS = _of_type("Goal")
PREFERENCES = _of_type("Preference")
OPEN_TODOS = Section(_OPEN_TODOS, "ix_memories_open_todos")
"""Todos without ``attributes.done`` and without the tag ``done``."""
DECISIONS = Section(
    _DECISIONS, "ix_memories_decisions", "m.event_time DESC, m.created_at DESC, m.pk DESC"
)
UNCERTAIN = Section(_UNCERTAIN, "ix_memories_uncertain", "m.confidence, m.created_at, m.pk")
"""Memories with a stored confidence under 0.5, the lowest first."""


def decisions(snapshot: Snapshot, view: View, at: int, floor: float) -> list[Excerpt]:
    """Return the newest decisions by when they were taken; the undated come last."""
    # Two walks of one index, as no index is ordered by whichever of two columns is set.
    walks = (
        ("m.event_time IS NOT NULL", "m.event_time DESC, m.created_at DESC, m.pk DESC"),
        ("m.event_time IS NULL", "m.created_at DESC, m.pk DESC"),
    )
    found = [
        one
        for condition, order in walks
        for one in DECISIONS._replace(where=f"{_DECISIONS} AND {condition}", by=order).read(
            snapshot, view, at, floor
        )
    ]
    return sorted(
        found,
        key=lambda one: (one.at is not None, one.at or 0, one.created_at, one.memory_id),
        reverse=True,
    )


def excerpts(
    snapshot: Snapshot, view: View, memory_ids: Sequence[str], at: int
) -> dict[str, Excerpt]:
    """Those of some memories that are visible and active and have not expired, by id."""
    statement = (
        f"SELECT {_excerpt('m')} FROM json_each(:ids) f"
        " CROSS JOIN memories m ON m.memory_id = f.value"
        f" WHERE {view.text.status('m')} = 'active' AND {view.text.where('m')}"
        f" AND {view.text.unerased('m')}"
        f" AND coalesce({view.text.value('valid_until', 'm')} > :at, 1)"
    )
    values = view.params | {"ids": json.dumps(list(memory_ids)), "at": at}
    return {row[0]: Excerpt._make(row) for row in _rows(snapshot, statement, values)}


def open_conflicts(snapshot: Snapshot, view: View) -> list[Conflict]:
    """Return contradictions without a resolution between two visible, active memories, newest
    first.
    """
    statement = (
        f"SELECT e.created_at, {moment('a')}, a.memory_id, {moment('b')}, b.memory_id"
        f" FROM memory_edges e {_OPEN_INDEX if view.as_of is None else ''}"
        " CROSS JOIN memories a ON a.memory_id = e.from_memory_id"
        " CROSS JOIN memories b ON b.memory_id = e.to_memory_id"
        f" WHERE e.edge_type = 'Contradicts' AND {view.text.resolved_at('e')} IS NULL"
        f" AND {view.text.status('a')} = 'active' AND {view.text.status('b')} = 'active'"
        f" AND {view.text.edge_where('e')} AND {view.text.where('a')} AND {view.text.where('b')}"
        f" AND {view.text.unerased('a')} AND {view.text.unerased('b')}"
        f" ORDER BY e.created_at DESC, e.edge_id DESC LIMIT {MOST_CONFLICTS}"
    )
    found = _rows(snapshot, statement, view.params)
    return [
        Conflict(since, Side(time, one), Side(other_time, other))
        for since, time, one, other_time, other in found
    ]


def _selected(
    snapshot: Snapshot, view: View, of: Section, shown: str, values: dict[str, Any]
) -> list[Any]:
    if view.as_of is not None:
        return rows(
            snapshot,
            view,
            values,
            shown=shown,
            where=of.where,
            order=of.by,
            index=of.by_index,
        )
    statement = (
        f"SELECT {shown} FROM memories m INDEXED BY {of.by_index}"
        f" WHERE {of.where} AND {view.text.where('m')}"
        f" AND (m.valid_until IS NULL OR m.valid_until > :at) ORDER BY {of.by} LIMIT :limit"
    )
    return _rows(snapshot, statement, view.params | values)


def _excerpt(alias: str) -> str:
    return (
        f"{alias}.memory_id, {alias}.type, {_text(alias)}, {alias}.confidence, {alias}.event_time,"
        f" {alias}.created_at, CASE WHEN {is_no_item(alias)}"
        f" OR json_extract({alias}.attributes, '$.ttl') IS NULL THEN {alias}.valid_until END,"
        f" json_extract({alias}.attributes, '$.decision_status'), {_path(alias)}"
    )


def _path(alias: str) -> str:
    return (
        "(SELECT coalesce(s.source_path, '') FROM memory_sources s"
        f" WHERE s.source_id = {alias}.source_id"
        " AND (s.source_path IS NOT NULL OR s.source_type = 'ingest_file'))"
    )


def moment(alias: str) -> str:
    """Return the time of a side of a contradiction, see ``Side``: a file has no day of its own."""
    return (
        f"coalesce({alias}.event_time,"
        f" CASE WHEN {_path(alias)} IS NULL THEN {alias}.created_at ELSE 0 END)"
    )


def _text(alias: str) -> str:
    return (
        f"CASE {alias}.summary WHEN '' THEN substr({alias}.content, 1, {EXCERPT_CHARS})"
        f" ELSE {alias}.summary END"
    )


def _rows(snapshot: Snapshot, statement: str, values: dict[str, Any]) -> list[Any]:
    driver: Any = snapshot.driver
    found: list[Any] = driver.execute(statement, values).fetchall()
    return found
