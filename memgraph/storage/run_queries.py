"""Memories by the workflow run that they come from."""

from __future__ import annotations

import sqlalchemy as sa

from memgraph.storage.statements import driver
from memgraph.storage.visibility import View


def of_run(connection: sa.Connection, workflow_run_id: str, view: View, *, limit: int) -> list[str]:
    """Ids of what a run left in the memory, the newest first, as far as the reader may see it.

    Sources are not indexed by their run: it is read off all of them.
    """
    statement = (
        "SELECT m.memory_id FROM memory_sources s JOIN memories m ON m.source_id = s.source_id"
        f" WHERE s.workflow_run_id = :run AND {view.where('m')}"
        " ORDER BY m.created_at DESC, m.memory_id DESC LIMIT :limit"
    )
    values = view.params | {"run": workflow_run_id, "limit": limit}
    return [row[0] for row in driver(connection).execute(statement, values)]
