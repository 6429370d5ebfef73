"""What a reflection is made of, and the reflections that there are.

Ids of reflections begin with ``ref_``: a range of the ids' own index finds the few among many.
Text of one agent alone stays out of what is read here: a reflection is of no agent.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from memgraph.model.enums import EdgeType
from memgraph.model.values import Memory
from memgraph.rules.reflection import WEEKLY, Period
from memgraph.store.items import is_no_item
from memgraph.store.rows import MEMORY_FIELDS, columns, memory_from_row
from memgraph.store.snapshot import Snapshot, driver
from memgraph.store.visibility import View

_MEMORY = columns(MEMORY_FIELDS, "m")
_NO_AGENT = "m.agent_id IS NULL"
_IS_FACT = f"m.kind = 'fact' AND {is_no_item('m')}"
_THESE = "(SELECT value FROM json_each(:ids))"
# "`" is the character after "_".
_WEEKLY = (
    "m.memory_id >= 'ref_' AND m.memory_id < 'ref`'"
    f" AND m.kind = 'reflection' AND instr(m.tags, '\"{WEEKLY}\"') > 0"
)


def latest(snapshot: Snapshot, view: View) -> Memory | None:
    """The reflection that was stored last, holds, and may be seen; None: there is none."""
    statement = (
        f"SELECT {view.text.memory_columns('m')} FROM memories m"
        f" WHERE {_WEEKLY} AND {view.text.status('m')} = 'active' AND {view.text.where('m')}"
        " ORDER BY m.pk DESC LIMIT 1"
    )
    for row in driver(snapshot).execute(statement, view.params):
        return memory_from_row(row)
    return None


def times(snapshot: Snapshot, scope: str, scope_id: str | None) -> list[tuple[str, int]]:
    """Ids and times of the reflections on one scope, but those that were taken back."""
    statement = (
        f"SELECT m.memory_id, m.created_at FROM memories m WHERE {_WEEKLY}"
        " AND m.status <> 'retracted' AND m.scope = ? AND m.scope_id IS ? ORDER BY m.pk"
    )
    return list(driver(snapshot).execute(statement, (scope, scope_id)))


def projects(
    snapshot: Snapshot,
    during: Period,
    sensitivities: Sequence[str],
    at_least: int,
    limit: int,
) -> list[str]:
    """Projects with so many new facts, those with the most first."""
    found = driver(snapshot).execute(
        f"SELECT m.scope_id FROM memories m WHERE m.scope = 'project' AND {_IS_FACT}"
        f" AND m.status = 'active' AND {_NO_AGENT} AND m.created_at >= ? AND m.created_at < ?"
        " AND m.sensitivity IN (SELECT value FROM json_each(?))"
        " GROUP BY m.scope_id HAVING count(*) >= ? ORDER BY count(*) DESC, m.scope_id LIMIT ?",
        (during.since, during.until, json.dumps(list(sensitivities)), at_least, limit),
    )
    return [str(scope_id) for (scope_id,) in found]


def of_period(snapshot: Snapshot, view: View, during: Period, limit: int) -> list[Memory]:
    """Active facts and turns of a period, the latest: facts first, and turns for what is left."""
    found: list[Memory] = []
    for chosen in (_IS_FACT, "m.kind = 'episode'"):
        where = f"{chosen} AND m.created_at >= :since AND m.created_at < :until"
        values = {"since": during.since, "until": during.until, "limit": limit - len(found)}
        found += _memories(snapshot, view, where, "m.pk DESC", values)
    return found


def count_facts(snapshot: Snapshot, view: View, during: Period) -> int:
    """How many active facts a period brought."""
    statement = (
        f"SELECT count(*) FROM memories m WHERE {_IS_FACT} AND m.created_at >= :since"
        f" AND m.created_at < :until AND m.status = 'active' AND {_NO_AGENT}"
        f" AND {view.text.where('m')}"
    )
    values = view.params | {"since": during.since, "until": during.until}
    [(number,)] = driver(snapshot).execute(statement, values)
    return int(number)


def still_there(snapshot: Snapshot, view: View, memory_ids: Collection[str]) -> set[str]:
    """Those of ``memory_ids`` that were not taken back and that the reader may see."""
    found = driver(snapshot).execute(
        f"SELECT m.memory_id FROM memories m WHERE m.memory_id IN {_THESE}"
        f" AND m.status <> 'retracted' AND {view.text.where('m')}",
        view.params | {"ids": json.dumps(list(memory_ids))},
    )
    return {memory_id for (memory_id,) in found}


def tasks(snapshot: Snapshot, view: View, limit: int) -> list[Memory]:
    """Active goals and todos that are no raw turns, the most important first."""
    where = "m.type IN ('Goal', 'Todo') AND m.kind <> 'episode'"
    return _memories(snapshot, view, where, "m.importance DESC, m.pk DESC", {"limit": limit})


def edges_among(
    snapshot: Snapshot, memory_ids: Collection[str]
) -> list[tuple[str, str, EdgeType, float]]:
    """(from, to, type, weight) of every edge that joins two of them."""
    found = driver(snapshot).execute(
        "SELECT e.from_memory_id, e.to_memory_id, e.edge_type, e.weight FROM memory_edges e"
        f" WHERE e.from_memory_id IN {_THESE} AND e.to_memory_id IN {_THESE} ORDER BY e.edge_id",
        {"ids": json.dumps(list(memory_ids))},
    )
    return [(one, other, EdgeType(kind), weight) for one, other, kind, weight in found]


def derivations_among(snapshot: Snapshot, memory_ids: Collection[str]) -> list[tuple[str, str]]:
    """(memory, what it was derived from), both among them."""
    found = driver(snapshot).execute(
        "SELECT d.memory_id, d.derived_from_id FROM memory_derivations d"
        f" WHERE d.memory_id IN {_THESE} AND d.derived_from_id IN {_THESE} ORDER BY 1, 2",
        {"ids": json.dumps(list(memory_ids))},
    )
    return list(found)


def entities_of(snapshot: Snapshot, memory_ids: Collection[str]) -> list[tuple[str, str]]:
    """(entity id, memory id) of every entity that they name."""
    found = driver(snapshot).execute(
        "SELECT n.entity_id, m.memory_id FROM memories m"
        " JOIN memory_entities l ON l.memory_pk = m.pk JOIN entities n ON n.pk = l.entity_pk"
        f" WHERE m.memory_id IN {_THESE} ORDER BY 1, 2",
        {"ids": json.dumps(list(memory_ids))},
    )
    return list(found)


def contradictions(
    snapshot: Snapshot, view: View, during: Period, limit: int
) -> list[tuple[str, str]]:
    """Both sides of open contradictions that were found in a period."""
    return _joined(
        snapshot,
        view,
        "e.edge_type = 'Contradicts' AND e.resolved_at IS NULL"
        " AND e.created_at >= :since AND e.created_at < :until"
        " AND a.status = 'active' AND b.status = 'active'",
        {"since": during.since, "until": during.until, "limit": limit},
    )


def replacements(
    snapshot: Snapshot, view: View, during: Period, limit: int
) -> list[tuple[str, str]]:
    """(what holds now, what it took the place of) in a period; amendments of a part too."""
    return _joined(
        snapshot,
        view,
        "e.edge_type = 'Updates' AND e.created_at >= :since AND e.created_at < :until"
        " AND a.status = 'active' AND b.status <> 'retracted'",
        {"since": during.since, "until": during.until, "limit": limit},
    )


def _joined(
    snapshot: Snapshot, view: View, where: str, values: dict[str, Any]
) -> list[tuple[str, str]]:
    shown = " AND ".join(
        f"{view.text.where(end)} AND {end}.agent_id IS NULL AND {end}.kind = 'fact'"
        f" AND {is_no_item(end)}"
        for end in "ab"
    )
    found = driver(snapshot).execute(
        "SELECT a.memory_id, b.memory_id FROM memory_edges e"
        " JOIN memories a ON a.memory_id = e.from_memory_id"
        " JOIN memories b ON b.memory_id = e.to_memory_id"
        f" WHERE {where} AND {shown} ORDER BY e.created_at DESC, e.edge_id DESC LIMIT :limit",
        view.params | values,
    )
    return list(found)


def _memories(
    snapshot: Snapshot, view: View, where: str, order: str, values: dict[str, Any]
) -> list[Memory]:
    statement = (
        f"SELECT {_MEMORY} FROM memories m WHERE {where} AND m.status = 'active' AND {_NO_AGENT}"
        f" AND {view.text.where('m')} ORDER BY {order} LIMIT :limit"
    )
    found = driver(snapshot).execute(statement, view.params | values)
    return [memory_from_row(row) for row in found]
