"""The SQL of items in namespaces, by ranges of the index on ``item_id``. SQLite's.

Every function works on the connection of a transaction that the caller holds. A place is where the
items of one store are kept: those of another scope may bear the same names.

Attributes come as they are stored, since writers put them back: no reader is to be handed them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from memgraph.model.values import Memory
from memgraph.policy.namespaces import ITEM_TAG, ROOT, Namespace, after, parse_item_id, within
from memgraph.storage.rows import MEMORY_FIELDS, columns, memory_from_row
from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

_MEMORY = columns(MEMORY_FIELDS, "m")
_IN_RANGE = "m.item_id >= :first AND m.item_id < :last"
_VALID = "(m.valid_until IS NULL OR m.valid_until > :at)"
_VALID_LATER = "(n.valid_until IS NULL OR n.valid_until > :at)"


def is_no_item(alias: str) -> str:
    """The condition that a memory is no item of a store, as ``policy.namespaces.is_item`` has it.

    What a program keeps says nothing that a statement could be compared with, and may be gone soon.
    """
    return (
        f"(instr({alias}.tags, '\"{ITEM_TAG}\"') = 0"
        f" OR coalesce({alias}.item_id, '') NOT GLOB '{ROOT}*')"
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Whose items: those of one scope and of one agent, or none, that a reader sees.

    Attributes:
        view: of active ones alone.
    """

    view: View
    scope: str
    scope_id: str | None
    agent_id: str | None

    def where(self, alias: str = "m") -> str:
        """The condition on items under an alias; it binds ``params``."""
        return (
            f"{alias}.scope = :item_scope"
            f" AND {alias}.scope_id IS :item_scope_id AND {alias}.agent_id IS :item_agent_id"
            f" AND NOT {is_no_item(alias)} AND {self.view.where(alias)}"
        )

    @property
    def params(self) -> dict[str, Any]:
        return self.view.params | {
            "item_scope": self.scope,
            "item_scope_id": self.scope_id,
            "item_agent_id": self.agent_id,
        }


def standing(connection: sa.Connection, place: Place, item_ids: Sequence[str]) -> list[Memory]:
    """Active items of these ids, also such as are valid no more; oldest first."""
    statement = (
        f"SELECT {_MEMORY} FROM memories m"
        f" WHERE m.item_id IN (SELECT value FROM json_each(:ids)) AND {place.where()} ORDER BY m.pk"
    )
    values = place.params | {"ids": json.dumps(list(item_ids))}
    return [memory_from_row(row) for row in driver(connection).execute(statement, values)]


def newest(
    connection: sa.Connection,
    place: Place,
    prefix: Namespace,
    *,
    at: int,
    limit: int | None = None,
    offset: int = 0,
) -> list[int]:
    """Keys of the items in a namespace and below it, the last written first; None: of all."""
    first, last = within(prefix)
    statement = (
        f"SELECT m.pk FROM memories m WHERE {_IN_RANGE} AND {place.where()} AND {_VALID}"
        # Of two that share a name, since one was restored, the later one counts.
        " AND NOT EXISTS (SELECT 1 FROM memories n WHERE n.item_id = m.item_id AND n.pk > m.pk"
        f" AND {place.where('n')} AND {_VALID_LATER})"
        " ORDER BY m.updated_at DESC, m.pk DESC LIMIT :limit OFFSET :offset"
    )
    values = place.params | {"first": first, "last": last, "at": at, "offset": offset}
    rows = driver(connection).execute(statement, values | {"limit": -1 if limit is None else limit})
    return [pk for (pk,) in rows]


def by_key(connection: sa.Connection, keys: Sequence[int]) -> list[Memory]:
    """The memories of these keys, in the order of the keys given."""
    rows = driver(connection).execute(
        f"SELECT m.pk, {_MEMORY} FROM memories m WHERE m.pk IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    )
    found = {row[0]: memory_from_row(row[1:]) for row in rows}
    return [found[key] for key in keys]


def prolong(connection: sa.Connection, memory_ids: Sequence[str], *, at: int) -> None:
    """Let items stay their whole time again, those of them that stand and expire still.

    What was read is older than this transaction: they may have been put again meanwhile, for ever.
    """
    driver(connection).execute(
        "UPDATE memories AS m SET valid_until = :at + (m.attributes ->> '$.ttl')"
        " WHERE m.memory_id IN (SELECT value FROM json_each(:ids)) AND m.status = 'active'"
        " AND m.attributes ->> '$.ttl' IS NOT NULL AND m.valid_until > :at",
        {"at": at, "ids": json.dumps(list(memory_ids))},
    )


def namespaces(
    connection: sa.Connection, place: Place, prefix: Namespace, *, at: int
) -> list[Namespace]:
    """Every namespace at or below a prefix that holds an item: one look at the index for each."""
    first, last = within(prefix)
    statement = (
        f"SELECT m.item_id FROM memories m WHERE {_IN_RANGE} AND {place.where()} AND {_VALID}"
        " ORDER BY m.item_id LIMIT 1"
    )
    values = place.params | {"last": last, "at": at}
    found: list[Namespace] = []
    while row := driver(connection).execute(statement, values | {"first": first}).fetchone():
        namespace, _ = parse_item_id(row[0])
        found.append(namespace)
        first = after(namespace)
    return found
