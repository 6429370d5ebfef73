"""What came from a source, and what stands on that. SQLite's.

A source is known by one name: a path is a file, or a folder with all below it; a conversation is
that of a source, or the session in which a turn was said. Every function works on the connection of
a transaction that the caller holds.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import MemoryKind, MemoryStatus, SourceName
from memgraph.policy.trust import Named
from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

# "/" is followed by "0": below a folder is what lies between the two.
BELOW: Final = (
    "(s.source_path = :name OR s.source_path >= rtrim(:name, '/') || '/'"
    " AND s.source_path < rtrim(:name, '/') || '0')"
)
_NAMED: Final = {
    SourceName.PATH: BELOW,
    SourceName.CONVERSATION: "s.conversation_id = :name",
    SourceName.RUN: "s.workflow_run_id = :name",
    SourceName.CONTENT: "s.content_sha256 = :name",
}


class FromSource(NamedTuple):
    """A memory that a source gave; ``turn``: an episode."""

    memory_id: str
    turn: bool


def keys_of(kind: SourceName) -> str:
    """A query for the keys of all memories of a source; it binds ``name``."""
    found = (
        "SELECT o.pk FROM memory_sources s JOIN memories o ON o.source_id = s.source_id"
        f" WHERE {_NAMED[kind]}"
    )
    if kind is SourceName.CONVERSATION:
        found += " UNION SELECT o.pk FROM memories o WHERE o.session_id = :name"
    return found


def count(connection: sa.Connection, named: Named, most: int) -> int:
    """How many memories of a source are not retracted, counted up to ``most``."""
    statement = (
        f"SELECT count(*) FROM (SELECT 1 FROM ({keys_of(named.kind)}) f"
        " CROSS JOIN memories m ON m.pk = f.pk WHERE m.status <> 'retracted' LIMIT :most)"
    )
    values = {"name": named.name, "most": most}
    [(found,)] = driver(connection).execute(statement, values)
    return int(found)


def given_by(connection: sa.Connection, named: Named, view: View) -> list[FromSource]:
    """The visible memories of a source that are not retracted, the oldest first."""
    found = driver(connection).execute(
        f"SELECT m.memory_id, m.kind FROM ({keys_of(named.kind)}) f"
        f" CROSS JOIN memories m ON m.pk = f.pk"
        f" WHERE m.status <> 'retracted' AND {view.where('m')} ORDER BY m.pk",
        view.params | {"name": named.name},
    )
    return [FromSource(one, kind == MemoryKind.EPISODE) for one, kind in found]


def derived_from(
    connection: sa.Connection, memory_ids: Collection[str], view: View
) -> dict[str, list[str]]:
    """Visible memories that are not retracted and were derived from one of these, by id.

    Each with all of its grounds that are not retracted, whoever sees those.
    """
    found = (
        driver(connection)
        .execute(
            "SELECT DISTINCT m.memory_id FROM json_each(:ids) f"
            " CROSS JOIN memory_derivations d ON d.derived_from_id = f.value"
            " CROSS JOIN memories m ON m.memory_id = d.memory_id"
            f" WHERE m.status <> 'retracted' AND {view.where('m')} ORDER BY m.pk",
            view.params | {"ids": json.dumps(list(memory_ids))},
        )
        .fetchall()
    )
    grounds: dict[str, list[str]] = {one: [] for (one,) in found}
    for one, ground in driver(connection).execute(
        "SELECT d.memory_id, d.derived_from_id FROM json_each(?) f"
        " CROSS JOIN memory_derivations d ON d.memory_id = f.value"
        " CROSS JOIN memories g ON g.memory_id = d.derived_from_id"
        " WHERE g.status <> 'retracted' ORDER BY d.memory_id, d.derived_from_id",
        (json.dumps(list(grounds)),),
    ):
        grounds[one].append(ground)
    return grounds


def supported(connection: sa.Connection, memory_ids: Collection[str]) -> set[str]:
    """Those of these memories that further sources say, too."""
    found = driver(connection).execute(
        "SELECT DISTINCT p.memory_id FROM json_each(?) f"
        " CROSS JOIN memory_supports p ON p.memory_id = f.value",
        (json.dumps(list(memory_ids)),),
    )
    return {one for (one,) in found}


def replaced_by(
    connection: sa.Connection, memory_ids: Collection[str], view: View
) -> list[tuple[str, str]]:
    """Pairs of (what is superseded, what replaced it or won against it), as far as visible."""
    ids = json.dumps(list(memory_ids))
    replaced = (
        "SELECT e.to_memory_id AS old, e.from_memory_id AS new FROM json_each(:ids) f"
        " CROSS JOIN memory_edges e ON e.from_memory_id = f.value"
        " WHERE e.edge_type = 'Updates' AND e.partial = 0"
    )
    lost = " UNION ".join(
        "SELECT json_extract(e.resolution, '$.loser_id'), f.value FROM json_each(:ids) f"
        f" CROSS JOIN memory_edges e ON e.{end} = f.value WHERE e.edge_type = 'Contradicts'"
        " AND json_extract(e.resolution, '$.winner_id') = f.value"
        for end in ("from_memory_id", "to_memory_id")
    )
    found: list[Any] = (
        driver(connection)
        .execute(
            f"SELECT r.old, r.new FROM ({replaced} UNION {lost}) r"
            " CROSS JOIN memories m ON m.memory_id = r.old"
            f" WHERE m.status = '{MemoryStatus.SUPERSEDED.value}' AND {view.where('m')}"
            " ORDER BY m.pk, r.new",
            view.params | {"ids": ids},
        )
        .fetchall()
    )
    return [(old, new) for old, new in found]
