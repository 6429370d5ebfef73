"""Return the visible changes between two times, and the history of a memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from memgraph.clock import MAX_MS, parse_time
from memgraph.errors import InvalidInput
from memgraph.graph.redaction import read_details, status_periods
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType
from memgraph.model.graph import Diff, History, MemoryEvent, PairEvent, RestoredBackup
from memgraph.model.tables import AuditRow
from memgraph.rules.erasure import MARK
from memgraph.store import graph, history as history_rows
from memgraph.store.history import EdgeEnds, ErasedMemory, Interval, RestoreEntry, StatusStart
from memgraph.store.redaction import without_hidden
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

_STATUSES: Final = ("learnt", "replaced", "retracted", "restored")
_BEGAN: Final[dict[str, str]] = {
    MemoryStatus.ACTIVE: "restored",
    MemoryStatus.SUPERSEDED: "replaced",
    MemoryStatus.RETRACTED: "retracted",
}
_OF_PAIRS: Final = {
    "relate": "contradicted",
    "resolve": "resolved",
    "accept": "accepted",
    "dismiss": "dismissed",
    "reopen": "reopened",
}


def diff(snapshot: Snapshot, view: View, since: int, until: int, *, limit: int = 100) -> Diff:
    """Return the changes after ``since`` up to ``until``, both in milliseconds.

    Each list has at most ``limit`` entries. Raises InvalidInput: ``until`` is before ``since``.
    """
    if until < since:
        raise InvalidInput("the second time is before the first", field="until")
    during = Interval(since, until)
    erased = history_rows.erased(snapshot, view, during)
    erased_at = {memory.memory_id: memory.at for memory in erased}
    began: dict[str, list[StatusStart]] = {name: [] for name in _STATUSES}
    for start in history_rows.statuses_begun(snapshot, view, during):
        if start.first and start.kind != MemoryKind.EPISODE:
            began["learnt"].append(start)
        # An erasure retracts.
        is_erasure = start.at >= erased_at.get(start.memory_id, MAX_MS)
        # A memory may be stored as already replaced or retracted, for instance from a file.
        if not is_erasure and (not start.first or start.status != MemoryStatus.ACTIVE):
            began[_BEGAN[start.status]].append(start)
    pairs = _pairs(snapshot, view, during)
    counts = {name: len(events) for name, events in (began | pairs).items()}
    restores = history_rows.restores(snapshot, during)
    counts |= {"erased": len(erased), "restores": len(restores)}
    lists: dict[str, Any] = {
        name: _memory_events(snapshot, view, starts[:limit]) for name, starts in began.items()
    }
    for name, entries in pairs.items():
        lists[name] = _pair_events(snapshot, view, entries[:limit])
    lists["erased"] = tuple(map(_erased_event, erased[:limit]))
    lists["restores"] = tuple(_restored_backup(view, entry) for entry in restores[:limit])
    cut = max(counts.values()) > limit
    said = history_rows.turns_stored(snapshot, view, during)
    counts = {**dict(sorted(counts.items())), "said": said}
    return Diff(since=since, until=until, counts=counts, cut=cut, **lists)


def history(snapshot: Snapshot, view: View, memory_id: str, *, now_ms: int) -> History:
    """Return all statuses that a memory had. Raises NotFound."""
    memory = graph.visible_memory(snapshot, memory_id, view)
    return History(
        memory=memory,
        periods=status_periods(snapshot, view, memory_id),
        # Clocks may differ: the time of reading is never before the time of storing.
        at=max(now_ms, memory.created_at),
    )


def _memory_events(
    snapshot: Snapshot, view: View, starts: Sequence[StatusStart]
) -> tuple[MemoryEvent, ...]:
    reasons = without_hidden(snapshot, view, [start.reason for start in starts])
    return tuple(
        MemoryEvent(
            memory_id=start.memory_id,
            kind=MemoryKind(start.kind),
            type=MemoryType(start.type),
            text=start.text,
            at=start.at,
            actor=start.actor,
            reason=reason,
        )
        for start, reason in zip(starts, reasons, strict=True)
    )


def _erased_event(memory: ErasedMemory) -> MemoryEvent:
    return MemoryEvent(
        memory_id=memory.memory_id,
        kind=MemoryKind(memory.kind),
        type=MemoryType(memory.type),
        text=MARK,
        at=memory.at,
        actor=memory.actor,
        reason=f"erased by {memory.erasure_id}",
    )


def _restored_backup(view: View, restore: RestoreEntry) -> RestoredBackup:
    return RestoredBackup(
        at=restore.at,
        actor=restore.actor,
        reason=restore.reason if view.viewer.sees_use else None,
        taken_at=None if restore.taken_at is None else parse_time(restore.taken_at),
    )


_Entry = tuple[EdgeEnds, AuditRow, dict[str, Any]]
"""A contradiction or a mark, a journal entry about it, and the details of the entry."""


def _pairs(snapshot: Snapshot, view: View, during: Interval) -> dict[str, list[_Entry]]:
    """Return what was recorded of visible contradictions and marks, by its kind, newest first."""
    entries = [
        (entry, read_details(entry.details_json))
        for entry in history_rows.pair_entries(snapshot, during)
    ]
    edge_ids = {str(details.get("edge_id")) for _, details in entries}
    visible = history_rows.pairs(snapshot, view, edge_ids)
    events: dict[str, list[_Entry]] = {name: [] for name in _OF_PAIRS.values()}
    for entry, details in entries:
        pair = visible.get(str(details.get("edge_id")))
        # A mark that somebody stated later is recorded again.
        if pair is not None and (entry.action != "relate" or entry.at == pair.created_at):
            events[_OF_PAIRS[entry.action]].append((pair, entry, details))
    return events


def _pair_events(snapshot: Snapshot, view: View, events: Sequence[_Entry]) -> tuple[PairEvent, ...]:
    readable = without_hidden(snapshot, view, [details for *_, details in events])
    return tuple(
        PairEvent(
            edge_id=pair.edge_id,
            edge_type=EdgeType(pair.edge_type),
            first_id=pair.first_id,
            second_id=pair.second_id,
            first_text=pair.first_text,
            second_text=pair.second_text,
            at=entry.at,
            actor=entry.actor,
            reason=details.get("reason"),
            winner_id=details.get("winner_id"),
        )
        for (pair, entry, _), details in zip(events, readable, strict=True)
    )
