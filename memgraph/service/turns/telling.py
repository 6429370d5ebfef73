"""Warnings of a turn: returned with every turn, logged when they change."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from memgraph.errors import MemgraphError
from memgraph.model.turns import TurnWarning
from memgraph.service.turns.lanes import Lane, LaneError

if TYPE_CHECKING:
    from memgraph.log import EventLog


def warning_of(error: BaseException) -> TurnWarning:
    """Return an error as a warning; of a foreign error only its class."""
    if isinstance(error, MemgraphError):
        return TurnWarning(code=error.code, text=error.message)
    if isinstance(error, LaneError):
        return TurnWarning(code=error.code, text=str(error))
    return TurnWarning(
        code="memory.failed", text=f"a part of the memory failed: {type(error).__name__}"
    )


def refused(reason: str) -> TurnWarning:
    """Return the warning that something will not be stored."""
    return TurnWarning(code="capture.refused", text=reason)


def unacknowledged(what: str) -> TurnWarning:
    """Return the warning that a write is not finished; it continues in the background."""
    return TurnWarning(
        code="capture.unacknowledged", text=f"{what} not stored yet; it may be later"
    )


def once(warnings: Iterable[TurnWarning]) -> tuple[TurnWarning, ...]:
    """Return the first warning of each code, in order."""
    first: dict[str, TurnWarning] = {}
    for each in warnings:
        first.setdefault(each.code, each)
    return tuple(first.values())


class Conditions:
    """The state of each part of a turn; changes are logged, repetitions are not.

    Args:
        log: where changes are logged.
        lane: in which they are written, so that a hanging disk delays nobody.
    """

    def __init__(self, log: EventLog, lane: Lane) -> None:
        self._log = log
        self._lane = lane
        self._lock = threading.Lock()
        self._codes: dict[str, str] = {}

    def note(self, part: str, error: BaseException | TurnWarning | None) -> None:
        """Record that a part failed for a reason, or works."""
        found = error if isinstance(error, TurnWarning) or error is None else warning_of(error)
        code = None if found is None else found.code
        with self._lock:
            before = self._codes.get(part)
            if code == before:
                return
            try:
                self._lane.submit(lambda: self._tell(part, code, before))
            except LaneError:
                # Not logged, so not recorded either: the next turn tries again.
                return
            if code is None:
                del self._codes[part]
            else:
                self._codes[part] = code

    def tell(self, event: str, **fields: str) -> None:
        """Log an event each time it happens."""
        with suppress(LaneError):
            self._lane.submit(lambda: self._log.warning(event, **fields))

    def _tell(self, part: str, code: str | None, before: str | None) -> None:
        if code is None:
            self._log.info("turn.recovered", part=part, after=before)
        else:
            self._log.warning("turn.degraded", part=part, code=code)
