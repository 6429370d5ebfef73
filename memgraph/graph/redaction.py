"""Replace the ids of hidden memories with a placeholder wherever they occur."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
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

_ID_PREFIXES: Final = tuple(kind.id_prefix for kind in MemoryKind)
# Finds ids inside reasons such as "lost to fact_…".
_ID_IN_A_TEXT: Final = re.compile(rf"(?:{'|'.join(_ID_PREFIXES)})[0-9A-Z]{{26}}")

JsonT = TypeVar("JsonT")


def without_hidden(snapshot: Snapshot, view: View, values: Sequence[JsonT]) -> list[JsonT]:
    """Return the JSON values with the ids of hidden memories replaced."""
    texts = [text for value in values for text in _texts(value)]
    ids = {text for text in texts if text.startswith(_ID_PREFIXES)}
    ids |= {memory_id for text in texts for memory_id in _ID_IN_A_TEXT.findall(text)}
    hidden = ids - graph.visible_memories(snapshot, sorted(ids), view).keys()
    return [_without(value, hidden) for value in values]


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


def _texts(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _without(value: Any, hidden: Collection[str]) -> Any:
    """Return a JSON value with the ids in ``hidden`` replaced."""
    if isinstance(value, str):
        return _without_ids(value, hidden)
    if isinstance(value, dict):
        return {_without(key, hidden): _without(item, hidden) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(item, hidden) for item in value]
    return value


def _without_ids(text: str, hidden: Collection[str]) -> str:
    if text in hidden:
        return HIDDEN
    return _ID_IN_A_TEXT.sub(lambda match: HIDDEN if match[0] in hidden else match[0], text)
