"""What became of a memory that was promoted."""

from __future__ import annotations

import hashlib

import sqlalchemy as sa

from memgraph.model.enums import MemoryStatus, Scope
from memgraph.storage.statements import driver

_OF = (
    "SELECT m.memory_id, m.status FROM memories m"
    " WHERE m.item_id = ? AND m.scope = ? AND m.scope_id IS ? AND EXISTS (SELECT 1"
    " FROM memory_derivations d WHERE d.memory_id = m.memory_id AND d.derived_from_id = ?)"
    " ORDER BY m.pk DESC"
)


def item_id_of(memory_id: str) -> str:
    """The item id of what a memory is promoted to: there can be only one such in a place.

    It is made from the memory's own id, and does not tell that to those who may not see it.
    """
    return f"promoted-{hashlib.sha256(memory_id.encode()).hexdigest()[:32]}"


def of(
    connection: sa.Connection, memory_id: str, scope: Scope, scope_id: str | None
) -> list[tuple[str, MemoryStatus]]:
    """Ids and statuses of what a memory was promoted to in one place, the latest first.

    Anybody may give an item such an id, or put another item in its place: what was promoted is
    derived from the memory, too.
    """
    values = (item_id_of(memory_id), scope.value, scope_id, memory_id)
    found = driver(connection).execute(_OF, values)
    return [(one, MemoryStatus(status)) for one, status in found]
