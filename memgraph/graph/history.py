"""Return the visible changes between two times, and the history of a memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from memgraph.errors import InvalidInput
from memgraph.graph.redaction import read_details, status_periods, without_hidden
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.model.graph import (
    Diff,
    History,
    MemoryEvent,
    PairEvent,
)
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.store import graph
from memgraph.store import history as history_rows
from memgraph.store.engine import Database
from memgraph.store.history import ContradictingPair, EdgeDecision, Interval, StatusStart
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MAX_LIMIT: Final = 1_000
_STATUSES: Final = ("learnt", "replaced", "retracted", "restored")
_DECIDED: Final = {"resolve": "resolved", "dismiss": "dismissed", "reopen": "reopened"}


def diff(
    database: Database,
    since: int,
    until: int,
    *,
    limit: int = 100,
    viewer: Viewer = DEFAULT_VIEWER,
) -> Diff:
    """Return the changes after ``since`` up to ``until``, both in milliseconds.

    Args:
        limit: the maximum length of each list, 1 to 1,000.

    Raises:
        InvalidInput: the limit is out of range, or ``until`` is before ``since``.
        StorageError: the database cannot be read.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit must be between 1 and {MAX_LIMIT}", field="limit", value=limit)
    if until < since:
        raise InvalidInput("the second time is before the first", field="until")
    with database.read() as snapshot:
        return _DiffBuilder(snapshot, View(viewer), Interval(since, until), limit).made()


def history(
    database: Database,
    memory_id: str,
    *,
    now_ms: int,
    viewer: Viewer = DEFAULT_VIEWER,
) -> History:
    """Return all statuses that a memory had. Raises NotFound."""
    with database.read() as snapshot:
        view = View(viewer)
        memory = graph.visible_memory(snapshot, memory_id, view)
        return History(
            memory=memory,
            periods=status_periods(snapshot, view, memory_id),
            # Clocks may differ: the time of reading is never before the time of storing.
            at=max(now_ms, memory.created_at),
        )


class _DiffBuilder:
    """Builds a diff on a snapshot."""

    def __init__(self, snapshot: Snapshot, view: View, during: Interval, limit: int) -> None:
        self._snapshot = snapshot
        self._view = view
        self._during = during
        self._limit = limit

    def made(self) -> Diff:
        snapshot, view, during = self._snapshot, self._view, self._during
        began = _by_change(history_rows.statuses_begun(snapshot, view, during))
        contradicted = history_rows.contradictions_found(snapshot, view, during)
        decided = self._decided()
        counts = {name: len(events) for name, events in (began | decided).items()}
        counts["contradicted"] = len(contradicted)
        cut = any(count > self._limit for count in counts.values())
        learnt, replaced, retracted, restored = (
            self._memory_events(began[name]) for name in _STATUSES
        )
        resolved, dismissed, reopened = (
            self._pair_events(decided[name]) for name in _DECIDED.values()
        )
        return Diff(
            since=during.since,
            until=during.until,
            learnt=learnt,
            replaced=replaced,
            retracted=retracted,
            restored=restored,
            contradicted=self._found(contradicted[: self._limit]),
            resolved=resolved,
            dismissed=dismissed,
            reopened=reopened,
            counts=dict(sorted(counts.items()))
            | {"said": history_rows.turns_stored(snapshot, view, during)},
            cut=cut,
        )

    def _memory_events(self, starts: Sequence[StatusStart]) -> tuple[MemoryEvent, ...]:
        page = starts[: self._limit]
        reasons = without_hidden(self._snapshot, self._view, [start.reason for start in page])
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
            for start, reason in zip(page, reasons, strict=True)
        )

    def _found(self, pairs: Sequence[ContradictingPair]) -> tuple[PairEvent, ...]:
        finders = history_rows.finders(self._snapshot, pairs)
        events = []
        for pair in pairs:
            actor, reason = finders.get(pair.edge_id, (None, None))
            events.append(_event(pair, pair.created_at, actor, reason or None))
        return tuple(events)

    def _decided(self) -> dict[str, list[tuple[ContradictingPair, EdgeDecision, dict[str, Any]]]]:
        """Return the visible decisions by their kind, newest first."""
        entries = [
            (decision, _details(decision))
            for decision in history_rows.decisions(self._snapshot, self._during)
        ]
        edge_ids = {str(details.get("edge_id")) for _, details in entries}
        visible = history_rows.pairs(self._snapshot, self._view, edge_ids)
        by_change: dict[str, list[tuple[ContradictingPair, EdgeDecision, dict[str, Any]]]] = {
            name: [] for name in _DECIDED.values()
        }
        for decision, details in entries:
            pair = visible.get(str(details.get("edge_id")))
            if pair is not None:
                by_change[_DECIDED[decision.action]].append((pair, decision, details))
        return by_change

    def _pair_events(
        self, events: Sequence[tuple[ContradictingPair, EdgeDecision, dict[str, Any]]]
    ) -> tuple[PairEvent, ...]:
        page = events[: self._limit]
        readable = without_hidden(self._snapshot, self._view, [details for *_, details in page])
        return tuple(
            _event(
                pair, decision.at, decision.actor, details.get("reason"), details.get("winner_id")
            )
            for (pair, decision, _), details in zip(page, readable, strict=True)
        )


def _by_change(starts: Iterable[StatusStart]) -> dict[str, list[StatusStart]]:
    by_change: dict[str, list[StatusStart]] = {name: [] for name in _STATUSES}
    for start in starts:
        if start.first:
            by_change["learnt"].append(start)
        elif start.status == MemoryStatus.ACTIVE:
            by_change["restored"].append(start)
        elif start.status == MemoryStatus.SUPERSEDED:
            by_change["replaced"].append(start)
        else:
            by_change["retracted"].append(start)
    return by_change


def _event(
    pair: ContradictingPair,
    at: int,
    actor: str | None,
    reason: str | None,
    winner_id: str | None = None,
) -> PairEvent:
    return PairEvent(
        edge_id=pair.edge_id,
        first_id=pair.first_id,
        second_id=pair.second_id,
        first_text=pair.first_text,
        second_text=pair.second_text,
        at=at,
        actor=actor,
        reason=reason,
        winner_id=winner_id,
    )


def _details(decision: EdgeDecision) -> dict[str, Any]:
    details = read_details(decision.details)
    return details if isinstance(details, dict) else {}
