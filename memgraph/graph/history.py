"""Changes between two times, and the history of one memory, as far as a reader may see."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from memgraph.errors import InvalidInput
from memgraph.graph.redaction import read_details, status_periods, without_hidden
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.model.graph import (
    ConfidenceChange,
    Diff,
    History,
    MemoryEvent,
    PairEvent,
    ValuePeriod,
)
from memgraph.model.values import Memory
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
    """Return the changes after ``since`` until ``until``, both in milliseconds.

    Args:
        limit: 1 to 1,000: of each list.

    Raises:
        InvalidInput: a limit out of range, or an end before the beginning.
        StorageError: the database cannot be read.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit must be between 1 and {MAX_LIMIT}", field="limit", value=limit)
    if until < since:
        raise InvalidInput("the second time is before the first", field="until")
    with database.read() as snapshot:
        return _Comparing(snapshot, View(viewer), Interval(since, until), limit).made()


def history(
    database: Database,
    memory_id: str,
    *,
    now_ms: int,
    exponent: float,
    viewer: Viewer = DEFAULT_VIEWER,
) -> History:
    """Return every status and every value that a memory had. Raises NotFound.

    Args:
        exponent: of the decay of confidence in this store.
    """
    with database.read() as snapshot:
        view = View(viewer)
        memory = graph.visible_memory(snapshot, memory_id, view)
        return History(
            memory=memory,
            periods=status_periods(snapshot, view, memory_id),
            values=_values(memory, history_rows.revisions(snapshot, memory_id)),
            # Clocks differ: nothing was read before it was stored.
            at=max(now_ms, memory.created_at),
            decay_exponent=exponent,
        )


def _values(memory: Memory, kept: Sequence[tuple[Any, ...]]) -> tuple[ValuePeriod, ...]:
    periods, since = [], memory.created_at
    for until, importance, confidence, decay_rate, valid_until, tags in kept:
        # What changed twice at one moment never held in between.
        if until > since:
            periods.append(
                ValuePeriod(
                    since=since,
                    until=until,
                    importance=importance,
                    confidence=confidence,
                    decay_rate=decay_rate,
                    valid_until=valid_until,
                    tags=tuple(json.loads(tags)),
                )
            )
            since = until
    last = ValuePeriod(
        since=since,
        until=None,
        importance=memory.importance,
        confidence=memory.confidence,
        decay_rate=memory.decay_rate,
        valid_until=memory.valid_until,
        tags=memory.tags,
    )
    return (*periods, last)


class _Comparing:
    """Builds one diff, on one snapshot."""

    def __init__(self, snapshot: Snapshot, view: View, during: Interval, limit: int) -> None:
        self._snapshot = snapshot
        self._view = view
        self._during = during
        self._limit = limit

    def made(self) -> Diff:
        snapshot, view, during = self._snapshot, self._view, self._during
        began = _by_change(history_rows.begun(snapshot, view, during))
        found = history_rows.contradicted(snapshot, view, during)
        decided = self._decided()
        moved = history_rows.moved(snapshot, view, during)
        counts = {name: len(each) for name, each in (began | decided).items()}
        counts |= {"contradicted": len(found), "confidence": len(moved)}
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
            contradicted=self._found(found[: self._limit]),
            resolved=resolved,
            dismissed=dismissed,
            reopened=reopened,
            confidence=tuple(ConfidenceChange(**each._asdict()) for each in moved[: self._limit]),
            counts=dict(sorted(counts.items()))
            | {"said": history_rows.said(snapshot, view, during)},
            cut=cut,
        )

    def _memory_events(self, given: Sequence[StatusStart]) -> tuple[MemoryEvent, ...]:
        shown = given[: self._limit]
        reasons = without_hidden(self._snapshot, self._view, [each.reason for each in shown])
        return tuple(
            MemoryEvent(
                memory_id=each.memory_id,
                kind=MemoryKind(each.kind),
                type=MemoryType(each.type),
                text=each.text,
                at=each.at,
                actor=each.actor,
                reason=reason,
            )
            for each, reason in zip(shown, reasons, strict=True)
        )

    def _found(self, given: Sequence[ContradictingPair]) -> tuple[PairEvent, ...]:
        told = history_rows.who_found(self._snapshot, given)
        events = []
        for each in given:
            actor, reason = told.get(each.edge_id, (None, None))
            events.append(_event(each, each.created_at, actor, reason or None))
        return tuple(events)

    def _decided(self) -> dict[str, list[tuple[ContradictingPair, EdgeDecision, dict[str, Any]]]]:
        """Return visible decisions by kind, newest first."""
        entries = [
            (each, _details(each)) for each in history_rows.decisions(self._snapshot, self._during)
        ]
        named = {str(details.get("edge_id")) for _, details in entries}
        seen = history_rows.pairs(self._snapshot, self._view, named)
        found: dict[str, list[tuple[ContradictingPair, EdgeDecision, dict[str, Any]]]] = {
            name: [] for name in _DECIDED.values()
        }
        for each, details in entries:
            pair = seen.get(str(details.get("edge_id")))
            if pair is not None:
                found[_DECIDED[each.action]].append((pair, each, details))
        return found

    def _pair_events(
        self, given: Sequence[tuple[ContradictingPair, EdgeDecision, dict[str, Any]]]
    ) -> tuple[PairEvent, ...]:
        shown = given[: self._limit]
        told = without_hidden(self._snapshot, self._view, [details for *_, details in shown])
        return tuple(
            _event(pair, each.at, each.actor, details.get("reason"), details.get("winner_id"))
            for (pair, each, _), details in zip(shown, told, strict=True)
        )


def _by_change(given: Iterable[StatusStart]) -> dict[str, list[StatusStart]]:
    found: dict[str, list[StatusStart]] = {name: [] for name in _STATUSES}
    for each in given:
        if each.first:
            found["learnt"].append(each)
        elif each.status == MemoryStatus.ACTIVE:
            found["restored"].append(each)
        elif each.status == MemoryStatus.SUPERSEDED:
            found["replaced"].append(each)
        else:
            found["retracted"].append(each)
    return found


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


def _details(each: EdgeDecision) -> dict[str, Any]:
    details = read_details(each.details)
    return details if isinstance(details, dict) else {}
