"""What became of a memory that was promoted."""

from __future__ import annotations

import sqlalchemy as sa

from memgraph.model.enums import MemoryStatus, Scope
from memgraph.storage.statements import driver

# One that is promoted bears the id of what it comes from: derivation alone would not tell it from
# what a model concluded.
_OF = (
    "SELECT m.memory_id, m.status FROM memories m"
    " JOIN memory_derivations d ON d.memory_id = m.memory_id AND d.derived_from_id = m.item_id"
    " WHERE m.item_id = ? AND m.scope = ? AND m.scope_id IS ? ORDER BY m.pk DESC"
)


def of(
    connection: sa.Connection, memory_id: str, scope: Scope, scope_id: str | None
) -> list[tuple[str, MemoryStatus]]:
    """Ids and statuses of what a memory was promoted to in one place, the latest first."""
    found = driver(connection).execute(_OF, (memory_id, scope.value, scope_id))
    return [(one, MemoryStatus(status)) for one, status in found]
