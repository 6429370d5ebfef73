"""Which memories are doubled, contradicted, without a source, without any tie or vector."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from memgraph.store import metadata
from memgraph.store.rows import compact_json
from memgraph.store.snapshot import Snapshot, Transaction, driver
from memgraph.store.visibility import View

EXCERPT_CHARS: Final = 160
_KNOWN = "m.status = 'active' AND m.kind <> 'episode'"


class Found(NamedTuple):
    """A memory that counts; ``other_id``: the other one, where it takes two."""

    memory_id: str
    other_id: str | None
    text: str


class Known(NamedTuple):
    """``place``: scope, its id and the agent; memories of another place are none of this one's."""

    pk: int
    memory_id: str
    content: str
    created_at: int
    place: str


def known_count(snapshot: Snapshot, view: View) -> int:
    """Active memories that are no raw turns."""
    return _count(snapshot, view, _KNOWN)


def active_count(snapshot: Snapshot, view: View) -> int:
    return _count(snapshot, view, "m.status = 'active'")


def doubled(snapshot: Snapshot, view: View, limit: int) -> tuple[int, list[Found]]:
    """Memories that say, word for word, what another one of the same place says."""
    other = (
        "SELECT o.memory_id FROM memories o WHERE o.content_hash = m.content_hash"
        " AND o.kind <> 'episode' AND o.pk <> m.pk AND o.status = 'active'"
        " AND o.scope = m.scope AND o.scope_id IS m.scope_id AND o.agent_id IS m.agent_id"
        f" AND {view.text.where('o')} ORDER BY o.pk LIMIT 1"
    )
    return _with_others(snapshot, view, other, limit)


def contradicted(snapshot: Snapshot, view: View, limit: int) -> tuple[int, list[Found]]:
    """Memories in an open contradiction with another active one."""
    ends = " UNION ALL ".join(
        f"SELECT o.memory_id FROM memory_edges e CROSS JOIN memories o ON o.memory_id = e.{far}"
        f" WHERE e.edge_type = 'Contradicts' AND e.{near} = m.memory_id AND e.resolved_at IS NULL"
        f" AND o.status = 'active' AND {view.text.where('o')}"
        for near, far in (("from_memory_id", "to_memory_id"), ("to_memory_id", "from_memory_id"))
    )
    other = f"SELECT memory_id FROM ({ends}) ORDER BY memory_id LIMIT 1"
    return _with_others(snapshot, view, other, limit)


def unsourced(snapshot: Snapshot, view: View, limit: int) -> tuple[int, list[Found]]:
    """Memories of which nobody knows where they come from: no file, conversation, run or ground."""
    nameless = "s.source_path IS NULL AND s.conversation_id IS NULL AND s.workflow_run_id IS NULL"
    condition = (
        "m.session_id IS NULL AND EXISTS (SELECT 1 FROM memory_sources s"
        f" WHERE s.source_id = m.source_id AND {nameless})"
        " AND NOT EXISTS (SELECT 1 FROM memory_derivations d WHERE d.memory_id = m.memory_id)"
        " AND NOT EXISTS (SELECT 1 FROM memory_supports p CROSS JOIN memory_sources s"
        " ON s.source_id = p.source_id WHERE p.memory_id = m.memory_id AND p.ended_at IS NULL"
        f" AND NOT ({nameless}))"
    )
    return _counted(snapshot, view, f"{_KNOWN} AND {condition}", limit)


def orphans(snapshot: Snapshot, view: View, limit: int) -> tuple[int, list[Found]]:
    """Memories that nothing joins to others that are seen: no edge, derivation or entity."""
    ties = (
        ("memory_edges", "from_memory_id", "to_memory_id"),
        ("memory_edges", "to_memory_id", "from_memory_id"),
        ("memory_derivations", "memory_id", "derived_from_id"),
        ("memory_derivations", "derived_from_id", "memory_id"),
    )
    joined = [
        f"SELECT 1 FROM {table} t CROSS JOIN memories o ON o.memory_id = t.{far}"
        f" WHERE t.{near} = m.memory_id AND {view.text.where('o')}"
        for table, near, far in ties
    ]
    joined.append("SELECT 1 FROM memory_entities t WHERE t.memory_pk = m.pk")
    condition = " AND ".join(f"NOT EXISTS ({each})" for each in joined)
    return _counted(snapshot, view, f"{_KNOWN} AND {condition}", limit)


