"""Replace the ids of hidden memories with a placeholder wherever they occur."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from memgraph.clock import MAX_MS
from memgraph.errors import DatabaseCorrupt
from memgraph.model.enums import MemoryKind
from memgraph.model.graph import JournalNote
from memgraph.model.values import StatusPeriod
from memgraph.store import graph
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

HIDDEN: Final = "(not visible)"

_PREFIX: Final = f"(?:{'|'.join(kind.id_prefix for kind in MemoryKind)})"
# In JSON: a string that begins like an id, or an id inside a reason such as "lost to fact_…".
_ID: Final = re.compile(
    rf"""(?:(?<=^")|(?<=[^\\]")){_PREFIX}(?:[^"\\]|\\.)*(?=")|{_PREFIX}[0-9A-Z]{{26}}"""
)

JsonT = TypeVar("JsonT")


def without_hidden(snapshot: Snapshot, view: View, values: Sequence[JsonT]) -> list[JsonT]:
    """Return the JSON values with the ids of hidden memories replaced.

    A reason that belongs to a hidden memory may quote it: beside a hidden id it is replaced whole,
    and what follows a hidden id inside it ("lost to fact_…: it is too old") is cut off.
    """
    texts = [json.dumps(value) for value in values]
    ids = {memory_id for text in texts for memory_id in _ID.findall(text)}
    visible = graph.visible_memories(snapshot, sorted(ids), view)
    readable = (
        json.loads(_ID.sub(lambda match: match[0] if match[0] in visible else HIDDEN, text))
        for text in texts
    )
    return [_unquoted(was, now) for was, now in zip(values, readable, strict=True)]


def _unquoted(was: Any, now: Any) -> Any:
    if was == now:
        return now
    if isinstance(now, str):
        return now[: now.index(HIDDEN) + len(HIDDEN)]
    if isinstance(now, dict) and isinstance(now.get("reason"), str):
        beside = any(was.get(name) != now[name] for name in now if name != "reason")
        now["reason"] = HIDDEN if beside else _unquoted(was["reason"], now["reason"])
    return now


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
