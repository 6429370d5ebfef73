"""Read the journal and the statuses of memories without the ids of hidden ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memgraph.clock import MAX_MS
from memgraph.errors import DatabaseCorrupt
from memgraph.model.graph import JournalNote
from memgraph.model.values import StatusPeriod
from memgraph.store import graph
from memgraph.store.redaction import without_hidden
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View


def journal_notes(
    snapshot: Snapshot, view: View, rows: Sequence[Sequence[Any]]
) -> tuple[JournalNote, ...]:
    """Return journal entries without the ids of hidden memories.

    Args:
        rows: (seq, at, actor, action, details as JSON) of each entry.

    Raises:
        DatabaseCorrupt: the details of an entry cannot be read.
    """
    readable = without_hidden(snapshot, view, [read_details(row[4]) for row in rows])
    return tuple(
        JournalNote(seq=row[0], at=row[1], actor=row[2], action=row[3], details=details)
        for row, details in zip(rows, readable, strict=True)
    )


def read_details(text: str) -> dict[str, Any]:
    """Parse the details of a journal entry. Raises DatabaseCorrupt if they are no JSON object."""
    try:
        return dict(json.loads(text))
    except (TypeError, ValueError) as error:
        raise DatabaseCorrupt("a journal entry cannot be read; run: memgraph verify") from error


def status_periods(
    snapshot: Snapshot, view: View, memory_id: str, *, until: int = MAX_MS
) -> tuple[StatusPeriod, ...]:
    """Return the statuses of a memory in order, without the ids of hidden memories.

    Args:
        until: milliseconds; later statuses are left out.
    """
    periods = graph.status_history(snapshot, memory_id, until=until)
    reasons = without_hidden(snapshot, view, [period.reason for period in periods])
    return tuple(
        period.model_copy(update={"reason": reason})
        for period, reason in zip(periods, reasons, strict=True)
    )