def unembedded(snapshot: Snapshot, view: View, limit: int) -> tuple[int, list[Found]]:
    """Active memories, raw turns too, whose vector is still to come or could not be made."""
    condition = (
        "m.status = 'active' AND m.pk IN"
        " (SELECT memory_pk FROM memory_embeddings WHERE state <> 'ready')"
    )
    return _counted(snapshot, view, condition, limit)


def sample(snapshot: Snapshot, view: View, most: int) -> list[Known]:
    """At most so many active memories that are no raw turns, spread evenly over all, by key."""
    statement = (
        "SELECT pk, memory_id, content, created_at, json_array(scope, scope_id, agent_id) FROM"
        " (SELECT m.pk, m.memory_id, m.content, m.created_at, m.scope, m.scope_id, m.agent_id,"
        " row_number() OVER (ORDER BY m.pk) AS place, count(*) OVER () AS total"
        f" FROM memories m WHERE {_KNOWN} AND {view.text.where('m')})"
        " WHERE (place - 1) * :most / total <> place * :most / total OR total <= :most ORDER BY pk"
    )
    found = driver(snapshot).execute(statement, view.params | {"most": most})
    return [Known._make(row) for row in found]


def beginnings(snapshot: Snapshot, memory_ids: Sequence[str]) -> dict[str, str]:
    """How the texts of these memories begin, by id."""
    statement = (
        f"SELECT memory_id, substr(content, 1, {EXCERPT_CHARS}) FROM memories"
        " WHERE memory_id IN (SELECT value FROM json_each(?))"
    )
    return dict(driver(snapshot).execute(statement, (json.dumps(list(memory_ids)),)).fetchall())


def _with_others(snapshot: Snapshot, view: View, other: str, limit: int) -> tuple[int, list[Found]]:
    return _counted(snapshot, view, f"{_KNOWN} AND EXISTS ({other})", limit, f"({other})")


def _counted(
    snapshot: Snapshot, view: View, condition: str, limit: int, other: str = "NULL"
) -> tuple[int, list[Found]]:
    count = _count(snapshot, view, condition)
    if not count or not limit:
        return count, []
    statement = (
        f"SELECT m.memory_id, {other}, substr(m.content, 1, {EXCERPT_CHARS}) FROM memories m"
        f" WHERE {condition} AND {view.text.where('m')} ORDER BY m.pk DESC LIMIT :limit"
    )
    return count, [Found._make(row) for row in _rows(snapshot, statement, view, limit)]


def _count(snapshot: Snapshot, view: View, condition: str) -> int:
    statement = f"SELECT count(*) FROM memories m WHERE {condition} AND {view.text.where('m')}"
    [(count,)] = driver(snapshot).execute(statement, view.params)
    return int(count)


def _rows(snapshot: Snapshot, statement: str, view: View, limit: int) -> list[Any]:
    found: list[Any] = (
        driver(snapshot).execute(statement, view.params | {"limit": limit}).fetchall()
    )
    return found


# When the database was verified last beside its work, and what was found then.


_KEY: Final = "verified"


class Verified(NamedTuple):
    """``at``: in milliseconds, 0: never; ``totals``: how many findings of each code."""

    at: int = 0
    totals: Mapping[str, int] = {}


def last(snapshot: Snapshot) -> Verified:
    """Return what the last audit by a worker came to."""
    text = metadata.get(snapshot, _KEY)
    if text is None:
        return Verified()
    told = json.loads(text)
    return Verified(int(told["at"]), told["totals"])


def note(transaction: Transaction, at: int, totals: Mapping[str, int]) -> None:
    """Keep what an audit came to."""
    metadata.put(transaction, _KEY, compact_json({"at": at, "totals": dict(totals)}))
