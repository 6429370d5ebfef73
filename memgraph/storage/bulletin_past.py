"""What a bulletin was made of at an earlier time.

Most memories are as they were, and the index of the present finds them in order. Beside them stand
the few that have changed since, with the values of then: the best of both are the best of then.
What was erased since is left out.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

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


def prepare(connection: sa.Connection, as_of: int) -> None:
    """Find once what has changed since a time; to be called before ``rows`` of that time."""
    execute = driver(connection).execute
    execute(_TABLE)
    execute("DELETE FROM temp.bulletin_changed")
    execute(_CHANGED, {"as_of": as_of})


def rows(
    connection: sa.Connection,
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
    seen = f"{View(view.viewer).where('m')} AND m.created_at <= :view_as_of"
    same = (
        f"SELECT {_columns()} FROM memories m INDEXED BY {index} WHERE {where} AND {seen}"
        " AND (m.updated_at <= :view_as_of OR NOT EXISTS"
        " (SELECT 1 FROM temp.bulletin_changed c WHERE c.memory_id = m.memory_id))"
        f" AND {valid} ORDER BY {order} LIMIT :limit"
    )
    then = (
        f"SELECT {_columns(view)} FROM temp.bulletin_changed changed CROSS JOIN memories m"
        f" ON m.memory_id = changed.memory_id WHERE {seen} AND {view.unerased('m')}"
    )
    changed = f"SELECT * FROM ({then}) m WHERE {where} AND {valid} ORDER BY {order} LIMIT :limit"
    statement = (
        f"SELECT {shown} FROM"
        f" (SELECT * FROM ({same}) UNION ALL SELECT * FROM ({changed})) m"
        f" ORDER BY {order} LIMIT :limit"
    )
    return list(driver(connection).execute(statement, view.params | values).fetchall())


def _columns(view: View | None = None) -> str:
    """The columns of ``m``, with a view those of its time."""
    if view is None:
        return ", ".join(f"m.{name}" for name in (*_KEPT, "status", *_CHANGING))
    then = [f"m.{name}" for name in _KEPT]
    then.append(f"{view.status('m')} AS status")
    then.extend(f"{view.value(name, 'm')} AS {name}" for name in _CHANGING)
    return ", ".join(then)
