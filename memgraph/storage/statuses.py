"""The status of many memories at once: column, history and vector index, in a few statements.

See ``memgraph.storage.memories.set_status``, which does the same for one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, Protocol

import sqlalchemy as sa

from memgraph.model.enums import MemoryStatus
from memgraph.storage import vectors
from memgraph.storage.statements import driver

_END_PERIODS: Final = (
    "UPDATE memory_status SET until = max(since, ?)"
    " WHERE until IS NULL AND memory_id IN (SELECT value FROM json_each(?))"
)
_BEGIN_PERIODS: Final = (
    "INSERT INTO memory_status (memory_id, status, since, until, actor, reason)"
    " SELECT f.value, ?, max(?, coalesce((SELECT max(h.until) FROM memory_status h"
    " WHERE h.memory_id = f.value), 0)), NULL, ?, ? FROM json_each(?) f"
)
_SET: Final = (
    "UPDATE memories SET status = ?, updated_at = max(updated_at, ?), {}"
    " WHERE pk IN (SELECT value FROM json_each(?))"
)
# The time at which the new period begins, which a clock that was set back does not put before the
# one that it ends.
_BEGUN: Final = "SELECT h.since FROM memory_status h WHERE h.memory_id = memories.memory_id"
_END: Final = _SET.format(f"valid_until = coalesce(valid_until, ({_BEGUN} AND h.until IS NULL))")
# An end that was given with a memory stays, one that a change of its status made is open again.
_RETURN: Final = _SET.format(
    f"last_accessed_at = max(coalesce(last_accessed_at, 0), ({_BEGUN} AND h.until IS NULL)),"
    f" valid_until = CASE WHEN valid_until IN ({_BEGUN} AND h.status <> 'active') THEN NULL"
    " ELSE valid_until END"
)


class Placed(Protocol):
    """Where a memory stands, for the vector index."""

    @property
    def pk(self) -> int: ...
    @property
    def memory_id(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def scope_id(self) -> str | None: ...
    @property
    def sensitivity(self) -> str: ...


def set_statuses(
    connection: sa.Connection,
    memories: Sequence[Placed],
    status: MemoryStatus,
    *,
    at: int,
    actor: str,
    reason: str,
) -> None:
    """Change the status of memories that have another one."""
    ids = json.dumps([each.memory_id for each in memories])
    keys = json.dumps([each.pk for each in memories])
    execute = driver(connection).execute
    execute(_END_PERIODS, (at, ids))
    execute(_BEGIN_PERIODS, (status.value, at, actor, reason, ids))
    execute(_RETURN if status is MemoryStatus.ACTIVE else _END, (status.value, at, keys))
    places = [(one.pk, one.scope, one.scope_id, status.value, one.sensitivity) for one in memories]
    vectors.place(connection, places)
