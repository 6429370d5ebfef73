"""Log and journal refusals, for auditors."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memgraph.errors import AccessDenied, MemgraphError
from memgraph.store.snapshot import NewEntry

if TYPE_CHECKING:
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.snapshot import JournalledTransaction

ACTION: Final = "deny"
WINDOW_MS: Final = 60_000
"""The time for which equal refusals are counted before the count is journalled."""
MAX_WINDOWS: Final = 100
"""The maximum number of refusals that are counted separately; further ones are merged."""

NOT_JOURNALLED: Final = "access.denied.journal"

_DIGEST: Final = "asked_sha256"


class Denial(NamedTuple):
    """A refusal.

    Attributes:
        field: the kind of thing requested: ``task``, ``project``, ``orchestrator`` …; never text
            from the request.
        asked: the requested name.
        code: the code of the error.
    """

    field: str
    asked: str | None = None
    code: str = AccessDenied.code

    @property
    def details(self) -> dict[str, str]:
        """Return the details to record: no content, and only the digest of the name."""
        details = {"field": self.field, "code": self.code}
        if self.asked is not None:
            name = self.asked.encode("utf-8", "surrogatepass")
            details[_DIGEST] = hashlib.sha256(name).hexdigest()
        return details


class _Refusal(NamedTuple):
    actor: str
    details: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Window:
    """The start of a counting window, and the number of refusals since the last entry."""

    since: int
    times: int


class DenialLog:
    """Journals every refusal, with a bounded number of entries.

    The first refusal of a kind is journalled immediately. Equal ones within a minute are counted
    and journalled as one entry with ``times`` when the minute is over. Beyond ``MAX_WINDOWS``
    different refusals per minute, the rest is merged by actor and field, with an ``asked_sha256``
    of ``various``. A process therefore writes at most a few hundred entries per minute. Counts are
    lost when the process is killed.

    Args:
        transaction: opens a write transaction of the orchestrator for an actor.
    """

    def __init__(
        self, transaction: Callable[[str], AbstractContextManager[JournalledTransaction]]
    ) -> None:
        self._transaction = transaction
        self._windows: dict[_Refusal, _Window] = {}
        self._lock = threading.Lock()

    def add(self, actor: str, details: Mapping[str, str], now: int) -> None:
        """Count a refusal, and journal what is due. On a StorageError it is counted for later."""
        with self._lock:
            due = self._due(now)
            refusal = self._merged(_Refusal(actor, tuple(details.items())))
            if refusal in self._windows:
                self._windows[refusal].times += 1
            else:
                self._windows[refusal] = _Window(now, 0)
                # The previous window of the same refusal may have uncounted ones.
                due.setdefault(refusal, _Window(now, 0)).times += 1
        self._write(due)

    def add_at_once(self, actor: str, denials: Sequence[Mapping[str, str]], now: int) -> None:
        """Journal each refusal as a separate entry, durable on return.

        Raises:
            StorageError: they were only counted; the next ``flush`` journals them.
        """
        try:
            with self._transaction(actor) as transaction:
                transaction.record([NewEntry(ACTION, None, dict(details)) for details in denials])
        except MemgraphError:
            for details in denials:
                self._keep({_Refusal(actor, tuple(details.items())): _Window(now, 1)})
            raise

    def flush(self, now: int | None = None) -> None:
        """Journal the counts; with ``now`` only those whose minute is over. Raises StorageError."""
        with self._lock:
            if now is None:
                due = {refusal: window for refusal, window in self._windows.items() if window.times}
                self._windows.clear()
            else:
                due = self._due(now)
        self._write(due)

    def _due(self, now: int) -> dict[_Refusal, _Window]:
        # Setting the clock back also ends a window.
        over = {
            refusal: window
            for refusal, window in self._windows.items()
            if not 0 <= now - window.since < WINDOW_MS
        }
        for refusal in over:
            del self._windows[refusal]
        return {refusal: window for refusal, window in over.items() if window.times}

    def _write(self, due: Mapping[_Refusal, _Window]) -> None:
        unwritten = dict(due)
        try:
            for actor, group in groupby(sorted(due), key=lambda refusal: refusal.actor):
                refusals = list(group)
                with self._transaction(actor) as transaction:
                    transaction.record([_entry(refusal, due[refusal]) for refusal in refusals])
                for refusal in refusals:
                    del unwritten[refusal]
        finally:
            self._keep(unwritten)

    def _keep(self, unwritten: Mapping[_Refusal, _Window]) -> None:
        """Put back refusals that could not be journalled, for the next attempt."""
        with self._lock:
            for refusal, window in unwritten.items():
                merged = self._merged(refusal)
                self._windows.setdefault(merged, _Window(window.since, 0)).times += window.times

    def _merged(self, refusal: _Refusal) -> _Refusal:
        """Return the refusal, or the merged one when there are too many different ones."""
        if refusal in self._windows or len(self._windows) < MAX_WINDOWS:
            return refusal
        return refusal._replace(
            details=tuple({**dict(refusal.details), _DIGEST: "various"}.items())
        )


def _entry(refusal: _Refusal, window: _Window) -> NewEntry:
    details: dict[str, Any] = dict(refusal.details)
    if window.times > 1:
        details |= {"times": window.times, "since": window.since}
    return NewEntry(ACTION, None, details)


def record_denial(
    opened: OpenOrchestrator,
    *,
    actor: str,
    field: str,
    requested: str | None = None,
    code: str | None = None,
) -> None:
    """Log a refusal, and journal it in the orchestrator that refused.

    Both contain only a digest of the name, by which an auditor who knows the name can find it. The
    request is refused even if the entry cannot be written. Equal refusals within a minute share an
    entry, see ``DenialLog``.

    Args:
        actor: the requester.
        field, requested, code: see ``Denial``.
    """
    details = Denial(field, requested, code or AccessDenied.code).details
    opened.log.warning(AccessDenied.code, actor=actor, **details)
    opened.meters.denied(field)
    try:
        opened.denials.add(actor, details, opened.clock.now_ms())
    except MemgraphError as error:
        opened.log.failure(NOT_JOURNALLED, error)


def record_denials(opened: OpenOrchestrator, denials: Sequence[Denial], *, actor: str) -> None:
    """Record several refusals, each with its own entry, durable on return.

    The caller must limit how often this happens.
    """
    entries = [record.details for record in denials]
    for record in entries:
        opened.log.warning(AccessDenied.code, actor=actor, **record)
    for denial in denials:
        opened.meters.denied(denial.field)
    try:
        opened.denials.add_at_once(actor, entries, opened.clock.now_ms())
    except MemgraphError as error:
        opened.log.failure(NOT_JOURNALLED, error)
